//! The database: the front door of the library.

mod answers;
mod asynchronous;
mod at_hand;
pub(crate) mod engine;
pub(crate) mod host;
mod info;
mod lead;
#[cfg(test)]
mod lead_tests;
mod moving;
pub(crate) mod options;
mod read_ahead;
pub(crate) mod recovery;
#[cfg(test)]
mod recovery_tests;
mod reopen;
mod replacement;
#[cfg(test)]
pub(crate) mod test_storage;
mod traced;
#[cfg(test)]
mod waiting_tests;
mod write_size;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use trefoil_core::{
    Commit, Committed, Condition, Error, Event, ImportedEvent, Result, Selection, Timestamp,
    Tracking, limits,
};
use trefoil_state::{Call, Commands, Meter, Reply, Survey};
use trefoil_storage::Usage;

use crate::background::Background;
use crate::background::quiet::CLOSING_PATIENCE;
use crate::database::engine::{Engine, unanswered};
use crate::home::{Claim, Facts, LocalHome, MemoryHome};
use crate::index::Manifest;
use crate::read::condition::{self, CheckedConditions};
use crate::read::explain::Explanation;
use crate::read::listing::{List, first_at};
use crate::read::look::{self, StateSnapshot};
use crate::read::subscription::Subscription;
use crate::read::{LogMoment, ReadShortage};
use crate::state::{View, Watch};
use crate::stats::{StatsSnapshot, Trace};
use crate::time::wake::Wake;
use crate::write::transaction::{Executed, Transaction};
use crate::write::{ImportBatch, Work, check_version};
use crate::{Options, Page, read};

pub use info::Info;
pub(crate) use reopen::reopen_in_background;
pub use replacement::Replacement;

/// One namespace's events: a cheap handle that can be cloned and shared between threads.
///
/// Calls that write block until the commit is durable, except for their `_async` twins. Calls that
/// read see durable events only.
#[derive(Debug, Clone)]
pub struct Database {
    inner: Arc<DatabaseShared>,
    /// What is told how long things take.
    trace: Option<Arc<Trace>>,
    /// Where it is noted that a read would have to wait for the disk, if this handle does not wait.
    shortage: Option<Arc<ReadShortage>>,
}

/// What all handles of a database share.
#[derive(Debug)]
pub(crate) struct DatabaseShared {
    claim: Arc<dyn Claim>,
    /// Whether this is a generation that does not count yet: the claim belongs to another database.
    is_beside: bool,
    options: Options,
    background: Arc<Background>,
    /// The current generation; `None` once the database is closed, and while it is being opened
    /// again.
    engine: RwLock<Option<Arc<Engine>>>,
    /// Whether its storage may wait, which is the same for every generation.
    may_wait: bool,
    is_closed: AtomicBool,
    /// What is said of where the namespace is, once it was chosen who has it next.
    successor: Mutex<Option<Error>>,
    /// Whether other events are being written, to replace those that there are.
    is_being_replaced: AtomicBool,
    wake: Arc<Wake>,
    /// The number of the current generation. Held while it is being replaced.
    generation: Mutex<u64>,
    recovery: Recovery,
    /// When it must be opened again, once it is closed; at once, if nobody knows.
    deadline: AtomicU64,
}

/// What opening a database had to do.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// How long it took.
    pub elapsed: Duration,
    /// How many events after the last checkpoint were read again.
    pub replayed_events: u64,
    /// Bytes of an unfinished write that were cut from the end of the log and kept aside.
    pub cut_bytes: u64,
}

impl Database {
    /// Opens the database in `directory`, creating it if it is not there.
    pub fn open(directory: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Self::open_claimed(
            LocalHome::claim_directory(directory, options.local())?,
            options,
        )
    }

    /// Opens a database that lives and dies with the process.
    pub fn in_memory(options: &Options) -> Result<Self> {
        Self::open_claimed(MemoryHome::claim_new()?, options)
    }

    /// Opens the database of a namespace that was claimed from its home. The claim is released when
    /// the database is closed.
    pub fn open_claimed(claim: Arc<dyn Claim>, options: &Options) -> Result<Self> {
        let background = Background::start(options.cache_bytes, options.clock.clone())?;
        Self::open_sharing(claim, options, background)
    }

