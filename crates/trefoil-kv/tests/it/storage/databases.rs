//! Whole databases on `KvStorage`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use trefoil::home::{Claim, Facts, OpenedGeneration};
use trefoil::{Commit, Database, Error, NewEvent, Options, Result, Selection, Tracking};
use trefoil_kv::contract::{Kv, KvEngine as _};
use trefoil_kv::memory::{CutOff, Fate, MemoryEngine, MemoryOptions};
use trefoil_kv::{KvStorage, KvStorageOptions, erase_generation, generations};
use trefoil_storage::{BlockCache, ReadReach};

use super::tiny;
use crate::property::{Open, check};

/// A namespace that is opened again and again, as one node after the other would.
#[derive(Debug)]
struct Namespace {
    engine: MemoryEngine,
    directory: tempfile::TempDir,
    /// The generation that counts, when something is due, and the last epoch.
    facts: Mutex<(Facts, u64)>,
}

#[derive(Debug)]
struct TestClaim {
    namespace: Arc<Namespace>,
    engine: MemoryEngine,
    kv: Arc<dyn Kv>,
    epoch: u64,
}

impl Namespace {
    fn new(options: MemoryOptions) -> Arc<Self> {
        let facts = Facts {
            generation: 1,
            due: None,
        };
        Arc::new(Self {
            engine: MemoryEngine::new(options),
            directory: tempfile::tempdir().unwrap(),
            facts: Mutex::new((facts, 0)),
        })
    }

    fn claim(self: &Arc<Self>) -> Arc<dyn Claim> {
        self.claim_from(&self.engine)
    }

    /// Claims the namespace over a connection.
    fn claim_from(self: &Arc<Self>, engine: &MemoryEngine) -> Arc<dyn Claim> {
        let mut facts = self.facts.lock();
        facts.1 += 1;
        let epoch = facts.1;
        Arc::new(TestClaim {
            namespace: Arc::clone(self),
            engine: engine.clone(),
            kv: engine.open("namespace", epoch).unwrap(),
            epoch,
        })
    }
}

impl TestClaim {
    fn options(&self, generation: u64) -> KvStorageOptions {
        KvStorageOptions {
            generation,
            epoch: self.epoch,
            ..KvStorageOptions::new("objects/", self.namespace.directory.path())
        }
    }

    fn engine(&self) -> Arc<MemoryEngine> {
        Arc::new(self.engine.clone())
    }
}

impl Claim for TestClaim {
    fn facts(&self) -> Result<Facts> {
        Ok(self.namespace.facts.lock().0)
    }

    fn open(
        &self,
        generation: u64,
        cache: &Arc<BlockCache>,
        reach: &ReadReach<'_>,
    ) -> Result<OpenedGeneration> {
        let options = KvStorageOptions {
            cache: Arc::clone(cache),
            ..self.options(generation)
        };
        let storage = KvStorage::open(self.engine(), Arc::clone(&self.kv), &options, reach)?;
        Ok(OpenedGeneration {
            storage: Arc::new(storage),
            cut_bytes: 0,
            place: PathBuf::from("namespace"),
        })
    }

    fn switch(&self, generation: u64) -> Result<()> {
        self.namespace.facts.lock().0.generation = generation;
        Ok(())
    }

    fn remove_others(&self) -> Result<()> {
        let current = self.facts()?.generation;
        for generation in generations(&*self.kv)? {
            if generation != current {
                let options = self.options(generation);
                erase_generation(self.engine(), Arc::clone(&self.kv), &options)?;
            }
        }
        Ok(())
    }

    fn set_due(&self, due: Option<u64>) -> Result<()> {
        self.namespace.facts.lock().0.due = due;
        Ok(())
    }

    fn release(&self) {}
}

fn place(options: fn() -> MemoryOptions) -> impl Fn() -> Open {
    move || {
        let namespace = Namespace::new(options());
        Box::new(move |options| Database::open_claimed(namespace.claim(), options))
    }
}

/// Everything small, so that moves of the tail, merges and snapshots happen all the time.
fn small_parts() -> Options {
    Options::default().with_tail_events_max(8)
}

#[test]
fn a_database_agrees_with_the_model() {
    check(place(MemoryOptions::default), &small_parts(), 24, 100);
}

#[test]
fn a_database_agrees_with_the_model_if_everything_is_split() {
    check(place(tiny), &small_parts(), 8, 80);
}

#[test]
fn a_database_survives_its_machine() {
    let namespace = Namespace::new(MemoryOptions::default());
    let options = small_parts();
    let database = Database::open_claimed(namespace.claim(), &options).unwrap();
    for number in 0..100 {
        let event = NewEvent::new(format!("account-{}", number % 7), "Opened", "{}");
        database.commit(Commit::new([event])).unwrap();
    }
    database.checkpoint().unwrap();
    database.compact().unwrap();
    // The machine is gone with everything that it had.
    drop(database);
    std::fs::remove_dir_all(namespace.directory.path()).unwrap();
    let database = Database::open_claimed(namespace.claim(), &options).unwrap();
    assert_eq!(database.head().unwrap(), 100);
    let read = Selection::stream("account-3").limit(100);
    assert_eq!(database.read(&read).unwrap().len(), 14);
    let event = NewEvent::new("account-3", "Closed", "{}");
    let committed = database.commit(Commit::new([event])).unwrap();
    assert_eq!(committed.position, 101);
}

