//! One generation of a database, open: its storage, index and writer, and the work behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use trefoil_core::{Commit, Committed, Error, Result, Timestamp};
use trefoil_storage::{Record, Storage, StoredItem, Upkeep};

use crate::background::{Background, Lane};
use crate::condition::{self, Check, CheckedCommit};
use crate::demand::Demand;
use crate::duty::Duty;
use crate::index::{Index, IndexedEvent};
use crate::read::decode;
use crate::state::Store;
use crate::write::{Front, Request, Work, Writer, freeze, state_changes};
use crate::{Options, label};

/// How many groups a background thread writes before it looks after other namespaces.
const GROUPS_PER_LEAD: usize = 16;

/// After so many bytes of new events the log gets its upkeep: room ahead, compression behind.
const UPKEEP_BYTES: usize = 64 * 1024;

/// How long upkeep that should wait for the writer does.
const UPKEEP_PAUSE: Duration = Duration::from_millis(10);

/// How long work in the background may go on after the database is closed.
const CLOSE_PATIENCE: Duration = Duration::from_secs(30);

/// An open generation.
#[derive(Debug)]
pub(crate) struct Engine {
    /// The number of the generation.
    pub(crate) generation: u64,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) index: Arc<Index>,
    pub(crate) store: Arc<Store>,
    pub(crate) writer: Writer,
    background: Arc<Background>,
    checkpoints: Duty,
    merges: Duty,
    upkeep: Duty,
    bytes_since_upkeep: AtomicUsize,
    demand: Demand,
    is_closing: AtomicBool,
}

impl Engine {
    /// Opens the generation that `storage` holds. Answers how many events had to be read again.
    pub(crate) fn open(
        generation: u64,
        storage: Arc<dyn Storage>,
        background: Arc<Background>,
        options: &Options,
    ) -> Result<(Arc<Self>, u64)> {
        let shared_bytes = Arc::clone(&background.tail_bytes);
        let index = Index::open(Arc::clone(&storage), options.tail_events_max, shared_bytes)?;
        let index = Arc::new(index);
        let store = Arc::new(Store::open(Arc::clone(&storage))?);
        let (front, replayed) = replay(storage.as_ref(), &index, &store)?;
        let seed = getrandom::u64().map_err(|error| Error::Io {
            context: "random numbers".into(),
            message: error.to_string(),
        })?;
        let engine = Arc::new(Self {
            generation,
            writer: Writer::new(
                Arc::clone(&storage),
                Arc::clone(&index),
                Arc::clone(&store),
                front,
                seed,
            ),
            storage,
            index,
            store,
            background,
            checkpoints: Duty::default(),
            merges: Duty::default(),
            upkeep: Duty::default(),
            bytes_since_upkeep: AtomicUsize::new(UPKEEP_BYTES),
            demand: Demand::new(),
            is_closing: AtomicBool::new(false),
        });
        Ok((engine, replayed))
    }

    /// Writes a commit and returns when it is durable.
    pub(crate) fn commit(self: &Arc<Self>, commit: Commit) -> Result<Committed> {
        let checked = condition::check(self, &commit.conditions)?;
        let work = decide(CheckedCommit { commit, checked })?;
        self.write(Work::Commit(work))
    }

    /// Writes a commit; the future resolves when it is durable. Conditions that take long to look
    /// into are looked into on a thread for that, until nobody waits for the answer any more.
    pub(crate) async fn commit_async(self: &Arc<Self>, commit: Commit) -> Result<Committed> {
        let work = self.check_async(commit).await?;
        self.write_async(Work::Commit(decide(work)?)).await
    }

    /// Looks into the conditions of a commit, on this thread if that is short.
    pub(crate) async fn check_async(self: &Arc<Self>, commit: Commit) -> Result<CheckedCommit> {
        let mut check = Check::new(self, &commit.conditions);
        if check.advance(self, &commit.conditions)? {
            let checked = check.finish();
            return Ok(CheckedCommit { commit, checked });
        }
        self.check_elsewhere(commit, check).await
    }

    async fn check_elsewhere(
        self: &Arc<Self>,
        commit: Commit,
        mut check: Check,
    ) -> Result<CheckedCommit> {
        let (reply, answer) = oneshot::async_channel();
        let engine = Arc::clone(self);
        self.background.run(Lane::Condition, move || {
            let checked = loop {
                let is_closing = engine.is_closing.load(Ordering::SeqCst);
                if reply.is_closed() || is_closing {
                    return;
                }
                match check.advance(&engine, &commit.conditions) {
                    Ok(false) => {}
                    Ok(true) => break Ok(check.finish()),
                    Err(error) => break Err(error),
                }
            };
            // Whoever asked may have gone.
            let _ = reply.send(checked.map(|checked| CheckedCommit { commit, checked }));
        });
        answer.await.unwrap_or_else(|_| Err(abandoned()))
    }