    /// Opens a database whose background work is done by threads that it shares with others.
    pub(crate) fn open_sharing(
        claim: Arc<dyn Claim>,
        options: &Options,
        background: Arc<Background>,
    ) -> Result<Self> {
        let began = background.clock.steady();
        let Facts { generation, due } = claim.facts()?;
        let opened = claim.open(generation, &background.block_cache, &Manifest::reach)?;
        claim.remove_others()?;
        let wake = Arc::new(Wake::new(Arc::clone(&claim), due));
        let (engine, replayed_events) = Engine::open(
            generation,
            opened.storage,
            Arc::clone(&wake),
            Arc::clone(&background),
            options,
        )?;
        let recovery = Recovery {
            elapsed: background.clock.since(began),
            replayed_events,
            cut_bytes: opened.cut_bytes,
        };
        background.stats.record_recovery(&recovery);
        let inner = Arc::new(DatabaseShared {
            claim,
            is_beside: false,
            options: options.clone(),
            background,
            engine: RwLock::new(None),
            may_wait: engine.may_wait,
            is_closed: AtomicBool::new(false),
            successor: Mutex::default(),
            is_being_replaced: AtomicBool::new(false),
            wake,
            generation: Mutex::new(generation),
            recovery,
            deadline: AtomicU64::new(0),
        });
        inner.put(engine)?;
        let lost = Arc::downgrade(&inner);
        inner
            .claim
            .on_lost(Box::new(move || reopen::close_in_background(lost)));
        Ok(Self {
            inner,
            trace: None,
            shortage: None,
        })
    }

    pub(crate) fn engine(&self) -> Result<Arc<Engine>> {
        if let Some(engine) = &*self.inner.engine.read() {
            return Ok(Arc::clone(engine));
        }
        Err(match self.inner.is_closed.load(Ordering::SeqCst) {
            true => self.inner.closed(),
            false => reopen::reopening(),
        })
    }

    /// Returns what opening had to do.
    pub fn recovery(&self) -> &Recovery {
        &self.inner.recovery
    }

    /// Returns whether reads may wait for a network. Then none should be made on a thread that serves
    /// others: the async forms do so on threads of the library.
    pub fn may_wait(&self) -> bool {
        self.inner.may_wait
    }

    /// Returns whether a read of the state may have to be waited for: of a storage that may wait, and
    /// while reads of the disk take long.
    pub fn state_may_wait(&self) -> bool {
        self.may_wait()
            || self
                .engine()
                .is_ok_and(|engine| engine.store.is_slow_to_read())
    }

    /// Returns how many bytes of data an event may have.
    pub fn event_data_bytes_max(&self) -> usize {
        self.inner.options.event_data_bytes_max
    }

    /// Returns the commands on the state that it knows.
    pub fn commands(&self) -> &Commands {
        &self.inner.options.commands
    }

    /// Writes a commit and returns when it is durable. Blocks the thread.
    pub fn commit(&self, commit: Commit) -> Result<Committed> {
        let commit = self.accept_commit(commit)?;
        self.confirm(self.engine()?.commit(commit))
    }

    fn accept_commit(&self, mut commit: Commit) -> Result<Commit> {
        commit.validate(self.inner.options.event_data_bytes_max)?;
        self.take_commit(&commit)?;
        commit.settle();
        Ok(commit)
    }

    /// Appends events with the positions and times they bring along, all or nothing, and returns
    /// when they are durable. An event in a stream whose id another event has is refused; without
    /// a stream it is taken. Blocks the thread.
    pub fn import(&self, events: Vec<ImportedEvent>) -> Result<()> {
        self.take_import(&events, false)?;
        self.import_events(events, false)
    }

    /// As [`Self::import`], but events whose ids others have get new ones.
    pub fn import_with_new_ids(&self, events: Vec<ImportedEvent>) -> Result<()> {
        self.take_import(&events, false)?;
        self.import_events(events, true)
    }

    /// The same for an import that waits for [`Self::import_pause`] before each call: it is not refused because
    /// somebody else was faster, and makes up for that by waiting longer.
    pub fn import_paced(&self, events: Vec<ImportedEvent>, with_new_ids: bool) -> Result<()> {
        self.take_import(&events, true)?;
        self.import_events(events, with_new_ids)
    }

