//! A cluster under a seed: nodes that are cut off, stopped, killed, drained and replaced while clients write
//! and read through all of them. What was acknowledged is there once, at its position; what was refused is
//! not; positions are dense; whoever reads sees all that was acknowledged before; whoever follows misses
//! nothing over a move; and no seat is lost or sold twice.

#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trefoil::home::{Home as _, Incarnation};
use trefoil::{Commit, Database, Error, NewEvent, Selection};

use super::simulated_clients::{Ledger, SimulatedFollower, book};

use super::entries::RegistryEntries;
use super::names;
use super::tests::{TestNode, id};
use crate::contract::KvEngine as _;
use crate::memory::{CutOff, EngineCall, Fate, Fates, MemoryEngine};

/// How many seeds are tried, unless one is given.
const SEEDS: u64 = 32;
/// How many at a time: a seed mostly waits for threads of its nodes.
const AT_ONCE: usize = 8;
const STEPS: usize = 600;
const NODES: usize = 3;
const NAMESPACES: [&str; 2] = ["a", "b"];
const TICK: Duration = Duration::from_millis(500);

/// One batch is done, and its answer is lost.
#[derive(Debug)]
struct LostAnswer(bool);

impl Fates for LostAnswer {
    fn next(&mut self, call: EngineCall) -> Fate {
        match call == EngineCall::Commit && !std::mem::replace(&mut self.0, true) {
            true => Fate::FailsAfter,
            false => Fate::Done,
        }
    }
}

/// A node, and what it has open.
struct SimulatedNode {
    node: TestNode,
    address: String,
    databases: BTreeMap<&'static str, Database>,
    is_stopped: bool,
}

impl SimulatedNode {
    fn join(data: &MemoryEngine, seed: u64) -> Self {
        Self {
            node: TestNode::join(data, seed),
            address: format!("node-{seed}"),
            databases: BTreeMap::new(),
            is_stopped: false,
        }
    }

    /// Returns the database of a namespace, if this node runs and can have it.
    fn database(&mut self, name: &'static str) -> Option<Database> {
        if self.is_stopped {
            return None;
        }
        if let Some(database) = self.databases.get(name) {
            return Some(database.clone());
        }
        let database = self.node.open(&id(name)).ok()?;
        self.databases.insert(name, database.clone());
        Some(database)
    }

    /// Asks for a namespace anew the next time.
    fn forget(&mut self, name: &str) {
        if let Some(database) = self.databases.remove(name) {
            // It may have been closed already.
            let _ = database.close();
        }
    }
}