    /// Queues work and returns when it is durable.
    pub(crate) fn write(self: &Arc<Self>, work: Work) -> Result<Committed> {
        let (reply, answer) = oneshot::channel();
        if self.writer.queue.push(Request { work, reply })? {
            // The first group has this request in it: whoever came later is led by others.
            self.lead(1);
        }
        answer.recv().unwrap_or_else(|_| Err(abandoned()))
    }

    /// Queues work; the future resolves when it is durable.
    pub(crate) async fn write_async(self: &Arc<Self>, work: Work) -> Result<Committed> {
        let (reply, answer) = oneshot::async_channel();
        if self.writer.queue.push(Request { work, reply })? {
            self.hand_over_lead();
        }
        answer.await.unwrap_or_else(|_| Err(abandoned()))
    }

    /// Leads the queue for a number of groups, then lets another thread lead, so that no caller is
    /// kept for long and no namespace keeps a thread from the others.
    fn lead(self: &Arc<Self>, n_groups: usize) {
        if self.writer.lead(n_groups, &|bytes| self.after_group(bytes)) {
            self.hand_over_lead();
        }
    }

    fn hand_over_lead(self: &Arc<Self>) {
        let engine = Arc::clone(self);
        self.background
            .run(Lane::Commit, move || engine.lead(GROUPS_PER_LEAD));
    }

    fn after_group(self: &Arc<Self>, bytes: usize) {
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
        self.demand.note(bytes);
        if self.bytes_since_upkeep.fetch_add(bytes, Ordering::Relaxed) + bytes >= UPKEEP_BYTES {
            self.bytes_since_upkeep.store(0, Ordering::Relaxed);
            self.schedule_upkeep();
        }
    }

    /// Has `work` done in the background, unless it is waiting to be done already.
    fn schedule(
        self: &Arc<Self>,
        lane: Lane,
        duty: impl Fn(&Self) -> &Duty + Send + 'static,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        let is_closing = self.is_closing.load(Ordering::SeqCst);
        if is_closing || duty(self).is_scheduled.swap(true, Ordering::SeqCst) {
            return;
        }
        // A job that waits must not keep a closed engine and its files.
        let engine = Arc::downgrade(self);
        self.background.run(lane, move || {
            let Some(engine) = engine.upgrade() else {
                return;
            };
            duty(&engine).is_scheduled.store(false, Ordering::SeqCst);
            if !engine.is_closing.load(Ordering::SeqCst) {
                duty(&engine).perform(|| work(&engine));
            }
        });
    }

    /// One step at a time, so that no namespace keeps the thread from the others.
    fn schedule_upkeep(self: &Arc<Self>) {
        self.schedule(
            Lane::Upkeep,
            |engine| &engine.upkeep,
            |engine| match engine.storage.maintain(engine.demand.is_high()) {
                Ok(Upkeep::Done) => {}
                Ok(Upkeep::More) => engine.schedule_upkeep(),
                Ok(Upkeep::Waiting) => {
                    std::thread::sleep(UPKEEP_PAUSE);
                    engine.schedule_upkeep();
                }
                Err(error) => report("upkeep of the log", Err(error)),
            },
        );
    }

    /// Does all upkeep that there is, however busy the writer.
    fn keep_up_while_open(&self) -> Result<()> {
        while !self.is_closing.load(Ordering::SeqCst) {
            if self.storage.maintain(false)? == Upkeep::Done {
                break;
            }
        }
        Ok(())
    }

    fn write_frozen_tail(self: &Arc<Self>) -> Result<()> {
        checkpoint(&self.index, &self.store)?;
        self.schedule(
            Lane::Merge,
            |engine| &engine.merges,
            |engine| {
                report("merge of the index", engine.merge_while_due());
            },
        );
        Ok(())
    }

    fn merge_while_due(&self) -> Result<()> {
        let mut is_due = true;
        while is_due && !self.is_closing.load(Ordering::SeqCst) {
            is_due = self.index.merge(&self.is_closing)?;
        }
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

    /// Merges the index into one run and compresses all that may be, and returns when that is done.
    pub(crate) fn compact(self: &Arc<Self>) -> Result<()> {
        self.checkpoint()?;
        self.merges
            .perform(|| self.index.merge_all(&self.is_closing))?;
        self.upkeep.perform(|| self.keep_up_while_open())
    }

    /// Takes nothing more, finishes what was taken, and waits for the work behind.
    pub(crate) fn close(&self, reason: &Error) {
        self.writer.queue.close(reason.clone());
        let deadline = Instant::now() + CLOSE_PATIENCE;
        while !self.writer.queue.is_idle() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(200));
        }
        self.is_closing.store(true, Ordering::SeqCst);
        self.index.abandon();
        for duty in [&self.checkpoints, &self.merges, &self.upkeep] {
            duty.wait_until_idle(deadline);
        }
        self.writer.changed.notify(usize::MAX);
    }
}