    fn import_events(&self, events: Vec<ImportedEvent>, with_new_ids: bool) -> Result<()> {
        match Self::accept_import(events, with_new_ids)? {
            Some(import) => {
                let written = self.engine()?.write(Work::Import(import));
                self.confirm(written.map(drop))
            }
            None => Ok(()),
        }
    }

    fn accept_import(
        mut events: Vec<ImportedEvent>,
        with_new_ids: bool,
    ) -> Result<Option<ImportBatch>> {
        if events.is_empty() {
            return Ok(None);
        }
        if events.len() > limits::EVENTS_PER_COMMIT_MAX {
            let limit = limits::EVENTS_PER_COMMIT_MAX;
            return Err(Error::over_limit("number of events", events.len(), limit));
        }
        for (index, event) in events.iter().enumerate() {
            event.validate().map_err(|error| Error::ImportStopped {
                index,
                error: Box::new(error),
            })?;
        }
        let bytes: usize = events.iter().map(|event| event.event.size()).sum();
        if bytes > limits::COMMIT_BYTES_MAX {
            let limit = limits::COMMIT_BYTES_MAX;
            return Err(Error::over_limit("bytes of an import", bytes, limit));
        }
        for event in &mut events {
            event.event.settle();
        }
        Ok(Some(ImportBatch {
            events,
            with_new_ids,
        }))
    }

    /// Reads events.
    pub fn read(&self, read: &Selection) -> Result<Vec<Event>> {
        let (events, _) = self.read_with_head(read)?;
        Ok(events)
    }

    /// Reads events, and says where the log ended for this read: the position after which a
    /// condition on the same query has to look for what is new.
    pub fn read_with_head(&self, read: &Selection) -> Result<(Vec<Event>, u64)> {
        let page = self.ask(|engine| {
            let moment = LogMoment::new(engine).read_by(self);
            read::read_all(&moment, read)
        })?;
        Ok((page.events, page.head))
    }

    /// Checks conditions as a commit would, without writing anything. Blocks the thread.
    pub fn check(&self, conditions: &[Condition]) -> Result<()> {
        trefoil_core::validate_conditions(conditions)?;
        self.ask(|engine| {
            let checked = condition::check(engine, conditions)?;
            decide(engine, conditions, &checked)
        })
    }

    /// Executes a transaction and returns when it is durable. Blocks the thread.
    pub fn transact(&self, transaction: Transaction) -> Result<Executed> {
        only(self.transact_all(vec![transaction])?)
    }

    /// Executes transactions, one after the other and each on its own, and returns when all are
    /// durable: the result of each, in their order. Blocks the thread.
    pub fn transact_all(&self, transactions: Vec<Transaction>) -> Result<Vec<Result<Executed>>> {
        let accepted = self.accept_all(transactions);
        let executed = self.engine()?.execute(accepted)?;
        Ok(self.confirm_all(executed))
    }

    fn accept_all(&self, transactions: Vec<Transaction>) -> Vec<Result<Transaction>> {
        let accept = |mut transaction: Transaction| {
            transaction.validate(self.inner.options.event_data_bytes_max)?;
            self.take_transaction(&transaction)?;
            transaction.settle();
            Ok(transaction)
        };
        transactions.into_iter().map(accept).collect()
    }

    /// Runs commands that only read, all on the state of one moment, which is durable.
    pub fn look(&self, calls: &[Call]) -> Result<Vec<Reply>> {
        self.look_within(calls, &Meter::asking(None))
    }

    /// Returns the same; what the replies take is counted by `meter`.
    pub fn look_within(&self, calls: &[Call], meter: &Meter<'_>) -> Result<Vec<Reply>> {
        self.ask(|engine| look::look(engine, calls.iter(), meter))
    }

    /// Returns the state as it is now, for a read that takes several steps.
    pub fn snapshot(&self) -> Result<StateSnapshot> {
        self.ask(|engine| Ok(StateSnapshot::new(engine)))
    }

