//! The other nodes, as this one sees them. One that gives no sign of life for a while, by the clock of
//! this node, is declared dead.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use parking_lot::Mutex;
use trefoil::Clock;
use trefoil_core::Result;

use super::node::{Beat, Death, LEASE, NodeId, NodeWord};
use super::objects::{failed, list_all};
use super::{names, small};
use crate::contract::{KvObjects, ObjectVersion};

/// How long a node may be silent before it is declared dead.
const SILENCE_MAX: Duration = Duration::from_secs(4);

/// After this long without another sign of life it is not known whether a node is alive.
const FRESH: Duration = Duration::from_secs(3);

/// How long one waits after a node was declared dead: its lease, and something for clocks that do not
/// run at the same speed.
const GRACE: Duration = LEASE.saturating_add(Duration::from_millis(500));

/// How often is looked at all nodes.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Once in so many times is looked which nodes there are.
const LISTED_EVERY: u64 = 5;

/// What is known of another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PeerState {
    /// It gave a sign of life not long ago. This is its address.
    Alive(Option<String>),
    /// It may be dead: ask again later.
    Silent,
    /// It answers for nothing any more.
    Gone,
}

/// What was seen of another node, by the steady clock.
#[derive(Debug, Default)]
struct Sighting {
    /// Whether it was looked for before.
    is_known: bool,
    /// Its last sign of life; `None` if it never gave one.
    version: Option<ObjectVersion>,
    word: NodeWord,
    /// Since when this is the last one.
    since: Duration,
    /// Whether it gave more than one: then it was alive when it gave the last one.
    has_moved: bool,
    /// Since when it is known to be dead.
    dead_since: Option<Duration>,
    has_left: bool,
}

impl Sighting {
    /// Notes the last sign of life that was seen.
    fn note(&mut self, version: Option<ObjectVersion>, word: NodeWord, now: Duration) {
        let is_new = !std::mem::replace(&mut self.is_known, true);
        if is_new || self.version != version {
            self.has_moved = !is_new;
            self.since = now;
            (self.version, self.word) = (version, word);
        }
    }

    /// Returns whether it seems to be alive, as far as one can tell without asking.
    fn seems_alive(&self, now: Duration) -> bool {
        self.version.is_some()
            && self.dead_since.is_none()
            && now.saturating_sub(self.since) < FRESH
    }

    fn is_gone(&self, now: Duration) -> bool {
        self.has_left || self.dead_since.is_some_and(|since| now >= since + GRACE)
    }
}

/// The other nodes.
#[derive(Debug)]
pub(super) struct Peers {
    clock: Clock,
    seen: Mutex<HashMap<NodeId, Sighting>>,
    /// When is looked at all of them next, and how often that was done.
    round: Mutex<(Duration, u64)>,
}

/// Another node as it was seen last.
#[derive(Debug, Clone)]
pub(super) struct SeenPeer {
    pub(super) id: NodeId,
    pub(super) word: NodeWord,
    /// Whether it gave a sign of life not long ago.
    pub(super) seems_alive: bool,
}

