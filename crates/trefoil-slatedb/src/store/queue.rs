//! What waits for the writer of a store, and how its handle ended.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use slatedb::DbSnapshot;
use tokio::sync::{Notify, oneshot};
use trefoil_kv::contract::{KvBatch, KvDone, KvError, KvResult};

/// Gets the store as it is between two groups.
pub(super) type MomentSender = oneshot::Sender<Arc<DbSnapshot>>;

/// Batches that are written together.
#[derive(Default)]
pub(super) struct WriteGroup {
    pub(super) batches: Vec<KvBatch>,
    pub(super) done: Vec<KvDone>,
}

/// What the writer does next.
pub(super) enum WriterStep {
    /// There is nothing to do.
    Wait,
    /// Batches wait.
    Write,
    /// Somebody wants the store as it is now.
    Moments(Vec<MomentSender>),
    /// The handle was closed, and everything is written.
    Close,
}

#[derive(Default)]
struct QueuedBatches {
    batches: VecDeque<(KvBatch, KvDone)>,
    moments: Vec<MomentSender>,
    watchers: Vec<Box<dyn FnOnce() + Send>>,
    is_closing: bool,
    /// Why the handle is of no more use.
    ended: Option<KvError>,
}

/// See the module.
#[derive(Default)]
pub(super) struct StoreQueue {
    waiting: Mutex<QueuedBatches>,
    news: Notify,
}

impl std::fmt::Debug for StoreQueue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.waiting.lock();
        formatter
            .debug_struct("StoreQueue")
            .field("batches", &waiting.batches.len())
            .field("is_closing", &waiting.is_closing)
            .field("ended", &waiting.ended)
            .finish_non_exhaustive()
    }
}

/// Returns the error of a call after the end: it certainly did nothing.
fn after(ended: &KvError) -> KvError {
    match ended {
        KvError::Fenced => KvError::Fenced,
        KvError::Unknown(why) | KvError::Unavailable(why) | KvError::Damaged(why) => {
            KvError::Unavailable(format!("the store must be opened again: {why}"))
        }
        KvError::TooLarge { .. } => ended.clone(),
    }
}

impl QueuedBatches {
    fn refusal(&self) -> Option<KvError> {
        let closed = || KvError::Unavailable("the store was closed".to_owned());
        match &self.ended {
            Some(ended) => Some(after(ended)),
            None => self.is_closing.then(closed),
        }
    }
}

impl StoreQueue {
    /// Queues a batch.
    pub(super) fn push(&self, batch: KvBatch, done: KvDone) {
        let mut waiting = self.waiting.lock();
        match waiting.refusal() {
            Some(error) => {
                drop(waiting);
                done(Err(error));
            }
            None => {
                waiting.batches.push_back((batch, done));
                drop(waiting);
                self.news.notify_one();
            }
        }
    }

    /// Asks for the store as it is between two groups.
    pub(super) fn ask_for_moment(&self, sender: MomentSender) -> KvResult<()> {
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal() {
            return Err(error);
        }
        waiting.moments.push(sender);
        drop(waiting);
        self.news.notify_one();
        Ok(())
    }

    /// Returns why nothing can be read or written, if the handle ended.
    pub(super) fn ended(&self) -> Option<KvError> {
        self.waiting.lock().refusal()
    }

    /// Lets the writer end when it has written what waits.
    pub(super) fn close(&self) {
        self.waiting.lock().is_closing = true;
        self.news.notify_one();
    }

    /// Returns when something may have changed.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// Returns what the writer does next.
    pub(super) fn next(&self) -> WriterStep {
        let mut waiting = self.waiting.lock();
        if !waiting.moments.is_empty() {
            return WriterStep::Moments(std::mem::take(&mut waiting.moments));
        }
        match (waiting.batches.is_empty(), waiting.is_closing) {
            (false, _) => WriterStep::Write,
            (true, true) => WriterStep::Close,
            (true, false) => WriterStep::Wait,
        }
    }

    /// Takes batches that are written together, at least one.
    pub(super) fn take(&self, max_bytes: usize) -> WriteGroup {
        let mut waiting = self.waiting.lock();
        let mut group = WriteGroup::default();
        let mut bytes = 0;
        while let Some((batch, _)) = waiting.batches.front() {
            bytes += size(batch);
            if bytes > max_bytes && !group.batches.is_empty() {
                break;
            }
            if let Some((batch, done)) = waiting.batches.pop_front() {
                group.batches.push(batch);
                group.done.push(done);
            }
        }
        group
    }

    /// Ends the handle. What waits was not written, and is told so.
    pub(super) fn end(&self, error: &KvError) {
        let mut waiting = self.waiting.lock();
        if waiting.ended.is_some() {
            return;
        }
        waiting.ended = Some(error.clone());
        let batches = std::mem::take(&mut waiting.batches);
        let watchers = std::mem::take(&mut waiting.watchers);
        waiting.moments.clear();
        drop(waiting);
        for (_, done) in batches {
            done(Err(after(error)));
        }
        for notify in watchers {
            notify();
        }
    }

    /// Calls `notify` at the end, or now if that was before.
    pub(super) fn on_lost(&self, notify: Box<dyn FnOnce() + Send>) {
        let mut waiting = self.waiting.lock();
        if waiting.ended.is_none() {
            waiting.watchers.push(notify);
            return;
        }
        drop(waiting);
        notify();
    }
}

fn size(batch: &KvBatch) -> usize {
    let sizes = batch.changes.iter();
    sizes
        .map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len))
        .sum()
}