struct Simulation {
    data: MemoryEngine,
    rng: fastrand::Rng,
    nodes: Vec<SimulatedNode>,
    ledgers: BTreeMap<&'static str, Ledger>,
    followers: BTreeMap<&'static str, SimulatedFollower>,
    n_writes: u64,
    n_joined: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let data = MemoryEngine::default();
        let mut simulation = Self {
            data,
            rng: fastrand::Rng::with_seed(seed),
            nodes: Vec::new(),
            ledgers: NAMESPACES.map(|name| (name, Ledger::default())).into(),
            followers: NAMESPACES
                .map(|name| (name, SimulatedFollower::default()))
                .into(),
            n_writes: 0,
            n_joined: 0,
        };
        for _ in 0..NODES {
            let node = simulation.new_node();
            simulation.nodes.push(node);
        }
        for name in NAMESPACES {
            let home = &simulation.nodes[0].node.home;
            home.create(&id(name), b"text").unwrap();
        }
        simulation
    }

    fn new_node(&mut self) -> SimulatedNode {
        self.n_joined += 1;
        SimulatedNode::join(&self.data, self.n_joined)
    }

    fn step(&mut self) {
        let place = self.rng.usize(..self.nodes.len());
        let name = NAMESPACES[self.rng.usize(..NAMESPACES.len())];
        // Any node passes what it is asked on to the one that should have it.
        let asked = self.route(place, name);
        match self.rng.u32(0..110) {
            100..102 => self.drain(place),
            102..104 => self.give(place, name),
            104..106 => self.clear(asked, name),
            106..110 => self.follow(asked, name),
            0..40 => self.pass(),
            40..60 => self.write(asked, name),
            60..65 => self.sell(asked, name),
            65..85 => self.read(asked, name),
            85..88 => self.nodes[place].is_stopped ^= true,
            88..91 => self.nodes[place].node.cut_off(),
            91..94 => self.nodes[place].node.engine.set_fates(None),
            94 => self.replace(place, true),
            95 => self.replace(place, false),
            96 => self.checkpoint(place, name),
            97 => self.recreate(place, name),
            _ => {
                let fates = Box::new(LostAnswer(false));
                self.nodes[place].node.engine.set_fates(Some(fates));
                self.write(place, name);
            }
        }
    }

    /// Returns the node that should answer for a namespace, as this one sees it.
    fn route(&self, place: usize, name: &str) -> usize {
        let node = &self.nodes[place];
        if node.is_stopped || node.databases.contains_key(name) {
            return place;
        }
        let Ok(Some(entry)) = node.node.home.entry(&id(name)) else {
            return place;
        };
        match node
            .node
            .home
            .check_here(&id(name), entry.stamp.incarnation)
        {
            Err(Error::NotOwner {
                owner: Some(owner), ..
            }) => {
                let mut nodes = self.nodes.iter();
                let other = nodes.position(|node| node.address == owner);
                other.unwrap_or(place)
            }
            _ => place,
        }
    }

    fn pass(&mut self) {
        for node in &self.nodes {
            node.node.time.advance(TICK);
            if !node.is_stopped {
                node.node.home.step();
            }
        }
    }

    fn write(&mut self, place: usize, name: &'static str) {
        let node = &mut self.nodes[place];
        let Some(database) = node.database(name) else {
            return;
        };
        self.n_writes += 1;
        let number = self.n_writes;
        let event = NewEvent::new("a-1", "Happened", number.to_string());
        let ledger = self.ledgers.entry(name).or_default();
        match database.commit(Commit::new([event])) {
            Ok(committed) => {
                ledger.acknowledge(number, committed.position);
            }
            Err(Error::Unknown { .. }) => {}
            Err(_) => {
                ledger.refuse(number);
                node.forget(name);
            }
        }
    }

    fn read(&mut self, place: usize, name: &'static str) {
        let node = &mut self.nodes[place];
        let Some(database) = node.database(name) else {
            return;
        };
        let ledger = self.ledgers.entry(name).or_default();
        // It is in memory: no storage notices who asks for it.
        if let Ok(head) = database.head() {
            assert!(head >= ledger.last(), "{head} is stale: {ledger:?}");
        }
        match database.read(&Selection::all()) {
            Ok(events) => ledger.check(&events),
            Err(_) => return node.forget(name),
        }
        ledger.check_seats(&database);
    }

    /// Somebody buys a seat.
    fn sell(&mut self, place: usize, name: &'static str) {
        let node = &mut self.nodes[place];
        let Some(database) = node.database(name) else {
            return;
        };
        self.n_writes += 1;
        let ledger = self.ledgers.entry(name).or_default();
        match book(&database, self.n_writes) {
            Ok(is_sold) => ledger.note_sale(self.n_writes, is_sold),
            Err(Error::Unknown { .. }) => {}
            Err(_) => {
                ledger.note_sale(self.n_writes, false);
                node.forget(name);
            }
        }
    }

    /// Somebody who follows a namespace goes on, elsewhere if it has moved.
    fn follow(&mut self, place: usize, name: &'static str) {
        let node = &mut self.nodes[place];
        if node.is_stopped {
            return;
        }
        let follower = self.followers.entry(name).or_default();
        follower.step(|| node.database(name));
    }

    /// All events of a namespace are removed.
    fn clear(&mut self, place: usize, name: &'static str) {
        let node = &mut self.nodes[place];
        let Some(database) = node.database(name) else {
            return;
        };
        let ledger = self.ledgers.entry(name).or_default();
        match database.clear() {
            Ok(()) => ledger.clear(),
            Err(_) => {
                // It may have happened or not.
                ledger.may_be_cleared(self.n_writes);
                node.forget(name);
            }
        }
        self.followers.insert(name, SimulatedFollower::default());
    }

    /// A node is stopped as it should be, and hands what it has to the others.
    fn drain(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        if node.is_stopped {
            return;
        }
        // Whether the others know of it or not.
        let _ = node.node.home.cluster().map(|cluster| cluster.leave());
        for name in NAMESPACES {
            self.give(place, name);
        }
        self.replace(place, false);
    }

    /// A node hands a namespace to another one, if there is one for it.
    fn give(&mut self, place: usize, name: &'static str) {
        let node = &mut self.nodes[place];
        if node.is_stopped {
            return;
        }
        let Some(database) = node.databases.get(name) else {
            return;
        };
        if !matches!(database.hand_over(Duration::ZERO), Ok(false)) {
            node.forget(name);
        }
    }

    /// A node stops, as it should or not, and another one comes in its place.
    fn replace(&mut self, place: usize, is_killed: bool) {
        let new = self.new_node();
        let old = std::mem::replace(&mut self.nodes[place], new);
        if is_killed {
            let cut = CutOff::after(0, Fate::FailsBefore);
            old.node.engine.set_fates(Some(Box::new(cut)));
        }
        for database in old.databases.into_values() {
            let _ = database.close();
        }
    }

    /// The owner of a namespace deletes it, as far as it comes, and there is another one of that name.
    fn recreate(&mut self, place: usize, name: &'static str) {
        let node = &mut self.nodes[place];
        if node.is_stopped {
            return;
        }
        let is_owner = |database: Database| database.head().is_ok();
        if !node.database(name).is_some_and(is_owner) {
            return;
        }
        node.forget(name);
        let entries = RegistryEntries(self.data.objects());
        let entry = entries.read(&names::entry(&id(name))).unwrap().unwrap();
        let deleted = node.node.home.delete(&id(name), entry.stamp.incarnation);
        // What is not erased now is erased by the next node.
        let _ = deleted.and_then(|erase| erase());
        if entries.read(&names::entry(&id(name))).unwrap().is_none() {
            let incarnation = Incarnation(self.rng.u128(..));
            entries.create(&id(name), incarnation, b"text").unwrap();
            self.ledgers.insert(name, Ledger::default());
            self.followers.insert(name, SimulatedFollower::default());
        }
    }

    fn checkpoint(&mut self, place: usize, name: &'static str) {
        if let Some(database) = self.nodes[place].databases.get(name) {
            // What it does not write is written later.
            let _ = database.checkpoint();
        }
    }

    /// Mends everything, and reads once more.
    fn finish(mut self) -> u64 {
        for node in &mut self.nodes {
            node.is_stopped = false;
            node.node.engine.set_fates(None);
            for name in NAMESPACES {
                node.forget(name);
            }
        }
        let mut n_acknowledged = 0;
        for name in NAMESPACES {
            let database = self.open_some_day(name);
            let events = database.read(&Selection::all()).unwrap();
            let ledger = self.ledgers.entry(name).or_default();
            ledger.check(&events);
            ledger.check_seats(&database);
            n_acknowledged += ledger.n_acknowledged();
            let follower = self.followers.entry(name).or_default();
            follower.step(|| Some(database));
            follower.check(&events);
        }
        n_acknowledged
    }

    fn open_some_day(&mut self, name: &'static str) -> Database {
        for _ in 0..200 {
            self.pass();
            if let Some(database) = self.nodes[0].database(name) {
                return database;
            }
        }
        panic!("nobody has {name} within 50 seconds");
    }
}

