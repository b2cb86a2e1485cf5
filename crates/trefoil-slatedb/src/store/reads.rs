//! Reads of a store, as it is or as it was at a moment.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use slatedb::config::{DurabilityLevel, ReadOptions, ScanOptions};
use slatedb::{DbReadOps, IterationOrder};
use trefoil_core::Direction;
use trefoil_kv::contract::{KvError, KvPage, KvRead, KvResult};

use super::queue::StoreQueue;
use crate::engine::EngineShared;
use crate::error::of_read;

/// How many lookups of one call are on their way at the same time.
const AT_ONCE: usize = 32;
/// How much a scan fetches with one request, and how many such requests are on their way.
const READ_AHEAD: usize = 1 << 20;
const FETCHES: usize = 4;
/// What a scan fetches at least: a block.
const BLOCK: usize = 4096;

/// Reads through `R`: a SlateDB or a snapshot of one.
pub(super) struct SlateReads<R> {
    shared: Arc<EngineShared>,
    reader: Arc<R>,
    queue: Arc<StoreQueue>,
}

impl<R> std::fmt::Debug for SlateReads<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SlateReads")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl<R> SlateReads<R> {
    /// Returns reads through `reader`, as long as the handle of the queue is there.
    pub(super) fn new(shared: Arc<EngineShared>, reader: Arc<R>, queue: Arc<StoreQueue>) -> Self {
        Self {
            shared,
            reader,
            queue,
        }
    }

    fn wait<T: Send + 'static>(
        &self,
        read: impl Future<Output = Result<T, slatedb::Error>> + Send + 'static,
    ) -> KvResult<T> {
        if let Some(error) = self.queue.ended() {
            return Err(error);
        }
        match self.shared.wait(self.shared.options.read_deadline, read) {
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) => Err(of_read(&error)),
            None => Err(KvError::Unavailable("a read took too long".to_owned())),
        }
    }
}

/// What is on its way, and not yet durable, is not read.
fn scan_options(direction: Direction, read_ahead: usize, is_kept: bool) -> ScanOptions {
    let order = match direction {
        Direction::Forwards => IterationOrder::Ascending,
        Direction::Backwards => IterationOrder::Descending,
    };
    ScanOptions::new()
        .with_durability_filter(DurabilityLevel::Remote)
        .with_order(order)
        .with_cache_blocks(is_kept)
        .with_read_ahead_bytes(read_ahead.clamp(BLOCK, READ_AHEAD))
        .with_max_fetch_tasks(FETCHES)
}

impl<R: DbReadOps + Send + Sync + 'static> KvRead for SlateReads<R> {
    fn get(&self, keys: &[&[u8]]) -> KvResult<Vec<Option<Bytes>>> {
        let keys: Vec<Bytes> = keys.iter().copied().map(Bytes::copy_from_slice).collect();
        let reader = Arc::clone(&self.reader);
        self.wait(async move {
            let options = ReadOptions::new().with_durability_filter(DurabilityLevel::Remote);
            let (reader, options) = (&reader, &options);
            let lookups = keys
                .into_iter()
                .map(|key| async move { reader.get_with_options(key, options).await });
            let lookups = futures_util::stream::iter(lookups).buffered(AT_ONCE);
            lookups.try_collect().await
        })
    }

    fn floor(&self, ranges: &[(&[u8], &[u8])]) -> KvResult<Vec<Option<(Bytes, Bytes)>>> {
        let copy = |(from, to): &(&[u8], &[u8])| {
            (Bytes::copy_from_slice(from), Bytes::copy_from_slice(to))
        };
        let ranges: Vec<(Bytes, Bytes)> = ranges.iter().map(copy).collect();
        let reader = Arc::clone(&self.reader);
        self.wait(async move {
            let options = scan_options(Direction::Backwards, BLOCK, true).with_max_fetch_tasks(1);
            let (reader, options) = (&reader, &options);
            let lookups = ranges.into_iter().map(|(from, to)| async move {
                if from > to {
                    return Ok(None);
                }
                let mut found = reader.scan_with_options(from..=to, options).await?;
                let last = found.next().await?;
                Ok(last.map(|entry| (entry.key, entry.value)))
            });
            let lookups = futures_util::stream::iter(lookups).buffered(AT_ONCE);
            lookups.try_collect().await
        })
    }

    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        max_bytes: usize,
        is_kept: bool,
    ) -> KvResult<KvPage> {
        if from >= to {
            return Ok(KvPage::default());
        }
        let (from, to) = (Bytes::copy_from_slice(from), Bytes::copy_from_slice(to));
        let reader = Arc::clone(&self.reader);
        self.wait(async move {
            let options = scan_options(direction, max_bytes, is_kept);
            let mut found = reader.scan_with_options(from..to, &options).await?;
            let mut page = KvPage::default();
            let mut bytes = 0;
            while let Some(entry) = found.next().await? {
                bytes += entry.key.len() + entry.value.len();
                page.entries.push((entry.key, entry.value));
                if bytes >= max_bytes {
                    page.has_more = true;
                    break;
                }
            }
            Ok(page)
        })
    }
}
