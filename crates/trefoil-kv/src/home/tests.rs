//! A home in an engine: what every home must do, what one node leaves for the next, and what becomes of
//! it when a node dies between any two of its calls.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use trefoil::home::{Claim, EntryChanges, Home, conformance};
use trefoil::{
    Clock, Commit, Database, Error, ManualTime, NamespaceId, NewEvent, Options, Timestamp,
};

use super::{KvHome, KvHomeOptions};
use crate::contract::KvEngine as _;
use crate::memory::{CutOff, Fate, MemoryEngine, MemoryOptions};

/// A node of its own, with a clock that stands still and an engine that others share.
pub(super) struct TestNode {
    pub(super) home: KvHome,
    pub(super) engine: MemoryEngine,
    pub(super) time: Arc<ManualTime>,
    pub(super) cache: TempDir,
}

/// A node whose time a test moves.
pub(super) trait TimedNode {
    /// Lets time pass, and does what is due then.
    fn step(&self, time: Duration);
}

impl TimedNode for TestNode {
    fn step(&self, time: Duration) {
        self.time.advance(time);
        self.home.step();
    }
}

/// Lets time pass on these nodes, a little at a time.
pub(super) fn pass(nodes: &[&impl TimedNode], time: Duration) {
    const STEP: Duration = Duration::from_millis(250);
    for _ in 0..time.as_millis() / STEP.as_millis() {
        nodes.iter().for_each(|node| node.step(STEP));
    }
}

impl TestNode {
    pub(super) fn join(data: &MemoryEngine, seed: u64) -> Self {
        Self::join_as(data.connect(MemoryOptions::default()), seed).unwrap()
    }

    fn join_as(engine: MemoryEngine, seed: u64) -> trefoil::Result<Self> {
        Self::join_in(engine, seed, TempDir::new().unwrap())
    }

    /// Joins on a machine where another node was before.
    pub(super) fn join_in(
        engine: MemoryEngine,
        seed: u64,
        cache: TempDir,
    ) -> trefoil::Result<Self> {
        let time = ManualTime::new(start(seed));
        let options = KvHomeOptions {
            clock: Clock::new(time.clone()),
            is_driven: true,
            seed: Some(seed),
            ..KvHomeOptions::new(cache.path())
        };
        let home = KvHome::open(Arc::new(engine.clone()), options)?;
        announce(&home, &format!("node-{seed}"))?;
        Ok(Self {
            home,
            engine,
            time,
            cache,
        })
    }

    /// From now on nothing reaches the engine.
    pub(super) fn cut_off(&self) {
        let cut = CutOff::after(0, Fate::FailsBefore);
        self.engine.set_fates(Some(Box::new(cut)));
    }

    pub(super) fn claim(&self, id: &NamespaceId) -> trefoil::Result<Arc<dyn Claim>> {
        let entry = self.home.entry(id)?;
        let entry = entry.ok_or_else(|| Error::NamespaceNotFound(id.to_string()))?;
        self.home.claim(id, entry.stamp.incarnation, false)
    }

    pub(super) fn options(&self) -> Options {
        let mut options = Options::default();
        options.clock = Clock::new(self.time.clone());
        options
    }

    pub(super) fn open(&self, id: &NamespaceId) -> trefoil::Result<Database> {
        Database::open_claimed(self.claim(id)?, &self.options())
    }
}

fn announce(home: &KvHome, address: &str) -> trefoil::Result<()> {
    let cluster = home.cluster().expect("several nodes may have it");
    cluster.announce(address)
}

/// The clocks of nodes are seconds apart.
fn start(seed: u64) -> Timestamp {
    let time = format!("2030-01-01T00:00:{:02}Z", seed * 7 % 60);
    Timestamp::parse(&time).unwrap()
}

pub(super) fn id(name: &str) -> NamespaceId {
    NamespaceId::new(name).unwrap()
}

pub(super) fn commit() -> Commit {
    Commit::new([NewEvent::new("a-1", "Happened", "{}")])
}

#[test]
fn a_home_in_an_engine_keeps_the_contract() {
    for is_driven in [false, true] {
        let (engine, cache) = (MemoryEngine::default(), TempDir::new().unwrap());
        let open = || {
            let options = KvHomeOptions {
                is_driven,
                ..KvHomeOptions::new(cache.path())
            };
            KvHome::open(Arc::new(engine.clone()), options)
        };
        let home = open().unwrap();
        conformance::check(&home);
        home.close().unwrap();
        conformance::check_reopened(&open().unwrap());
    }
}

