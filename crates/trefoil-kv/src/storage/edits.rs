//! Replacing and dropping items for good: the blocks that have them are written again.

use std::ops::Range;

use bytes::Bytes;
use trefoil_core::Result;
use trefoil_storage::StoredItem;
use trefoil_storage::parts::{Edits, no_item};

use super::KvStorage;
use super::block::ItemBlock;
use super::cell::{Packing, Puts};
use super::errors::failed;
use super::facts::GarbageFact;
use super::garbage::remove_all;
use super::keys::Tag;
use super::store::{KeyChange, puts_to_changes};

impl KvStorage {
    /// Puts stubs in the place of items.
    pub(super) fn replace(&self, stubs: &[StoredItem]) -> Result<()> {
        let _editing = self.editing.lock();
        let edits = Edits::replacing(stubs);
        let positions = edits.replaced();
        let mut found = Vec::with_capacity(positions.len());
        self.log
            .read_labels(&positions, &mut |position, _| found.push(position))?;
        if let Some(position) = positions.iter().find(|position| !found.contains(position)) {
            return Err(no_item(*position));
        }
        let ranges = positions.iter().map(|&position| position..position + 1);
        self.edit(&edits, ranges)
    }

    /// Drops the items at these positions.
    pub(super) fn drop_all(&self, positions: &[Range<u64>]) -> Result<()> {
        let _editing = self.editing.lock();
        let edits = Edits::dropping(positions);
        self.edit(&edits, edits.ranges().iter().cloned())
    }

    fn edit(&self, edits: &Edits<'_>, ranges: impl Iterator<Item = Range<u64>>) -> Result<()> {
        self.store.check()?;
        let end = self.log.end().position;
        // Up to here all blocks were looked at.
        let mut seen = 0;
        let edited = { ranges }.try_for_each(|range| {
            let range = range.start.max(seen)..range.end.min(end + 1);
            if range.is_empty() {
                return Ok(());
            }
            let first = self.first_block(range.start)?;
            let walked = (first, self.store.keys.numbered(Tag::Items, range.end));
            self.store.walk(&*self.store.kv, walked, &mut |key, value| {
                let block = self.log.decode(&key, &value)?;
                seen = block.end();
                match edits.touch(&(block.first..block.end())) {
                    true => self.write_again(&key, &value, &block, edits),
                    false => Ok(()),
                }
            })
        });
        self.log.recent.forget();
        edited
    }

    /// Returns the key of the block that has a position, or of none before it.
    fn first_block(&self, position: u64) -> Result<Bytes> {
        let keys = &self.store.keys;
        let (first, last) = (
            keys.numbered(Tag::Items, 0),
            keys.numbered(Tag::Items, position),
        );
        let floor = self.store.kv.floor(&[(&first, &last)]);
        let floor = floor.map_err(failed("reading items"))?;
        let key = floor.into_iter().flatten().next().map(|(key, _)| key);
        Ok(key.unwrap_or(last))
    }

    fn write_again(
        &self,
        key: &Bytes,
        value: &Bytes,
        block: &ItemBlock,
        edits: &Edits<'_>,
    ) -> Result<()> {
        let mut record = block.to_record();
        edits.apply(&mut record);
        let edited = ItemBlock::of(block.first, block.gap, &record.items);
        let mut numbers = self.store.numbers(1);
        let mut puts = Puts::new();
        let (cells, content) = (&self.store.cells, edited.encode());
        cells.put(&mut puts, key.clone(), &content, Packing::Zstd, || {
            numbers.next()
        })?;
        let mut changes: Vec<KeyChange> = puts_to_changes(puts).collect();
        let mut last = Vec::new();
        if !self.store.fits(&changes) {
            // The parts come first. The value, which leads to them, comes last.
            let head = changes.remove(0);
            let garbage = GarbageFact::Rests(numbers.used());
            let (number, declaration) = self.store.declare(&garbage);
            let written = self
                .store
                .commit_together(self.store.cut(changes, &[declaration]));
            written.inspect_err(|_| self.garbage.push(number, garbage))?;
            changes = vec![head];
            last.push(self.store.retraction(number));
        }
        changes.extend(last);
        let old = cells.rest(key, value)?.map(|rest| {
            let old = GarbageFact::Rests(rest.number..rest.number + 1);
            let (number, declaration) = self.store.declare(&old);
            changes.push(declaration);
            (number, old)
        });
        let freed = value.len().saturating_sub(content.len()) as u64;
        self.usage.commit(&self.store, changes, |usage| {
            usage.dropped_bytes += freed;
        })?;
        match old {
            Some((number, old)) => remove_all(&self.store, number, &old, self.log.end()),
            None => Ok(()),
        }
    }
}
