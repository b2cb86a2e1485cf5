//! The one writer of a store.
//!
//! One write is on its way at a time; SlateDB would not send a second one either. Whatever is committed
//! meanwhile goes with the next one.

use std::sync::Arc;
use std::time::Duration;

use slatedb::config::{CloseOptions, FlushOptions, FlushType};
use slatedb::{CloseReason, Db, WriteBatch};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, timeout};
use trefoil_kv::contract::{KvBatch, KvError, KvResult};

use super::MAX_BATCH;
use super::clock::StoreClock;
use super::queue::{StoreQueue, WriterStep};
use crate::error::of_write;
use crate::options::StoreOptions;

/// How long SlateDB may hold a write back because too much waits to be merged.
pub(super) const MAX_STALL: Duration = Duration::from_secs(60);
/// How long ending a SlateDB may take.
pub(super) const CLOSE_DEADLINE: Duration = Duration::from_secs(5);
/// After how many groups memory is written to a table: opening reads that many objects one by one.
/// (SlateDB would do so after some thousands.)
const GROUPS_PER_TABLE: usize = 300;
/// After how many bytes it is likely to do so by itself.
const BYTES_PER_TABLE: usize = 8 << 20;

/// See the module.
pub(super) struct SlateWriter {
    db: Db,
    queue: Arc<StoreQueue>,
    clock: Arc<StoreClock>,
    /// When the next write may begin.
    turns: Option<Duration>,
    deadline: Duration,
    groups: usize,
    bytes: usize,
    /// Writes memory to a table.
    tabling: Option<JoinHandle<()>>,
}

impl SlateWriter {
    /// Returns the writer of a SlateDB.
    pub(super) fn new(
        db: Db,
        queue: Arc<StoreQueue>,
        clock: Arc<StoreClock>,
        options: &StoreOptions,
    ) -> Self {
        let spacing = options.write_spacing;
        Self {
            db,
            queue,
            clock,
            turns: (!spacing.is_zero()).then_some(spacing),
            deadline: options.write_deadline,
            groups: 0,
            bytes: 0,
            tabling: None,
        }
    }

    /// Writes until the handle is closed or lost, and ends the SlateDB.
    pub(super) async fn run(mut self) {
        if let Err(error) = self.serve().await {
            self.queue.end(&error);
        }
        self.close().await;
    }

    async fn serve(&mut self) -> KvResult<()> {
        let mut status = self.db.subscribe();
        let mut turns = self.turns.map(interval);
        loop {
            match self.queue.next() {
                WriterStep::Close => return Ok(()),
                WriterStep::Moments(senders) => {
                    // Nothing is on its way, so what is there is durable.
                    let snapshot = self.db.snapshot().map_err(|error| of_write(&error))?;
                    for sender in senders {
                        let _ = sender.send(Arc::clone(&snapshot));
                    }
                }
                WriterStep::Wait => {
                    tokio::select! {
                        () = self.queue.news() => {}
                        changed = status.changed() => {
                            let reason = status.borrow_and_update().close_reason;
                            if let Some(error) = lost(changed.is_ok(), reason) {
                                return Err(error);
                            }
                        }
                    }
                }
                WriterStep::Write => {
                    if let Some(turns) = &mut turns {
                        tokio::select! {
                            _ = turns.tick() => {}
                            () = self.queue.news() => continue,
                        }
                    }
                    self.write_group().await?;
                }
            }
        }
    }

    async fn write_group(&mut self) -> KvResult<()> {
        let group = self.queue.take(MAX_BATCH);
        let written = self.write(&group.batches).await;
        for done in group.done {
            done(written.clone());
        }
        written
    }

    async fn write(&mut self, batches: &[KvBatch]) -> KvResult<()> {
        let mut all = WriteBatch::new();
        for (key, value) in batches.iter().flat_map(|batch| &batch.changes) {
            self.bytes += key.len() + value.as_ref().map_or(0, bytes::Bytes::len);
            match value {
                Some(value) => all.put_bytes(key.clone(), value.clone()),
                None => all.delete(key),
            }
        }
        if all.is_empty() {
            return Ok(());
        }
        let late = |what: &str| KvError::Unknown(format!("{what} took too long"));
        let written = timeout(MAX_STALL, self.db.write(all)).await;
        let written = written.map_err(|_| late("making room for a write"))?;
        written.map_err(|error| of_write(&error))?;
        let flushed = timeout(self.deadline, self.db.flush()).await;
        let flushed = flushed.map_err(|_| late("a write"))?;
        flushed.map_err(|error| of_write(&error))?;
        self.note_work();
        Ok(())
    }

    /// Sees to it that little has to be read at the next opening, and that tables are merged in time.
    fn note_work(&mut self) {
        self.groups += 1;
        if self.bytes >= BYTES_PER_TABLE {
            self.bytes = 0;
            self.clock.hurry();
        }
        let is_busy = self
            .tabling
            .as_ref()
            .is_some_and(|task| !task.is_finished());
        if self.groups < GROUPS_PER_TABLE || is_busy {
            return;
        }
        self.groups = 0;
        let (db, clock) = (self.db.clone(), Arc::clone(&self.clock));
        self.tabling = Some(tokio::spawn(async move {
            let options = FlushOptions {
                flush_type: FlushType::MemTable,
            };
            match db.flush_with_options(options).await {
                Ok(()) => clock.hurry(),
                Err(error) => tracing::debug!(%error, "memory was not written to a table"),
            }
        }));
    }

    /// Ends the SlateDB. Everything that was acknowledged is durable, so only time can be lost here.
    async fn close(self) {
        let options = CloseOptions::default().with_flush_type(Some(FlushType::Wal));
        let db = self.db;
        // What takes longer goes on without anybody waiting: if it were dropped, so would be the end.
        let closing = tokio::spawn(async move { db.close_with_options(options).await });
        match timeout(CLOSE_DEADLINE, closing).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::debug!(%error, "a store was closed with an error"),
            Ok(Err(error)) => tracing::warn!(%error, "closing a store failed"),
            Err(_) => tracing::warn!("closing a store takes long; it goes on"),
        }
    }
}

fn interval(spacing: Duration) -> Interval {
    let mut turns = tokio::time::interval(spacing);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    turns
}

/// Returns why a SlateDB is of no more use, if it is not.
fn lost(is_there: bool, reason: Option<CloseReason>) -> Option<KvError> {
    match reason {
        Some(CloseReason::Fenced) => Some(KvError::Fenced),
        Some(reason) => Some(KvError::Unknown(format!("the store ended: {reason:?}"))),
        None if is_there => None,
        None => Some(KvError::Unknown("the store is gone".to_owned())),
    }
}
