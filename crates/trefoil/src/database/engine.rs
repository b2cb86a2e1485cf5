//! One generation of a database, open: its storage, index and writer, and the work behind them.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use trefoil_core::{Cause, Commit, Committed, Condition, Error, Ids, Result};
use trefoil_storage::{Storage, Upkeep};

use crate::Options;
use crate::background::deferred::{MERGES, SNAPSHOTS, UPKEEP};
use crate::background::exclusive::Exclusive;
use crate::background::write_load::WriteLoad;
use crate::background::{Background, Lane, Tenant};
use crate::database::DatabaseShared;
use crate::database::recovery::{checkpoint, replay};
use crate::index::Index;
use crate::read::condition::{self, CheckedCommit, CheckedConditions, ConditionCheck};
use crate::read::look::Looks;
use crate::removal::{LostEvents, RemovalUpkeep, true_end};
use crate::state::StateStore;
use crate::stats::{BackgroundWork, RequestStage, Trace};
use crate::time::clock::Clock;
use crate::time::slowness::RecentSlowness;
use crate::time::timer::Sleeper as _;
use crate::time::wake::Wake;
use crate::write::transaction::Transaction;
use crate::write::{Caller, CheckedTransaction, Executions, Work, WriteRequest, Writer};

/// If looking something up in the index takes longer than this, the disk is waited for, or there is so much
/// to do that it should not be done on a thread that serves others.
const SLOW_LOOKUP: Duration = Duration::from_micros(200);
/// A lookup counts as at most this long.
const COUNTED_LOOKUP_MAX: Duration = Duration::from_micros(500);

/// After this many bytes of new events the log gets its upkeep: room ahead, compression behind.
const UPKEEP_BYTES: usize = 64 * 1024;

/// How long work in the background may go on after the database is closed.
const CLOSE_PATIENCE: Duration = Duration::from_secs(30);

/// An open generation.
#[derive(Debug)]
pub(crate) struct Engine {
    /// The number of the generation.
    pub(crate) generation: u64,
    pub(crate) storage: Arc<dyn Storage>,
    /// Whether the storage may wait when it is read.
    pub(crate) may_wait: bool,
    pub(crate) index: Arc<Index>,
    /// How long it takes to look something up there.
    pub(crate) index_slowness: RecentSlowness,
    pub(crate) store: Arc<StateStore>,
    pub(crate) writer: Writer,
    pub(crate) wake: Arc<Wake>,
    pub(crate) background: Arc<Background>,
    pub(crate) checkpoints: Exclusive,
    pub(crate) merges: Exclusive,
    pub(crate) upkeep: Exclusive,
    /// Removing what has expired, and garbage.
    pub(crate) expiring: Exclusive,
    pub(crate) collecting: Exclusive,
    pub(crate) snapshots: Exclusive,
    pub(crate) removal: RemovalUpkeep,
    bytes_since_upkeep: AtomicUsize,
    pub(crate) write_load: WriteLoad,
    /// When something was written last, in milliseconds since 1970.
    pub(crate) last_write: AtomicU64,
    pub(crate) is_closing: AtomicBool,
    /// Where the random numbers of reads begin.
    random: AtomicU64,
    /// The database that this is a generation of.
    pub(crate) database: OnceLock<Weak<DatabaseShared>>,
}