fn run(seed: u64) -> u64 {
    let mut simulation = Simulation::new(seed);
    (0..STEPS).for_each(|_| simulation.step());
    simulation.finish()
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Says how a seed that fails is run again.
struct RunningSeed(u64);

impl Drop for RunningSeed {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self(seed) = self;
            eprintln!("failed: TREFOIL_TEST_SEED={seed} cargo xtask soak simulation");
        }
    }
}

/// `TREFOIL_TEST_SEED=7` runs one seed alone, `TREFOIL_TEST_SECONDS=600` as many as there is time for.
#[test]
fn nothing_acknowledged_is_lost_and_nothing_stale_is_read() {
    let began = Instant::now();
    let seconds = Duration::from_secs(number_from("TREFOIL_TEST_SECONDS").unwrap_or(0));
    let given = number_from("TREFOIL_TEST_SEED");
    let is_wanted = |seed| match given {
        Some(given) => seed == given,
        None => seed < SEEDS || began.elapsed() < seconds,
    };
    let next = AtomicU64::new(given.unwrap_or(0));
    let work = || -> u64 {
        let seeds = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let counts = seeds.take_while(|seed| is_wanted(*seed)).map(|seed| {
            let _running = RunningSeed(seed);
            run(seed)
        });
        counts.sum()
    };
    let n_acknowledged: u64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let counts = workers.into_iter().map(|worker| worker.join().unwrap());
        counts.sum()
    });
    let n_seeds = next.into_inner() - AT_ONCE as u64 - given.unwrap_or(0);
    eprintln!("{n_seeds} seeds, {n_acknowledged} acknowledged writes");
    assert!(n_acknowledged > 0, "somebody has written something");
}
