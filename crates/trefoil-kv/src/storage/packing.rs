//! Small blocks of items become larger ones, which take less room and are fewer to be read.
//!
//! A group of one event is a block of one item. What compresses is what items have in common, and a key
//! costs more than such an item.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::{Direction, Result};
use trefoil_storage::Items;

use super::KvStorage;
use super::block::{BLOCK_BYTES, ItemBlock};
use super::cell::{Packing, Puts};
use super::errors::failed;
use super::facts::PackedFact;
use super::garbage::removals;
use super::keys::Tag;
use super::store::{KeyChange, OpenStore, change_bytes, puts_to_changes};

/// How much one step looks at.
const STEP_BYTES: usize = 1024 * 1024;
/// It is done when the log has grown by this many blocks as large as they may become.
const BLOCKS_MIN: usize = 16;

/// How far blocks were packed.
#[derive(Debug)]
pub(super) struct PackingState(Mutex<PackedFact>);

impl PackingState {
    pub(super) fn new(fact: PackedFact) -> Self {
        Self(Mutex::new(fact))
    }
}

/// Returns how large blocks are made: so that each is one value.
fn target_bytes(store: &OpenStore) -> usize {
    let room = store.limits.batch_bytes / 4;
    BLOCK_BYTES.min(store.cells.part_bytes()).min(room)
}

impl KvStorage {
    /// Returns whether the log has grown by enough to pack blocks.
    pub(super) fn is_packing_due(&self) -> bool {
        let grown = self.log.appended_bytes() - self.packing.0.lock().n_bytes;
        grown >= (BLOCKS_MIN * target_bytes(&self.store)) as u64
    }

    /// Packs some blocks.
    pub(super) fn pack(&self) -> Result<()> {
        // Whoever replaces items writes blocks again, too.
        let _editing = self.editing.lock();
        let mut packed = self.packing.0.lock();
        let (n_bytes, end) = (self.log.appended_bytes(), self.log.end().position);
        let keys = &self.store.keys;
        let from = keys.after(Tag::Items, packed.position);
        let to = keys.after(Tag::Items, end);
        let page = self
            .store
            .kv
            .scan(&from, &to, Direction::Forwards, STEP_BYTES, false);
        let page = page.map_err(failed("packing items"))?;
        let mut runs = BlockRuns::new(&self.store);
        for (key, value) in page.entries {
            let block = self.log.decode(&key, &value)?;
            runs.push(key, &value, block)?;
        }
        let next = PackedFact {
            position: runs.up_to(page.has_more).unwrap_or(packed.position),
            n_bytes: match page.has_more {
                true => packed.n_bytes,
                false => n_bytes,
            },
        };
        runs.end_run()?;
        let freed = runs.freed_bytes;
        self.store.commit_together(runs.batches)?;
        let changes = vec![self.store.fact(Tag::Packed, &next.encode())];
        self.usage.commit(&self.store, changes, |usage| {
            usage.dropped_bytes += freed;
        })?;
        *packed = next;
        Ok(())
    }
}

/// Blocks that become one, and those that did.
struct BlockRuns<'a> {
    store: &'a OpenStore,
    target: usize,
    /// The blocks of the last run.
    open: Vec<Arc<ItemBlock>>,
    /// The removals of those that are not the first of it.
    removals: Vec<KeyChange>,
    open_bytes: usize,
    stored_bytes: usize,
    n_runs: usize,
    batches: Vec<Vec<KeyChange>>,
    freed_bytes: u64,
}

impl<'a> BlockRuns<'a> {
    fn new(store: &'a OpenStore) -> Self {
        Self {
            store,
            target: target_bytes(store),
            open: Vec::new(),
            removals: Vec::new(),
            open_bytes: 0,
            stored_bytes: 0,
            n_runs: 0,
            batches: Vec::new(),
            freed_bytes: 0,
        }
    }

    /// Adds the next block.
    fn push(&mut self, key: Bytes, value: &Bytes, block: ItemBlock) -> Result<()> {
        let content_bytes = block.encode().len();
        let removed = removals(self.store, key, value);
        let removed_bytes: usize = removed.iter().map(change_bytes).sum();
        let is_next = self
            .open
            .last()
            .is_some_and(|last| last.end() == block.first);
        let n_bytes = self.open_bytes + content_bytes + removed_bytes;
        if !is_next || n_bytes > self.target {
            self.end_run()?;
            self.n_runs += 1;
        } else {
            self.removals.extend(removed);
            self.open_bytes += removed_bytes;
        }
        self.open_bytes += content_bytes;
        self.stored_bytes += value.len();
        self.open.push(Arc::new(block));
        Ok(())
    }

    /// Makes one block of the last run, if it has several.
    fn end_run(&mut self) -> Result<()> {
        let blocks = std::mem::take(&mut self.open);
        let mut changes = std::mem::take(&mut self.removals);
        let stored_bytes = std::mem::take(&mut self.stored_bytes);
        self.open_bytes = 0;
        let [first, _, ..] = blocks.as_slice() else {
            return Ok(());
        };
        let mut items = Items::default();
        for block in &blocks {
            block.copy(block.first..block.end(), &mut items);
        }
        let merged = ItemBlock::of(first.first, first.gap, &items);
        let key = self.store.keys.numbered(Tag::Items, merged.first);
        let mut puts = Puts::new();
        let number = || self.store.new_number();
        let (cells, content) = (&self.store.cells, merged.encode());
        cells.put(&mut puts, key, &content, Packing::Zstd, number)?;
        let n_bytes: usize = puts.iter().map(|(_, value)| value.len()).sum();
        self.freed_bytes += stored_bytes.saturating_sub(n_bytes) as u64;
        changes.extend(puts_to_changes(puts));
        self.batches.push(changes);
        Ok(())
    }

    /// Returns up to which position no block will become larger.
    fn up_to(&self, has_more: bool) -> Option<u64> {
        let (first, last) = (self.open.first()?, self.open.last()?);
        // With nothing before it, it is as large as it can become.
        Some(match self.n_runs > 1 || !has_more {
            true => first.first - 1,
            false => last.end() - 1,
        })
    }
}
