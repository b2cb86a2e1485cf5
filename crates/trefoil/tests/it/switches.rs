//! A switch of generations that fails: what counts then is what the home says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trefoil::home::{Claim, Facts, MemoryHome, OpenedGeneration};
use trefoil::{Commit, Database, Error, NewEvent, Options, Result};
use trefoil_storage::{BlockCache, ReadReach};

/// A claim whose next switch says that it failed.
#[derive(Debug)]
struct FailingClaim {
    inner: Arc<dyn Claim>,
    /// Whether the switch is done all the same.
    is_done: bool,
    /// Whether nobody can tell which generation counts after it failed.
    is_unknown: Arc<AtomicBool>,
    has_failed: AtomicBool,
}

impl Claim for FailingClaim {
    fn facts(&self) -> Result<Facts> {
        match self.is_unknown.load(Ordering::SeqCst) && self.has_failed.load(Ordering::SeqCst) {
            true => Err(Error::invalid("cannot be read")),
            false => self.inner.facts(),
        }
    }

    fn open(
        &self,
        generation: u64,
        cache: &Arc<BlockCache>,
        reach: &ReadReach<'_>,
    ) -> Result<OpenedGeneration> {
        self.inner.open(generation, cache, reach)
    }

    fn switch(&self, generation: u64) -> Result<()> {
        if self.has_failed.swap(true, Ordering::SeqCst) {
            return self.inner.switch(generation);
        }
        if self.is_done {
            self.inner.switch(generation)?;
        }
        Err(Error::invalid("the network failed"))
    }

    fn remove_others(&self) -> Result<()> {
        self.inner.remove_others()
    }

    fn set_due(&self, due: Option<u64>) -> Result<()> {
        self.inner.set_due(due)
    }

    fn release(&self) {
        self.inner.release();
    }
}

/// Returns a database with two events whose next switch fails.
fn database(is_done: bool, is_unknown: &Arc<AtomicBool>) -> Database {
    let claim = FailingClaim {
        inner: MemoryHome::claim_new().unwrap(),
        is_done,
        is_unknown: Arc::clone(is_unknown),
        has_failed: AtomicBool::new(false),
    };
    let database = Database::open_claimed(Arc::new(claim), &Options::default()).unwrap();
    for _ in 0..2 {
        write(&database).unwrap();
    }
    database
}

fn write(database: &Database) -> Result<u64> {
    let event = NewEvent::new("account-1", "Opened", "{}");
    Ok(database.commit(Commit::new([event]))?.position)
}

#[test]
fn after_a_switch_that_was_not_done_everything_is_as_it_was() {
    let database = database(false, &Arc::default());
    assert!(database.clear().is_err());
    assert_eq!(write(&database).unwrap(), 3);
    database.clear().unwrap();
    assert_eq!(write(&database).unwrap(), 1);
}

#[test]
fn a_switch_that_was_done_counts_although_it_failed() {
    let database = database(true, &Arc::default());
    database.clear().unwrap();
    assert_eq!(write(&database).unwrap(), 1);
}

#[test]
fn nothing_is_written_while_nobody_knows_which_generation_counts() {
    let is_unknown = Arc::new(AtomicBool::new(true));
    let database = database(true, &is_unknown);
    assert!(database.clear().is_err());
    let refused = write(&database);
    assert!(matches!(refused, Err(Error::Closed(_))), "{refused:?}");
    assert!(database.reopen().is_err());
    is_unknown.store(false, Ordering::SeqCst);
    database.reopen().unwrap();
    assert_eq!(write(&database).unwrap(), 1, "it is the one that counts");
}
