//! One open store: a SlateDB with one writer.

pub(crate) mod cache;
mod clock;
mod last_time;
pub(crate) mod open;
mod queue;
mod reads;
mod segments;
mod settings;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use slatedb::{Db, DbSnapshot};
use tokio::task::JoinHandle;
use trefoil_core::Direction;
use trefoil_kv::contract::{Kv, KvBatch, KvDone, KvError, KvLimits, KvPage, KvRead, KvResult};

use crate::engine::EngineShared;
use queue::StoreQueue;
use reads::SlateReads;
#[cfg(test)]
pub(crate) use segments::FirstByte;
use writer::CLOSE_DEADLINE;

/// The longest key; SlateDB takes a few more bytes.
const MAX_KEY: usize = 60_000;
/// The largest value, and all keys and values of one write.
const MAX_BATCH: usize = 16 << 20;

/// What a store takes.
const LIMITS: KvLimits = KvLimits {
    key_bytes: MAX_KEY,
    value_bytes: MAX_BATCH,
    batch_bytes: MAX_BATCH,
};

/// A handle on a store.
#[derive(Debug)]
pub(crate) struct SlateKv {
    shared: Arc<EngineShared>,
    reads: SlateReads<Db>,
    queue: Arc<StoreQueue>,
    /// The writer, until somebody waits for its end.
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl SlateKv {
    /// Takes over a SlateDB that was just opened.
    fn start(shared: Arc<EngineShared>, db: Db, clock: Arc<clock::StoreClock>) -> Self {
        let queue = Arc::new(StoreQueue::default());
        let reads = SlateReads::new(
            Arc::clone(&shared),
            Arc::new(db.clone()),
            Arc::clone(&queue),
        );
        let writer = writer::SlateWriter::new(db, Arc::clone(&queue), clock, &shared.options);
        let task = shared.handle().spawn(writer.run());
        Self {
            shared,
            reads,
            queue,
            writer: Mutex::new(Some(task)),
        }
    }
}

impl KvRead for SlateKv {
    fn get(&self, keys: &[&[u8]]) -> KvResult<Vec<Option<Bytes>>> {
        self.reads.get(keys)
    }

    fn floor(&self, ranges: &[(&[u8], &[u8])]) -> KvResult<Vec<Option<(Bytes, Bytes)>>> {
        self.reads.floor(ranges)
    }

    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        max_bytes: usize,
        is_kept: bool,
    ) -> KvResult<KvPage> {
        self.reads.scan(from, to, direction, max_bytes, is_kept)
    }
}

impl Kv for SlateKv {
    fn limits(&self) -> KvLimits {
        LIMITS
    }

    fn commit(&self, batch: KvBatch, done: KvDone) {
        match refused(&batch) {
            Some(error) => done(Err(error)),
            None => self.queue.push(batch, done),
        }
    }

    fn moment(&self) -> KvResult<Arc<dyn KvRead>> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.queue.ask_for_moment(sender)?;
        // The group that is on its way comes first.
        let options = &self.shared.options;
        let deadline = options.read_deadline + options.write_deadline;
        let late = || KvError::Unavailable("the store is busy".to_owned());
        let snapshot: Arc<DbSnapshot> = match self.shared.wait(deadline, receiver) {
            Some(Ok(snapshot)) => snapshot,
            Some(Err(_)) => return Err(self.queue.ended().unwrap_or_else(late)),
            None => return Err(late()),
        };
        Ok(Arc::new(SlateReads::new(
            Arc::clone(&self.shared),
            snapshot,
            Arc::clone(&self.queue),
        )))
    }

    fn on_lost(&self, notify: Box<dyn FnOnce() + Send>) {
        self.queue.on_lost(notify);
    }

    fn close(&self) -> KvResult<()> {
        self.queue.close();
        let Some(writer) = self.writer.lock().take() else {
            return Ok(());
        };
        let group = writer::MAX_STALL + self.shared.options.write_deadline;
        let deadline = group + CLOSE_DEADLINE + Duration::from_secs(1);
        match self.shared.wait(deadline, writer) {
            Some(_) => Ok(()),
            None => Err(KvError::Unavailable("closing took too long".to_owned())),
        }
    }
}

impl Drop for SlateKv {
    fn drop(&mut self) {
        // The writer sees it and ends; a SlateDB that is only dropped would go on asking its store.
        self.queue.close();
    }
}

/// Returns why a batch cannot be written.
fn refused(batch: &KvBatch) -> Option<KvError> {
    let mut bytes = 0;
    for (key, value) in &batch.changes {
        if key.is_empty() {
            return Some(KvError::Unavailable("a key is empty".to_owned()));
        }
        if key.len() > MAX_KEY {
            return Some(KvError::TooLarge { limit: MAX_KEY });
        }
        bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
    }
    (bytes > MAX_BATCH).then_some(KvError::TooLarge { limit: MAX_BATCH })
}