impl Engine {
    /// Opens the generation that `storage` holds. Returns how many events had to be read again.
    pub(crate) fn open(
        generation: u64,
        storage: Arc<dyn Storage>,
        wake: Arc<Wake>,
        background: Arc<Background>,
        options: &Options,
    ) -> Result<(Arc<Self>, u64)> {
        options.commands.check()?;
        let shared_bytes = Arc::clone(&background.tail_bytes);
        let index = Index::open(Arc::clone(&storage), options.tail_events_max, shared_bytes)?;
        let index = Arc::new(index);
        let shared_bytes = Arc::clone(&background.tail_bytes);
        let read_cache = Arc::clone(&background.read_cache);
        let store = StateStore::open(Arc::clone(&storage), shared_bytes, read_cache)?;
        let store = Arc::new(
            store
                .retaining(options.commit_id_retention)
                .running(&options.commands, options.event_data_bytes_max)
                .told(wake.told()),
        );
        let (front, replayed) =
            replay(storage.as_ref(), &index, &store, options.listener.as_ref())?;
        let lost = LostEvents::find(storage.as_ref(), &index.layers(), &store)?;
        let seed =
            getrandom::u64().map_err(|error| Error::failed("random numbers", Cause::new(error)))?;
        let clock = background.clock.clone();
        if storage.may_wait() {
            background.expect_waiting()?;
        }
        let engine = Arc::new(Self {
            generation,
            writer: Writer::new(
                Arc::clone(&storage),
                Arc::clone(&index),
                Arc::clone(&store),
                Arc::clone(&wake),
                &background,
                (front, seed),
            ),
            wake,
            may_wait: storage.may_wait(),
            storage,
            index,
            index_slowness: RecentSlowness::new(SLOW_LOOKUP, COUNTED_LOOKUP_MAX),
            store,
            background,
            checkpoints: Exclusive::default(),
            merges: Exclusive::default(),
            upkeep: Exclusive::default(),
            expiring: Exclusive::default(),
            collecting: Exclusive::default(),
            snapshots: Exclusive::default(),
            removal: RemovalUpkeep::new(lost),
            bytes_since_upkeep: AtomicUsize::new(UPKEEP_BYTES),
            write_load: WriteLoad::new(clock),
            last_write: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
            random: AtomicU64::new(seed.rotate_left(32)),
            database: OnceLock::new(),
        });
        engine.note_written();
        engine.find_drop_deadline()?;
        engine.note_redactions();
        engine.note_retention();
        engine.background.timer.add(&engine);
        engine.defer(MERGES);
        Ok((engine, replayed))
    }

    /// Writes a commit and returns when it is durable.
    pub(crate) fn commit(self: &Arc<Self>, commit: Commit) -> Result<Committed> {
        let checked = condition::check(self, &commit.conditions)?;
        let work = decide(CheckedCommit { commit, checked })?;
        self.write(Work::Commit(work))
    }

    /// Writes a commit; the future resolves when it is durable. Conditions that take long to look
    /// into are looked into on a thread for that, as long as the caller waits.
    pub(crate) async fn commit_async(
        self: &Arc<Self>,
        mut commit: Commit,
        trace: Option<&Trace>,
    ) -> Result<Committed> {
        let conditions = std::mem::take(&mut commit.conditions);
        let (conditions, checked) = self.check_async(conditions, trace).await?;
        commit.conditions = conditions;
        let work = decide(CheckedCommit { commit, checked })?;
        if let Some(trace) = trace {
            trace.note_write();
        }
        self.write_async(Work::Commit(work)).await
    }

    /// Looks into conditions, on this thread if that is short. Hands them back.
    pub(crate) async fn check_async(
        self: &Arc<Self>,
        conditions: Vec<Condition>,
        trace: Option<&Trace>,
    ) -> Result<(Vec<Condition>, CheckedConditions)> {
        let mut check = ConditionCheck::new(self, &conditions);
        if check.reads_nothing() || !self.may_wait && check.begin(self, &conditions)? {
            return Ok((conditions, check.finish(self)));
        }
        let began = self.clock().steady();
        let checked = self.check_elsewhere(conditions, check).await;
        if let Some(trace) = trace {
            trace.add(RequestStage::Conditions, self.clock().since(began));
        }
        checked
    }

    async fn check_elsewhere(
        self: &Arc<Self>,
        conditions: Vec<Condition>,
        mut check: ConditionCheck,
    ) -> Result<(Vec<Condition>, CheckedConditions)> {
        let (reply, answer) = oneshot::async_channel();
        let engine = Arc::clone(self);
        self.background.look(self.reader(), move || {
            let checked = loop {
                let is_closing = engine.is_closing.load(Ordering::SeqCst);
                if reply.is_closed() || is_closing {
                    return;
                }
                match check.advance(&engine, &conditions) {
                    Ok(false) => {}
                    Ok(true) => break Ok(check.finish(&engine)),
                    Err(error) => break Err(error),
                }
            };
            // The caller may have gone.
            let _ = reply.send(checked.map(|checked| (conditions, checked)));
        })?;
        answer.await.unwrap_or_else(|_| Err(abandoned()))
    }

    /// Queues work and returns when it is durable.
    pub(crate) fn write(self: &Arc<Self>, work: Work) -> Result<Committed> {
        let (reply, answer) = oneshot::channel();
        let mut request = WriteRequest::write(work, Caller::new(reply, None));
        self.read_ahead(&mut request);
        if self.writer.queue.push(request)? {
            // The first group has this request in it; later ones are led by others.
            self.lead(1);
        }
        answer.recv().unwrap_or_else(|_| Err(unanswered()))
    }

