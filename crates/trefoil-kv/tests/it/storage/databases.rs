//! Whole databases on `KvStorage`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use trefoil::home::{Claim, Facts, OpenedGeneration};
use trefoil::{Commit, Database, NewEvent, Options, Result, Selection};
use trefoil_kv::contract::{Engine as _, Kv};
use trefoil_kv::memory::{MemoryEngine, MemoryOptions};
use trefoil_kv::{KvStorage, KvStorageOptions, erase_generation, generations};
use trefoil_storage::ReadReach;

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
        let mut facts = self.facts.lock();
        facts.1 += 1;
        let epoch = facts.1;
        Arc::new(TestClaim {
            namespace: Arc::clone(self),
            kv: self.engine.open("namespace", epoch).unwrap(),
            epoch,
        })
    }
}

impl TestClaim {
    fn options(&self, generation: u64, cache_bytes: u64) -> KvStorageOptions {
        KvStorageOptions {
            generation,
            epoch: self.epoch,
            cache_bytes,
            ..KvStorageOptions::new("objects/", self.namespace.directory.path())
        }
    }

    fn engine(&self) -> Arc<MemoryEngine> {
        Arc::new(self.namespace.engine.clone())
    }
}

impl Claim for TestClaim {
    fn facts(&self) -> Result<Facts> {
        Ok(self.namespace.facts.lock().0)
    }

    fn open(
        &self,
        generation: u64,
        cache_bytes: u64,
        reach: &ReadReach<'_>,
    ) -> Result<OpenedGeneration> {
        let options = self.options(generation, cache_bytes);
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
                let options = self.options(generation, 0);
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
