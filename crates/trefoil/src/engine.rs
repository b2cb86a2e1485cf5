//! One generation of a database, open: its storage, index and writer, and the work behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use trefoil_core::{Committed, Error, Result, Timestamp};
use trefoil_storage::{Record, Storage, StoredItem, Upkeep};

use crate::background::{Background, Lane};
use crate::demand::Demand;
use crate::duty::Duty;
use crate::index::{Index, IndexedEvent};
use crate::read::decode;
use crate::write::{Front, Request, Work, Writer};
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
        let (front, replayed) = replay(storage.as_ref(), &index)?;
        let seed = getrandom::u64().map_err(|error| Error::Io {
            context: "random numbers".into(),
            message: error.to_string(),
        })?;
        let engine = Arc::new(Self {
            generation,
            writer: Writer::new(Arc::clone(&storage), Arc::clone(&index), front, seed),
            storage,
            index,
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
        if self.index.is_tail_full() && self.writer.freeze() {
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
        self.index.checkpoint()?;
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
fn replay(storage: &dyn Storage, index: &Index) -> Result<(Front, u64)> {
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
        front.clock = front.clock.max(replay_record(index, record)?);
        n_events += record.items.len() as u64;
        if index.is_tail_full() && index.freeze(record.last_commit(), front.clock) {
            // As when the database is open: what fails is tried again later.
            report("checkpoint", index.checkpoint());
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

/// Adds a record's events to the index. Answers the highest time the server gave to one of them.
fn replay_record(index: &Index, record: &Record) -> Result<Timestamp> {
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
    Ok(clock)
}