    /// Queues work; the future resolves when it is durable.
    pub(crate) async fn write_async(self: &Arc<Self>, work: Work) -> Result<Committed> {
        let (reply, answer) = oneshot::async_channel();
        let caller = Caller::new(reply, self.background.serving_thread());
        let mut request = WriteRequest::write(work, caller);
        if self.must_read_ahead(&mut request) {
            request = Box::pin(self.read_ahead_async(request)).await?;
        }
        if self.writer.queue.push(request)? {
            self.have_it_led();
        }
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    /// Executes transactions and returns when they are durable.
    pub(crate) fn execute(
        self: &Arc<Self>,
        transactions: Vec<Result<Transaction>>,
    ) -> Result<Executions> {
        let transactions = match Looks::new(transactions) {
            Ok(looks) => return Ok(looks.run(self)),
            Err(transactions) => transactions,
        };
        let check = |transaction: Result<Transaction>| {
            let transaction = transaction?;
            let checked = condition::check(self, &transaction.conditions)?;
            Ok(CheckedTransaction {
                transaction,
                checked,
            })
        };
        let works = transactions.into_iter().map(check).collect();
        let (reply, answer) = oneshot::channel();
        let caller = Caller::new(reply, None);
        let mut request = WriteRequest::execute(works, caller);
        self.read_ahead(&mut request);
        if self.writer.queue.push(request)? {
            self.lead(1);
        }
        answer.recv().map_err(|_| unanswered())
    }

    /// Executes transactions; the future resolves when they are durable.
    pub(crate) async fn execute_async(
        self: &Arc<Self>,
        transactions: Vec<Result<Transaction>>,
        trace: Option<&Trace>,
    ) -> Result<Executions> {
        let transactions = match Looks::new(transactions) {
            Ok(looks) => {
                let executed = match self.may_wait {
                    true => None,
                    false => looks.run_if_short(self),
                };
                return match executed {
                    Some(executed) => Ok(executed),
                    None => self.look_elsewhere(looks).await,
                };
            }
            Err(transactions) => transactions,
        };
        let mut works = Vec::with_capacity(transactions.len());
        for transaction in transactions {
            works.push(match transaction {
                Ok(transaction) => self.check_transaction(transaction, trace).await,
                Err(error) => Err(error),
            });
        }
        let (reply, answer) = oneshot::async_channel();
        let caller = Caller::new(reply, self.background.serving_thread());
        let mut request = WriteRequest::execute(works, caller);
        if let Some(trace) = trace {
            trace.note_write();
        }
        if self.must_read_ahead(&mut request) {
            request = Box::pin(self.read_ahead_async(request)).await?;
        }
        if self.writer.queue.push(request)? {
            self.have_it_led();
        }
        answer.await.map_err(|_| unanswered())
    }

    async fn look_elsewhere(self: &Arc<Self>, looks: Looks) -> Result<Executions> {
        let (reply, answer) = oneshot::async_channel();
        let engine = Arc::clone(self);
        self.background.look(self.reader(), move || {
            // The caller may have gone.
            if !reply.is_closed() {
                let _ = reply.send(looks.run(&engine));
            }
        })?;
        answer.await.map_err(|_| abandoned())
    }

    async fn check_transaction(
        self: &Arc<Self>,
        mut transaction: Transaction,
        trace: Option<&Trace>,
    ) -> Result<CheckedTransaction> {
        let conditions = std::mem::take(&mut transaction.conditions);
        let (conditions, checked) = self.check_async(conditions, trace).await?;
        transaction.conditions = conditions;
        Ok(CheckedTransaction {
            transaction,
            checked,
        })
    }

    /// Returns what tells it from the other databases that share its threads.
    pub(crate) fn tenant(&self) -> Tenant {
        std::ptr::from_ref(self).addr()
    }

    /// Returns the last position of a stream, also if it was removed.
    pub(crate) fn version(&self, stream: &str) -> Result<Option<u64>> {
        let end = self.index.ask_stream_ends(|ends| ends.find(stream))?;
        let end = true_end(&self.store, stream, end)?;
        Ok(end.map(|end| end.last_ordinal))
    }

    /// Returns what time it is.
    pub(crate) fn clock(&self) -> &Clock {
        &self.background.clock
    }

    /// Returns where the random numbers of a read begin.
    pub(crate) fn random(&self) -> u64 {
        self.random
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
    }

    pub(super) fn after_group(self: &Arc<Self>, bytes: usize) {
        let is_full = self.index.is_tail_full() || self.store.is_full();
        if is_full && self.writer.freeze() {
            self.schedule(
                Lane::Checkpoint,
                |engine| &engine.checkpoints,
                |engine| {
                    report("checkpoint", engine.write_frozen_tail());
                },
            );
        }
        self.note_written();
        self.note_removals();
        self.note_redactions();
        self.note_retention();
        self.background.timer.note(self.deadline());
        self.write_load.note(bytes);
        if self.bytes_since_upkeep.fetch_add(bytes, Ordering::Relaxed) + bytes >= UPKEEP_BYTES {
            self.bytes_since_upkeep.store(0, Ordering::Relaxed);
            self.defer(UPKEEP);
        }
    }

    /// Has `work` done in the background, unless it is waiting to be done already.
    pub(crate) fn schedule(
        self: &Arc<Self>,
        lane: Lane,
        exclusive: impl Fn(&Self) -> &Exclusive + Send + 'static,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        let is_closing = self.is_closing.load(Ordering::SeqCst);
        if is_closing || exclusive(self).is_scheduled.swap(true, Ordering::SeqCst) {
            return;
        }
        let lane = if self.may_wait { Lane::Tend } else { lane };
        // A job that waits must not keep a closed engine and its files.
        let engine = Arc::downgrade(self);
        self.background.run(lane, self.tenant(), move || {
            let Some(engine) = engine.upgrade() else {
                return;
            };
            let exclusive = exclusive(&engine);
            exclusive.is_scheduled.store(false, Ordering::SeqCst);
            if !engine.is_closing.load(Ordering::SeqCst) {
                exclusive.perform(|| work(&engine));
            }
        });
    }

    /// Does one step of the upkeep of the log.
    pub(crate) fn keep_up(&self, is_busy: &dyn Fn() -> bool) -> Result<Upkeep> {
        let mut upkeep = Upkeep::Done;
        self.measure(BackgroundWork::Compression, || {
            let before = self.storage.work();
            upkeep = self.storage.maintain(is_busy)?;
            let after = self.storage.work();
            let bytes = after.compressed_bytes - before.compressed_bytes;
            Ok((after.compressions > before.compressions).then_some(bytes))
        })?;
        Ok(upkeep)
    }

    /// Does work behind the scenes that is measured. Returns whether there was something to do.
    pub(crate) fn measure(
        &self,
        work: BackgroundWork,
        perform: impl FnOnce() -> Result<Option<u64>>,
    ) -> Result<bool> {
        let stats = &self.background.stats;
        stats.measure(work, self.clock(), perform)
    }

    /// Does all upkeep that there is, however busy the writer.
    fn keep_up_while_open(&self) -> Result<()> {
        while !self.is_closing.load(Ordering::SeqCst) {
            if self.keep_up(&|| false)? == Upkeep::Done {
                break;
            }
        }
        Ok(())
    }

    /// Writes the frozen tail, unless `go_on` says that there is no time for that.
    pub(crate) fn save_frozen_tail(&self, go_on: &dyn Fn() -> Result<()>) -> Result<()> {
        self.measure(BackgroundWork::Checkpoint, || {
            checkpoint(&self.index, &self.store, go_on)
        })?;
        report("marking the log", self.storage.mark());
        Ok(())
    }

    pub(crate) fn write_frozen_tail(self: &Arc<Self>) -> Result<()> {
        self.save_frozen_tail(&|| Ok(()))?;
        self.defer(MERGES);
        if self.store.is_snapshot_due() {
            self.defer(SNAPSHOTS);
        }
        Ok(())
    }

    /// Takes a snapshot of the state as of the last checkpoint. Writing and reading go on meanwhile,
    /// and so do checkpoints.
    pub(crate) fn write_snapshot(self: &Arc<Self>, go_on: &dyn Fn() -> Result<()>) -> Result<()> {
        let moment = self.checkpoints.perform(|| -> Result<_> {
            // One that failed may be in the map all the same.
            let checkpoint = || checkpoint(&self.index, &self.store, &|| Ok(()));
            self.measure(BackgroundWork::Checkpoint, checkpoint)?;
            let (commit, _) = self.index.checkpoint_end();
            Ok(self.store.moment(commit))
        })?;
        let Some(moment) = moment else {
            return Ok(());
        };
        self.measure(BackgroundWork::Snapshot, || {
            self.store.write_snapshot(&moment, go_on)?;
            Ok(self.storage.snapshot().map(|snapshot| snapshot.bytes))
        })?;
        self.defer(UPKEEP);
        Ok(())
    }

    /// Moves the whole tail to disk and returns when that is done.
    pub(crate) fn checkpoint(self: &Arc<Self>) -> Result<()> {
        // The first time for a tail that was frozen before, the second for what came after it.
        for _ in 0..2 {
            if self.writer.freeze() {
                self.checkpoints.perform(|| self.write_frozen_tail())?;
            }
        }
        Ok(())
    }

    /// Drops what was removed, merges the index into one run, takes a snapshot of the state and
    /// compresses all that may be, and returns when that is done.
    pub(crate) fn compact(self: &Arc<Self>) -> Result<()> {
        self.checkpoint()?;
        let go_on = || match self.is_closing.load(Ordering::Relaxed) {
            true => Err(Error::Closed("the database is being closed".into())),
            false => Ok(()),
        };
        if self.store.has_changed_since_snapshot() {
            self.snapshots.perform(|| self.write_snapshot(&go_on))?;
        }
        self.finish_removals()?;
        let merge = || self.measure(BackgroundWork::Merge, || self.index.merge_all(&go_on));
        self.merges.perform(merge)?;
        self.upkeep.perform(|| self.keep_up_while_open())
    }

    /// Closes for good: the storage is not used again, and whoever opens it next must not meet work that
    /// goes on.
    pub(crate) fn end(&self, reason: &Error, patience: Duration) {
        self.storage.abandon();
        self.close_saving(reason, patience);
        self.seal();
    }

    /// Seals the log of an engine that is closed, if it is known where it ends.
    fn seal(&self) {
        if self.writer.queue.is_idle() && self.writer.queue.poisoned().is_none() {
            report("sealing the log", self.storage.seal());
        }
    }

    /// Takes nothing more, finishes what was taken, and waits for the work behind.
    pub(crate) fn close(&self, reason: &Error) {
        self.close_saving(reason, Duration::ZERO);
    }

    /// Closes, after it has moved a large tail to disk if that takes no longer than `patience`.
    fn close_saving(&self, reason: &Error, patience: Duration) {
        self.writer.queue.close(reason.clone());
        let began = self.clock().steady();
        let left = || CLOSE_PATIENCE.saturating_sub(self.clock().since(began));
        while !self.writer.queue.is_idle() && !left().is_zero() {
            std::thread::sleep(Duration::from_micros(200));
        }
        self.checkpoint_before_closing(patience);
        self.is_closing.store(true, Ordering::SeqCst);
        self.index.abandon();
        for work in [
            &self.checkpoints,
            &self.merges,
            &self.upkeep,
            &self.expiring,
            &self.collecting,
            &self.snapshots,
            &self.removal.drops,
            &self.removal.redacting,
            &self.removal.retention.passes,
        ] {
            work.wait_until_idle(left());
        }
        self.set_overdue_redactions(0);
    }
}

/// Refuses a commit that is known to fail: a match was found, and it cannot be a repetition of what
/// was written before.
fn decide(work: CheckedCommit) -> Result<CheckedCommit> {
    let commit = &work.commit;
    let may_be_known =
        commit.ids == Ids::Unique && commit.events.iter().all(|event| event.id.is_some());
    let matches = work.checked.matches.iter().enumerate();
    let found = matches.filter_map(|(index, found)| Some((index, (*found)?)));
    match { found }.next() {
        Some((condition, position)) if !may_be_known => Err(Error::ConditionFailed {
            condition,
            position,
        }),
        _ => Ok(work),
    }
}

/// Returns the error of a read that was given up.
pub(crate) fn abandoned() -> Error {
    Error::Closed("the read was given up".into())
}

/// Returns the error of something that was handed to the writer and not answered.
pub(crate) fn unanswered() -> Error {
    Error::result_lost("it was not answered")
}

/// Work behind the scenes that failed is tried again later; the log has lost nothing.
pub(crate) fn report(what: &str, done: Result<()>) {
    match done {
        Ok(()) | Err(Error::Closed(_)) => {}
        Err(error) => tracing::warn!(%error, "{what} failed"),
    }
}