/// Refuses a commit that is known to fail: a match was found, and nothing in it could be a
/// repetition of what was written before.
fn decide(work: CheckedCommit) -> Result<CheckedCommit> {
    let has_ids = work.commit.events.iter().any(|event| event.id.is_some());
    let matches = work.checked.matches.iter().enumerate();
    let found = matches.filter_map(|(index, found)| Some((index, (*found)?)));
    match { found }.next() {
        Some((condition, position)) if !has_ids => Err(Error::ConditionFailed {
            condition,
            position,
        }),
        _ => Ok(work),
    }
}

fn abandoned() -> Error {
    Error::Closed("the commit was not answered".into())
}

/// Work behind the scenes that failed is tried again later; the log has lost nothing.
fn report(what: &str, done: Result<()>) {
    match done {
        Ok(()) | Err(Error::Closed(_)) => {}
        Err(error) => tracing::warn!(%error, "{what} failed"),
    }
}

/// Adds what the log holds after the last checkpoint to the index. Answers where the log ends and
/// how many events were read.
fn replay(storage: &dyn Storage, index: &Index, store: &Store) -> Result<(Front, u64)> {
    let end = storage.end();
    let (commit, clock) = index.checkpoint_end();
    let mut front = Front {
        commit: end.commit,
        position: end.position,
        clock,
    };
    if end.commit < commit {
        return Err(crate::index::beyond_log(commit, end.commit));
    }
    let mut n_events = 0;
    storage.replay(commit, &mut |record| {
        front.clock = front.clock.max(replay_record(index, store, record)?);
        n_events += record.items.len() as u64;
        let is_full = index.is_tail_full() || store.is_full();
        if is_full && freeze(index, store, record.last_commit(), front.clock) {
            // As when the database is open: what fails is tried again later.
            report("checkpoint", checkpoint(index, store));
            report("merge of the index", merge_all_due(index));
        }
        Ok(())
    })?;
    Ok((front, n_events))
}

fn merge_all_due(index: &Index) -> Result<()> {
    let never = AtomicBool::new(false);
    let mut is_due = true;
    while is_due {
        is_due = index.merge(&never)?;
    }
    Ok(())
}

/// Writes what is frozen of index and state, atomically.
fn checkpoint(index: &Index, store: &Store) -> Result<()> {
    index.checkpoint(|batch| store.fill(batch), || store.thaw())
}

/// Takes over the changes of state of a record.
pub(crate) fn replay_state(store: &Store, record: &Record) -> Result<()> {
    let mut failure = None;
    let read = state_changes(record, &mut |changes| match store.replay(changes) {
        Ok(replayed) => replayed,
        Err(error) => {
            failure = Some(error);
            None
        }
    });
    match failure {
        Some(error) => Err(error),
        None => read.ok_or_else(|| unreadable(record)),
    }
}

/// What says that the commit part of a record, whose checksum was right, is not one.
fn unreadable(record: &Record) -> Error {
    Error::Damaged(Box::new(trefoil_core::Damage {
        file: "log".into(),
        offset: 0,
        position: record.first_position,
        what: format!("unreadable commits from {} on", record.first_commit),
        help: "run `trefoil verify` to see all damage".into(),
    }))
}

/// Adds a record's events to the index. Answers the highest time the server gave to one of them.
fn replay_record(index: &Index, store: &Store, record: &Record) -> Result<Timestamp> {
    let mut clock = Timestamp::default();
    let mut events = Vec::with_capacity(record.items.len());
    for (position, (label, bytes)) in (record.first_position..).zip(record.items.iter()) {
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let event = decode(StoredItem {
            position,
            label,
            bytes,
        })?;
        if !label::is_imported(label) {
            clock = clock.max(event.time());
        }
        events.push((label, event.correlation(), event));
    }
    let indexed = events.iter().map(|(label, correlation, event)| {
        IndexedEvent::of(event, label::is_new_stream(*label), correlation.as_deref())
    });
    index.add(&indexed.collect::<Vec<_>>(), || {});
    replay_state(store, record)?;
    Ok(clock)
}