#[test]
fn commits_of_a_slow_engine_share_their_trips() {
    let namespace = Namespace::new(MemoryOptions {
        delay: Duration::from_millis(20),
        ..MemoryOptions::default()
    });
    let database = Database::open_claimed(namespace.claim(), &Options::default()).unwrap();
    let before = namespace.engine.n_calls();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let database = &database;
            scope.spawn(move || {
                for number in 0..5 {
                    let stream = format!("account-{writer}");
                    let commit = Commit::new([NewEvent::new(&stream, "Opened", "{}")]);
                    let commit = commit.expect_version(&stream, number - 1);
                    database.commit(commit).unwrap();
                }
            });
        }
    });
    assert_eq!(database.head().unwrap(), 40);
    let calls = namespace.engine.n_calls() - before;
    assert!(calls < 40, "{calls} calls for 40 commits of 8 writers");
}

/// What a client knows of a database.
#[derive(Debug, Default)]
struct Known {
    /// The data of the events that were acknowledged since the last clearing.
    acknowledged: Vec<String>,
    /// That of the last one, if nobody knows whether it was written.
    unknown: Option<String>,
    /// Whether everything may have been cleared.
    may_be_cleared: bool,
}

impl Known {
    fn commit(&mut self, database: &Database, number: u64) -> Result<()> {
        let data = number.to_string();
        let event = NewEvent::new(format!("account-{}", number % 3), "Changed", data.clone());
        let tracking = Tracking::new("elsewhere", number + 1);
        let commit = Commit::new([event]).with_tracking(tracking);
        match database.commit(commit) {
            Ok(_) => self.acknowledged.push(data),
            Err(error) => {
                let is_unknown = matches!(error, Error::Unknown { .. });
                self.unknown = is_unknown.then_some(data);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Does what a client does until something fails.
    fn work(&mut self, database: &Database) -> Result<()> {
        for number in 0..16 {
            self.commit(database, number)?;
            if number % 8 == 3 {
                database.checkpoint()?;
            }
            if number % 8 == 6 {
                database.compact()?;
            }
            if number == 7 {
                self.may_be_cleared = true;
                database.clear()?;
                *self = Self::default();
            }
        }
        Ok(())
    }

    /// Checks a database that was opened again.
    fn check(&self, database: &Database, at: &str) {
        let events = database.read(&Selection::all().limit(100)).unwrap();
        let found: Vec<String> = events
            .iter()
            .map(|event| String::from_utf8(event.data().to_vec()).unwrap())
            .collect();
        let positions: Vec<u64> = events.iter().map(trefoil::Event::position).collect();
        assert!(positions.into_iter().eq(1..=found.len() as u64), "{at}");
        let mut with_unknown = self.acknowledged.clone();
        with_unknown.extend(self.unknown.clone());
        let is_known = found == self.acknowledged || found == with_unknown;
        let is_cleared = self.may_be_cleared && found.is_empty();
        assert!(is_known || is_cleared, "{at}: {found:?}, {self:?}");
        let tracked = database.tracking("elsewhere").unwrap();
        let last = found.last().map(|last| last.parse::<u64>().unwrap() + 1);
        if !found.is_empty() {
            assert_eq!(tracked, last, "{at}");
        }
        let streams: usize = (0..3)
            .map(|number| Selection::stream(format!("account-{number}")).limit(100))
            .map(|read| database.read(&read).unwrap().len())
            .sum();
        assert_eq!(streams, found.len(), "{at}");
    }
}

/// Works on a database that is cut off at a call. Returns whether all was done before it.
fn cut_off_at(n_done: u64) -> bool {
    let fate = [Fate::FailsBefore, Fate::FailsAfter][n_done as usize % 2];
    let namespace = Namespace::new(MemoryOptions::default());
    let node = namespace.engine.connect(MemoryOptions::default());
    let claim = namespace.claim_from(&node);
    node.set_fates(Some(Box::new(CutOff::after(n_done, fate))));
    let mut known = Known::default();
    let opened = Database::open_claimed(claim, &small_parts());
    let worked = opened.and_then(|database| known.work(&database));
    let database = Database::open_claimed(namespace.claim(), &small_parts()).unwrap();
    known.check(&database, &format!("cut at call {n_done}, which {fate:?}"));
    Known::default().commit(&database, 100).unwrap();
    worked.is_ok()
}

/// A machine is lost at any call of opening, committing, checkpoints, snapshots, merges and clearing.
#[test]
fn a_database_may_be_cut_off_at_any_call() {
    // They wait for the disk most of the time.
    std::thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || {
                let whole = (first..2000).step_by(4).find(|n_done| cut_off_at(*n_done));
                assert!(whole.is_some_and(|n_done| n_done > 50), "{whole:?}");
            });
        }
    });
}
