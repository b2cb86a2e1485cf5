//! This node of the cluster, as long as it is the same one: its signs of life, and its lease.
//!
//! A node answers for what it owns as long as it has a *lease*. It looks every second whether somebody
//! has declared it dead, and a look that finds nothing is good for two and a half seconds from its beginning.
//! Whoever declared it dead waits for longer than that before it answers for what was the other's. So
//! nothing here compares the clocks of two machines.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use trefoil::Clock;
use trefoil::home::Incarnation;
use trefoil_core::{Error, Result};

use super::clock_check::ClockCheck;
use super::objects::failed;
use super::{names, small};
use crate::contract::{KvObjects, ObjectVersion};

/// How often a node gives a sign of life.
const BEAT_EVERY: Duration = Duration::from_millis(1500);

/// How often it looks whether it was declared dead.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often it compares its clock with that of the store.
const CLOCK_EVERY: Duration = Duration::from_secs(30);

/// A node that has not looked for this long is dead. Much later what says so is removed.
const ASLEEP_MAX: Duration = Duration::from_secs(3600);

/// How long it may answer after a look that found nothing.
pub(super) const LEASE: Duration = Duration::from_millis(2500);

/// Tells nodes apart. A node that was declared dead goes on as another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeId(pub(super) u128);

/// What a node tells the others of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NodeWord {
    /// Where it can be reached, if others can reach it.
    pub(super) address: Option<String>,
    /// The release that it runs.
    pub(super) version: String,
    /// When its process began, in milliseconds since 1970.
    pub(super) started: u64,
    /// Whether it is being stopped: it takes no more namespaces.
    pub(super) is_leaving: bool,
    /// How many namespaces it has.
    pub(super) n_owned: u64,
    /// What it has handed to others of late, because it had more than its share.
    pub(super) gifts: Vec<Gift>,
}

/// A namespace that one node has handed to another, which need not wait until it is asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gift {
    pub(super) namespace: String,
    #[serde(with = "super::hex")]
    pub(super) to: u128,
    /// When, in milliseconds since 1970, by the clock of the giver: it tells gifts apart.
    pub(super) at: u64,
}

/// A sign of life.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Beat {
    #[serde(flatten)]
    pub(super) word: NodeWord,
    /// Another one each time.
    count: u64,
}

/// What says that a node owns nothing any more.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Death {
    /// Whether it said so itself, when it had stopped to answer.
    pub(super) has_left: bool,
}

/// A node. All times are those of the steady clock.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    clock: Clock,
    /// Until when it may answer, in nanoseconds.
    until: AtomicU64,
    /// The same by the wall clock, in milliseconds since 1970: the steady clock of a machine that
    /// sleeps may stand still.
    until_wall: AtomicU64,
    is_dead: AtomicBool,
    /// Who is told when it is declared dead.
    mourners: Mutex<Mourners>,
    pulse: Mutex<Pulse>,
    pub(super) store_clock: ClockCheck,
}

/// Who is told of a death.
#[derive(Default)]
struct Mourners(HashMap<Incarnation, Box<dyn FnOnce() + Send>>);

impl fmt::Debug for Mourners {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Mourners")
            .field(&self.0.len())
            .finish()
    }
}

#[derive(Debug, Default)]
struct Pulse {
    count: u64,
    /// The last sign of life; `None` if nobody knows how the last attempt ended.
    version: Option<ObjectVersion>,
    next_beat: Duration,
    next_look: Duration,
    next_clock: Duration,
}

impl Node {
    /// Makes a node known to the others.
    pub(super) fn join(
        id: NodeId,
        word: NodeWord,
        clock: Clock,
        objects: &dyn KvObjects,
    ) -> Result<Self> {
        let node = Self {
            id,
            clock,
            until: AtomicU64::new(0),
            until_wall: AtomicU64::new(0),
            is_dead: AtomicBool::new(false),
            mourners: Mutex::default(),
            pulse: Mutex::default(),
            store_clock: ClockCheck::default(),
        };
        let (began, wall) = node.time();
        let name = names::node(id);
        let created = objects.create(&name, sign(word, 0)?);
        let version = created.map_err(failed("joining the cluster"))?;
        let taken = || Error::Internal("two nodes have the same id".to_owned());
        *node.pulse.lock() = Pulse {
            count: 0,
            version: Some(version.ok_or_else(taken)?),
            next_beat: began + BEAT_EVERY,
            next_look: began + LOOK_EVERY,
            next_clock: began + CLOCK_EVERY,
        };
        node.check_clock(wall, objects);
        // Nobody can have declared dead what did not exist.
        node.extend(began, wall);
        Ok(node)
    }

    /// Returns what time it is by the steady clock and by that on the wall.
    fn time(&self) -> (Duration, u64) {
        (self.clock.steady(), self.clock.now().millis())
    }

    /// Extends the lease after a look that began then.
    fn extend(&self, began: Duration, wall: u64) {
        let until = u64::try_from((began + LEASE).as_nanos()).unwrap_or(u64::MAX);
        self.until.store(until, Ordering::SeqCst);
        self.until_wall
            .store(wall + LEASE.as_millis() as u64, Ordering::SeqCst);
    }