#[test]
fn other_nodes_learn_what_was_changed() {
    let data = MemoryEngine::default();
    let (first, second) = (TestNode::join(&data, 1), TestNode::join(&data, 2));
    let some = |ids: &[&str]| EntryChanges::Some(ids.iter().map(|name| id(name)).collect());
    assert_eq!(second.home.changed_entries().unwrap(), some(&[]));
    let stamp = first.home.create(&id("b"), b"text").unwrap();
    first.home.create(&id("a"), b"text").unwrap();
    first.home.replace(&id("b"), stamp, b"new").unwrap();
    assert_eq!(second.home.changed_entries().unwrap(), some(&["a", "b"]));
    assert_eq!(second.home.changed_entries().unwrap(), some(&[]));
    drop(second.home.delete(&id("b"), stamp.incarnation).unwrap());
    assert_eq!(first.home.changed_entries().unwrap(), some(&["a", "b"]));
    // What a node cannot tell at once it tells later.
    let fates = CutOff::after(2, Fate::FailsBefore);
    first.engine.set_fates(Some(Box::new(fates)));
    first.home.create(&id("c"), b"text").unwrap();
    first.engine.set_fates(None);
    assert_eq!(second.home.changed_entries().unwrap(), some(&["b"]));
    first.home.step();
    assert_eq!(second.home.changed_entries().unwrap(), some(&["c"]));
    // Who has missed too much reads everything again.
    for number in 0..1200 {
        let id = id(&format!("n-{number}"));
        first.home.create(&id, b"text").unwrap();
    }
    let missed = (0..30).map(|_| second.home.changed_entries().unwrap());
    assert!(missed.into_iter().any(|missed| missed == EntryChanges::All));
}

#[test]
fn a_deleted_namespace_leaves_nothing_but_a_tombstone() {
    let data = MemoryEngine::default();
    let node = TestNode::join(&data, 1);
    let home = &node.home;
    let incarnation = home.create(&id("a"), b"text").unwrap().incarnation;
    let database = node.open(&id("a")).unwrap();
    database.commit(commit()).unwrap();
    database.close().unwrap();
    home.delete(&id("a"), incarnation).unwrap()().unwrap();
    let listed = data.objects().list("", "", 100).unwrap();
    let left: Vec<&str> = listed
        .iter()
        .map(String::as_str)
        .filter(|name| !name.starts_with("nodes/") && !name.starts_with("changes/"))
        .collect();
    assert_eq!(left, ["registry/a"]);
    let cached = std::fs::read_dir(node.cache.path()).unwrap();
    let cached: Vec<_> = cached.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(cached, ["node-1"]);
}

/// A node that dies while it deletes a namespace has either deleted it or not, and the next one erases
/// what is left.
#[test]
fn a_deletion_that_is_cut_off_is_finished_by_the_next_node() {
    for left in 0.. {
        let data = MemoryEngine::default();
        let node = TestNode::join(&data, 1);
        let incarnation = node.home.create(&id("a"), b"text").unwrap().incarnation;
        let database = node.open(&id("a")).unwrap();
        database.commit(commit()).unwrap();
        database.close().unwrap();
        let cut = CutOff::after(left, Fate::FailsAfter);
        node.engine.set_fates(Some(Box::new(cut)));
        let deleted = node.home.delete(&id("a"), incarnation);
        let erased = deleted.and_then(|erase| erase());
        node.engine.set_fates(None);
        node.home.close().unwrap();

        let next = TestNode::join(&data, 2);
        match next.home.entry(&id("a")).unwrap() {
            Some(entry) => {
                assert_eq!(entry.stamp.incarnation, incarnation);
                let database = next.open(&id("a")).unwrap();
                assert_eq!(database.head().unwrap(), 1);
            }
            None => {
                let listed = data.objects().list("ns/", "", 100).unwrap();
                assert!(listed.is_empty(), "{left}: {listed:?}");
                let notes = data.objects().list("erase/", "", 100).unwrap();
                assert!(notes.is_empty(), "{left}: {notes:?}");
                next.home.create(&id("a"), b"new").unwrap();
                assert_eq!(next.open(&id("a")).unwrap().head().unwrap(), 0);
            }
        }
        if erased.is_ok() {
            assert!(left > 3, "it takes a few calls");
            return;
        }
    }
}

/// A node that dies at any call of opening, replacing and closing leaves what the next one can go on
/// with: either the old events or the new ones.
#[test]
fn a_replacement_that_is_cut_off_has_happened_or_not() {
    for left in (0..400).step_by(3) {
        let data = MemoryEngine::default();
        let node = TestNode::join(&data, 1);
        node.home.create(&id("a"), b"text").unwrap();
        let database = node.open(&id("a")).unwrap();
        for _ in 0..3 {
            database.commit(commit()).unwrap();
        }
        let cut = CutOff::after(left, Fate::FailsAfter);
        node.engine.set_fates(Some(Box::new(cut)));
        let cleared = database.clear();
        drop(database);
        node.engine.set_fates(None);
        node.home.close().unwrap();

        let next = TestNode::join(&data, 2);
        let database = next.open(&id("a")).unwrap();
        let head = database.head().unwrap();
        match cleared {
            Ok(()) => assert_eq!(head, 0, "{left}"),
            Err(_) => assert!(head == 0 || head == 3, "{left}: {head}"),
        }
        assert_eq!(database.commit(commit()).unwrap().position, head + 1);
    }
}