impl Peers {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            seen: Mutex::default(),
            round: Mutex::default(),
        }
    }

    /// Looks at all nodes but this one, if it is time to.
    pub(super) fn watch(&self, own: NodeId, objects: &dyn KvObjects) -> Result<()> {
        let now = self.clock.steady();
        let mut round = self.round.lock();
        let (next, number) = *round;
        if now < next {
            return Ok(());
        }
        *round = (now + WATCH_EVERY, number + 1);
        drop(round);
        match number % LISTED_EVERY {
            0 => self.watch_now(own, objects),
            _ => self.sight_all(objects),
        }
    }

    /// Finds out which nodes there are, and looks at all of them.
    pub(super) fn watch_now(&self, own: NodeId, objects: &dyn KvObjects) -> Result<()> {
        self.find(own, objects)?;
        self.sight_all(objects)
    }

    fn sight_all(&self, objects: &dyn KvObjects) -> Result<()> {
        let sighted = self
            .all()
            .into_iter()
            .map(|peer| self.sight(peer.id, objects));
        // One that cannot be read does not hide the others.
        let sighted: Vec<Result<()>> = sighted.collect();
        sighted.into_iter().collect()
    }

    /// Finds out which nodes there are, and forgets those that are no more.
    fn find(&self, own: NodeId, objects: &dyn KvObjects) -> Result<()> {
        let listed = list_all(objects, names::NODES)?;
        let id = |name: &str| names::last_number(name).map(NodeId);
        let dead = listed
            .iter()
            .filter_map(|name| name.strip_suffix(names::DEAD));
        let dead: HashSet<NodeId> = dead.filter_map(id).collect();
        let living = listed.iter().filter_map(|name| id(name));
        let living = living.filter(|id| !dead.contains(id) && *id != own);
        let living: HashSet<NodeId> = living.collect();
        // Who wants something of them later does not wait then.
        for id in &dead {
            self.note_death(*id, false);
        }
        let now = self.clock.steady();
        let mut seen = self.seen.lock();
        let is_listed = |id: &NodeId| living.contains(id) || dead.contains(id);
        // Who asks for one of which nothing is left finds out again.
        seen.retain(|id, sighting| is_listed(id) || !sighting.is_gone(now));
        let unknown = living.iter().filter(|id| !seen.contains_key(id));
        let unknown: Vec<NodeId> = unknown.copied().collect();
        drop(seen);
        for id in unknown {
            self.look(id, objects)?;
        }
        Ok(())
    }

    /// Looks for another sign of life of a node; if there is none for long, more closely.
    fn sight(&self, id: NodeId, objects: &dyn KvObjects) -> Result<()> {
        let (version, word) = last_beat(id, objects)?;
        let now = self.clock.steady();
        let mut seen = self.seen.lock();
        let sighting = seen.entry(id).or_default();
        if sighting.dead_since.is_some() {
            return Ok(());
        }
        sighting.note(version, word, now);
        let is_fresh = sighting.has_moved && now.saturating_sub(sighting.since) < FRESH;
        drop(seen);
        match is_fresh {
            true => Ok(()),
            false => self.look(id, objects).map(drop),
        }
    }

    /// Returns all nodes that are not known to be dead.
    pub(super) fn all(&self) -> Vec<SeenPeer> {
        let now = self.clock.steady();
        let seen = self.seen.lock();
        let living = seen
            .iter()
            .filter(|(_, sighting)| sighting.version.is_some() && sighting.dead_since.is_none());
        let peer = |(id, sighting): (&NodeId, &Sighting)| SeenPeer {
            id: *id,
            word: sighting.word.clone(),
            seems_alive: sighting.seems_alive(now),
        };
        living.map(peer).collect()
    }

    /// Returns the address of a node that seems to be alive; `None` if it does not.
    pub(super) fn address(&self, id: NodeId) -> Option<Option<String>> {
        let now = self.clock.steady();
        let seen = self.seen.lock();
        let sighting = seen.get(&id).filter(|sighting| sighting.seems_alive(now))?;
        Some(sighting.word.address.clone())
    }

    /// Returns for how long it is of no use to look at a node again that is silent, because others look as
    /// well, or its lease is not over.
    pub(super) fn patience(&self, id: NodeId) -> Duration {
        let now = self.clock.steady();
        let seen = self.seen.lock();
        let dead_since = seen.get(&id).and_then(|sighting| sighting.dead_since);
        dead_since.map_or(WATCH_EVERY, |since| (since + GRACE).saturating_sub(now))
    }

    /// Returns whether it is known how a node is that was silent: gone, or alive.
    pub(super) fn is_decided(&self, id: NodeId) -> bool {
        let now = self.clock.steady();
        let seen = self.seen.lock();
        seen.get(&id).is_none_or(|sighting| {
            sighting.is_gone(now) || (sighting.has_moved && sighting.seems_alive(now))
        })
    }

    /// Returns since when a node is known to be dead, by the steady clock.
    pub(super) fn dead_since(&self, id: NodeId) -> Option<Duration> {
        self.seen.lock().get(&id)?.dead_since
    }

    /// Looks at a node. One that has been silent for too long is declared dead.
    pub(super) fn look(&self, id: NodeId, objects: &dyn KvObjects) -> Result<PeerState> {
        let now = self.clock.steady();
        if self
            .seen
            .lock()
            .get(&id)
            .is_some_and(|seen| seen.is_gone(now))
        {
            return Ok(PeerState::Gone);
        }
        let death = objects.get(&names::dead(id));
        if let Some((bytes, _)) = death.map_err(failed("looking for a dead node"))? {
            let (death, _): (Death, _) = small::decode(&names::dead(id), &bytes)?;
            return Ok(self.note_death(id, death.has_left));
        }
        let (version, word) = last_beat(id, objects)?;
        // What was seen is seen now, not when it was asked for: it is not counted as silence.
        let now = self.clock.steady();
        let mut seen = self.seen.lock();
        let sighting = seen.entry(id).or_default();
        sighting.note(version, word, now);
        let silence = now.saturating_sub(sighting.since);
        if sighting.has_moved && silence < FRESH {
            return Ok(PeerState::Alive(sighting.word.address.clone()));
        }
        drop(seen);
        if silence < SILENCE_MAX {
            return Ok(PeerState::Silent);
        }
        self.declare_dead(id, objects)
    }

    /// Declares a node dead, which owns nothing from then on.
    pub(super) fn declare_dead(&self, id: NodeId, objects: &dyn KvObjects) -> Result<PeerState> {
        let death = small::encode(&Death { has_left: false }, b"")?;
        let created = objects.create(&names::dead(id), death);
        if created.map_err(failed("declaring a node dead"))?.is_some() {
            let node = format!("{:032x}", id.0);
            tracing::warn!(node, "is declared dead, and owns nothing any more");
        }
        Ok(self.note_death(id, false))
    }

    fn note_death(&self, id: NodeId, has_left: bool) -> PeerState {
        let now = self.clock.steady();
        let mut seen = self.seen.lock();
        let sighting = seen.entry(id).or_default();
        sighting.has_left |= has_left;
        sighting.dead_since.get_or_insert(now);
        match sighting.is_gone(now) {
            true => PeerState::Gone,
            false => PeerState::Silent,
        }
    }
}

/// Returns the last sign of life of a node, and what it says.
fn last_beat(id: NodeId, objects: &dyn KvObjects) -> Result<(Option<ObjectVersion>, NodeWord)> {
    let name = names::node(id);
    let found = objects.get(&name);
    let Some((bytes, version)) = found.map_err(failed("looking for a sign of life"))? else {
        return Ok((None, NodeWord::default()));
    };
    let (beat, _): (Beat, _) = small::decode(&name, &bytes)?;
    Ok((Some(version), beat.word))
}