    /// Returns the same for a thread that must not wait for the disk. While reads from there take long, a
    /// command that needs something that is not in memory fails, and
    /// [`StateSnapshot::is_short`] returns true: it has to be run elsewhere. While they are quick,
    /// everything is read.
    pub fn snapshot_at_hand(&self) -> Result<StateSnapshot> {
        self.ask(|engine| Ok(StateSnapshot::at_hand(engine)))
    }

    /// Returns how many keys there are, and how many of them expire: exact where few do, else by a
    /// sample.
    pub fn survey(&self) -> Result<Survey> {
        self.ask(|engine| look::survey(engine))
    }

    /// Begins to watch keys for a transaction.
    pub fn watch(&self, keys: &[Bytes]) -> Result<Watch> {
        let mut watch = Watch::new(&self.engine()?.store.watches);
        self.watch_more(&mut watch, keys)?;
        Ok(watch)
    }

    /// Watches more keys.
    pub fn watch_more(&self, watch: &mut Watch, keys: &[Bytes]) -> Result<()> {
        let now = self.inner.background.clock.now();
        self.ask(|engine| watch.add(&engine.store, now.millis(), keys))
    }

    /// Cleans what is due of it, which takes a while. Blocks the thread.
    pub(crate) fn settle(&self) -> Result<()> {
        self.engine()?.settle();
        Ok(())
    }

    /// Returns when a database that was closed must be opened again, because something such as a
    /// key of it expires, in milliseconds since 1970.
    pub(crate) fn deadline_when_closed(&self) -> u64 {
        self.inner.deadline.load(Ordering::SeqCst)
    }

    /// Returns the number of the last durable commit; 0 if there is none.
    pub fn last_commit(&self) -> Result<u64> {
        self.ask(|engine| Ok(engine.writer.last_commit()))
    }

    /// Returns the position that was last recorded for a source of tracked positions.
    pub fn tracking(&self, source: &str) -> Result<Option<u64>> {
        self.ask(|engine| View::new(&engine.store).tracking(source))
    }

    /// Returns the sources of tracked positions by name, with the position that was last recorded for
    /// each.
    pub fn trackings(&self, list: &List) -> Result<Vec<Tracking>> {
        self.ask(|engine| View::new(&engine.store).trackings(list))
    }

    /// Reads events until there are `read.limit` of them or about `bytes_max` bytes, for answers
    /// that are sent while they are read.
    pub fn read_page(&self, read: &Selection, bytes_max: usize) -> Result<Page> {
        self.ask(|engine| {
            let moment = LogMoment::new(engine).read_by(self);
            read::execute(&moment, read, bytes_max)
        })
    }

    /// How a read would find its events.
    pub fn explain(&self, read: &Selection) -> Result<Explanation> {
        self.ask(|engine| read::explain(&LogMoment::new(engine), read))
    }

    /// Returns the last event of a stream, optionally of one type.
    pub fn last(&self, stream: &str, event_type: Option<&str>) -> Result<Option<Event>> {
        let mut last = Selection::stream(stream).backwards().limit(1);
        last.filter.event_type = event_type.map(str::to_owned);
        Ok(self.read(&last)?.pop())
    }

    /// Returns the position of the last event of a stream, also if that was removed; `None` if there was
    /// never such a stream.
    pub fn version(&self, stream: &str) -> Result<Option<u64>> {
        self.ask(|engine| engine.version(stream))
    }

    /// Returns the global position of the last durable event; 0 if there is none.
    pub fn head(&self) -> Result<u64> {
        self.ask(|engine| Ok(engine.writer.head()))
    }

    /// Returns the first position whose event's time is at or after `time`.
    pub fn position_at(&self, time: Timestamp) -> Result<Option<u64>> {
        let first = self.ask(|engine| first_at(engine, time))?;
        Ok(first.map(|event| event.position()))
    }

    /// Counts and times of the database as a whole.
    pub fn info(&self) -> Result<Info> {
        self.ask(|engine| Info::of(engine))
    }

    /// Follows the events that `read` selects, from where it begins on, for ever. Its limit and its
    /// direction do not matter.
    pub fn subscribe(&self, read: Selection) -> Subscription {
        // A closed database has no generation; the subscription will say so.
        let generation = self.engine().map_or(0, |engine| engine.generation);
        Subscription::new(self.clone(), generation, read)
    }

