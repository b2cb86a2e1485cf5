//! The other nodes, as this one sees them. One that gives no sign of life for a while, by the clock of
//! this node, is declared dead.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use trefoil::Clock;
use trefoil_core::Result;

use super::node::{Beat, Death, LEASE, NodeId};
use super::objects::failed;
use super::{names, small};
use crate::contract::{KvObjects, ObjectVersion};

/// How long a node may be silent before it is declared dead.
const SILENCE_MAX: Duration = Duration::from_secs(6);

/// After this long without another sign of life it is not known whether a node is alive.
const FRESH: Duration = Duration::from_secs(4);

/// How long one waits after a node was declared dead: its lease, and something for clocks that do not
/// run at the same speed.
const GRACE: Duration = LEASE.saturating_add(Duration::from_millis(500));

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
    /// Its last sign of life; `None` if it never gave one.
    version: Option<ObjectVersion>,
    address: Option<String>,
    /// Since when this is the last one.
    since: Duration,
    /// Whether it gave more than one: then it was alive when it gave the last one.
    has_moved: bool,
    /// Since when it is known to be dead.
    dead_since: Option<Duration>,
    has_left: bool,
}

impl Sighting {
    fn is_gone(&self, now: Duration) -> bool {
        self.has_left || self.dead_since.is_some_and(|since| now >= since + GRACE)
    }
}

/// The other nodes of which something was asked.
#[derive(Debug)]
pub(super) struct Peers {
    clock: Clock,
    seen: Mutex<HashMap<NodeId, Sighting>>,
}

impl Peers {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            seen: Mutex::default(),
        }
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
        let (version, address) = last_beat(id, objects)?;
        // What was seen is seen now, not when it was asked for: it is not counted as silence.
        let now = self.clock.steady();
        let mut seen = self.seen.lock();
        let is_new = !seen.contains_key(&id);
        let sighting = seen.entry(id).or_default();
        if is_new || sighting.version != version {
            sighting.has_moved = !is_new;
            sighting.since = now;
            (sighting.version, sighting.address) = (version, address);
        }
        let silence = now.saturating_sub(sighting.since);
        if sighting.has_moved && silence < FRESH {
            return Ok(PeerState::Alive(sighting.address.clone()));
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

/// Returns the last sign of life of a node, and its address.
fn last_beat(
    id: NodeId,
    objects: &dyn KvObjects,
) -> Result<(Option<ObjectVersion>, Option<String>)> {
    let name = names::node(id);
    let found = objects.get(&name);
    let Some((bytes, version)) = found.map_err(failed("looking for a sign of life"))? else {
        return Ok((None, None));
    };
    let (beat, _): (Beat, _) = small::decode(&name, &bytes)?;
    Ok((Some(version), beat.word.address))
}