    /// Returns whether it may answer for what it owns.
    pub(super) fn has_lease(&self) -> bool {
        let until = Duration::from_nanos(self.until.load(Ordering::SeqCst));
        let (now, wall) = self.time();
        !self.is_dead() && now < until && wall < self.until_wall.load(Ordering::SeqCst)
    }

    /// Returns for how long it may answer if it looks no more.
    pub(super) fn lease_left(&self) -> Duration {
        let until = Duration::from_nanos(self.until.load(Ordering::SeqCst));
        match self.has_lease() {
            true => until.saturating_sub(self.clock.steady()),
            false => Duration::ZERO,
        }
    }

    /// Returns whether it has been declared dead: then it owns nothing, for ever.
    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    /// Looks whether it was declared dead and gives a sign of life, as far as it is time to.
    pub(super) fn step(&self, word: impl FnOnce() -> NodeWord, objects: &dyn KvObjects) {
        let mut pulse = self.pulse.lock();
        let (now, wall) = self.time();
        if self.was_asleep(now, wall) {
            tracing::error!("this node has not looked for long whether it owns anything");
            return self.die();
        }
        if now >= pulse.next_look {
            pulse.next_look = now + LOOK_EVERY;
            self.look((now, wall), objects);
        }
        if now >= pulse.next_beat
            && !self.is_dead()
            && let Err(error) = self.beat(&mut pulse, word(), objects)
        {
            tracing::warn!(%error, "cannot give a sign of life");
        }
    }

    /// Gives a sign of life now.
    pub(super) fn tell(&self, word: NodeWord, objects: &dyn KvObjects) -> Result<()> {
        self.beat(&mut self.pulse.lock(), word, objects)
    }

    /// Returns whether it has not looked for so long that what said that it is dead may have been removed.
    fn was_asleep(&self, now: Duration, wall: u64) -> bool {
        let until = Duration::from_nanos(self.until.load(Ordering::SeqCst));
        let until_wall = self.until_wall.load(Ordering::SeqCst);
        now > until + ASLEEP_MAX || wall > until_wall + ASLEEP_MAX.as_millis() as u64
    }

    /// Compares the clock with that of the store, which has written a sign of life since then.
    fn check_clock(&self, began: u64, objects: &dyn KvObjects) {
        let ended = self.clock.now().millis();
        match objects.written(&names::node(self.id)) {
            Ok(Some(written)) => self.store_clock.note(began, ended, written),
            Ok(None) => {}
            Err(error) => tracing::warn!(?error, "cannot compare the clock with the storage's"),
        }
    }

    fn look(&self, (now, wall): (Duration, u64), objects: &dyn KvObjects) {
        match objects.get(&names::dead(self.id)) {
            Ok(None) => self.extend(now, wall),
            Ok(Some(_)) => {
                tracing::error!("another node has declared this one dead");
                self.die();
            }
            Err(error) => tracing::warn!(?error, "cannot look whether this node owns anything"),
        }
    }

    fn beat(&self, pulse: &mut Pulse, word: NodeWord, objects: &dyn KvObjects) -> Result<()> {
        pulse.next_beat = self.clock.steady() + BEAT_EVERY;
        let name = names::node(self.id);
        let version = match pulse.version.take() {
            Some(version) => version,
            None => {
                let found = objects
                    .get(&name)
                    .map_err(failed("finding a sign of life"))?;
                let gone = || Error::Closed("the signs of life of this node are gone".to_owned());
                found.ok_or_else(gone)?.1
            }
        };
        pulse.count += 1;
        let (now, wall) = self.time();
        let replaced = objects.replace(&name, &version, sign(word, pulse.count)?);
        pulse.version = replaced.map_err(failed("giving a sign of life"))?;
        if pulse.version.is_some() && now >= pulse.next_clock {
            self.check_clock(wall, objects);
            // One that is off is looked at again soon.
            pulse.next_clock = match self.store_clock.is_off() {
                true => now,
                false => now + CLOCK_EVERY,
            };
        }
        Ok(())
    }

    /// Tells `notify`, who uses a namespace, when this node is declared dead.
    pub(super) fn on_death(&self, incarnation: Incarnation, notify: Box<dyn FnOnce() + Send>) {
        let mut mourners = self.mourners.lock();
        if self.is_dead() {
            drop(mourners);
            return notify();
        }
        mourners.0.insert(incarnation, notify);
    }

    /// Nobody uses a namespace any more.
    pub(super) fn forget(&self, incarnation: Incarnation) {
        self.mourners.lock().0.remove(&incarnation);
    }

    fn die(&self) {
        let mut mourners = self.mourners.lock();
        self.is_dead.store(true, Ordering::SeqCst);
        let told = std::mem::take(&mut mourners.0);
        drop(mourners);
        told.into_values().for_each(|notify| notify());
    }

    /// Stops to answer, and lets others have what it owned at once.
    pub(super) fn leave(&self, objects: &dyn KvObjects) -> Result<()> {
        self.is_dead.store(true, Ordering::SeqCst);
        let death = small::encode(&Death { has_left: true }, b"")?;
        let left = objects.create(&names::dead(self.id), death);
        left.map(drop).map_err(failed("leaving the cluster"))
    }
}

fn sign(word: NodeWord, count: u64) -> Result<bytes::Bytes> {
    small::encode(&Beat { word, count }, b"")
}