    /// Moves the part of the index that is in memory to disk, and returns when that is done.
    pub fn checkpoint(&self) -> Result<()> {
        self.engine()?.checkpoint()
    }

    /// Drops what was removed from the log, packs the index as tightly as it goes and compresses all old
    /// segments, and returns when that is done.
    pub fn compact(&self) -> Result<()> {
        self.engine()?.compact()
    }

    /// Returns how much room it takes on disk.
    pub(crate) fn usage(&self) -> Result<Usage> {
        self.engine()?.storage.usage()
    }

    /// Returns how many bytes of it are on disk, without the room that the log has prepared.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        let usage = self.usage()?;
        Ok(usage.log_used_bytes + usage.map_bytes)
    }

    /// Returns how many bytes of memory the storage holds that are not in the cache of blocks.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.engine()
            .map_or(0, |engine| engine.storage.held_bytes())
    }

    /// Returns what the database has counted since it was opened.
    pub fn stats(&self) -> Result<StatsSnapshot> {
        Ok(self.engine()?.writer.stats.snapshot())
    }

    /// Closes the database: finishes the commits that were handed in, refuses new ones, ends
    /// subscriptions, moves what is in memory alone to disk if it is much, so that opening it again is
    /// short, and releases the namespace. All handles are closed with it.
    pub fn close(&self) -> Result<()> {
        self.close_saving(CLOSING_PATIENCE)
    }

    /// Closes the database, and takes at most this long to move what is in memory alone to disk.
    pub(crate) fn close_saving(&self, patience: Duration) -> Result<()> {
        self.inner.close(patience)
    }
}

impl Drop for DatabaseShared {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.get_mut().take() {
            engine.end(&self.closed(), Duration::ZERO);
            let_go(&engine);
        }
        self.release();
    }
}

impl DatabaseShared {
    fn close(&self, patience: Duration) -> Result<()> {
        // It is nobody's in particular.
        *self.successor.lock() = None;
        self.end(patience, || self.release())
    }

    /// Closes what is open, and lets others have the namespace by `release`.
    fn end(&self, patience: Duration, release: impl FnOnce()) -> Result<()> {
        let mut current = self.engine.write();
        self.is_closed.store(true, Ordering::SeqCst);
        let engine = current.take();
        drop(current);
        // Whatever becomes of it, others may have the namespace.
        let noted = engine.map_or(Ok(()), |engine| {
            engine.end(&self.closed(), patience);
            let deadline = engine.deadline_when_closed();
            self.deadline.store(deadline, Ordering::SeqCst);
            // What is due is the next owner's business, if there is one.
            let noted = match self.claim.is_lost() {
                true => Ok(()),
                false => engine.wake.close(deadline),
            };
            let_go(&engine);
            noted
        });
        release();
        noted
    }

    /// Lets others have the namespace.
    fn release(&self) {
        if !self.is_beside {
            self.claim.release();
        }
    }
}

/// Whether all conditions hold, now that their queries have been looked into.
fn decide(engine: &Engine, conditions: &[Condition], checked: &CheckedConditions) -> Result<()> {
    for (condition, wanted) in conditions.iter().enumerate() {
        if let Some(position) = checked.match_of(condition) {
            return Err(Error::ConditionFailed {
                condition,
                position,
            });
        }
        if let Condition::StreamVersion { stream, expected } = wanted {
            let actual = engine.version(stream)?;
            check_version(condition, stream, *expected, actual)?;
        }
    }
    Ok(())
}

/// Returns the result of the only one of several transactions.
fn only(mut executed: Vec<Result<Executed>>) -> Result<Executed> {
    executed.pop().unwrap_or_else(|| Err(unanswered()))
}

/// How long a closed engine waits for reads that are still under way.
const RELEASE_PATIENCE: Duration = Duration::from_secs(10);

/// Ends the waiting for events of a closed engine that is not the current one any more, and waits until the
/// calls that still use it have returned, so that dropping it frees its files.
fn let_go(engine: &Arc<Engine>) {
    engine.writer.waiting.end();
    let (clock, began) = (engine.clock(), engine.clock().steady());
    while Arc::strong_count(engine) > 1 && clock.since(began) < RELEASE_PATIENCE {
        std::thread::sleep(Duration::from_micros(200));
    }
}
