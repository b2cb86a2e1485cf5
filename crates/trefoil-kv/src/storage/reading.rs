//! Reading items by their positions.
//!
//! Positions that lie close together are walked over. The blocks of others are fetched together. Which
//! block has a position is not known before it is there: so only some positions are asked for at
//! first, as far apart as blocks have turned out to be long.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;

use bytes::Bytes;
use trefoil_core::{Direction, Result};
use trefoil_storage::{VisitItem, VisitLabel};

use super::block::ItemBlock;
use super::errors::{damaged, damaged_log, failed};
use super::keys::{Tag, number_of};
use super::log::KvLog;
use super::store::next_key;

/// How many positions of one read are fetched together, at most: so many blocks are in memory then.
const TOGETHER: usize = 256;
/// This many positions that lie close together are read by walking over them.
const DENSE_MIN: usize = 8;
/// How many items a block is taken to have before one was seen.
const ITEMS_PER_BLOCK: u64 = 16;

/// What there is at some positions.
#[derive(Debug)]
enum FoundStretch {
    Block(Arc<ItemBlock>),
    /// There never was anything up to this position, itself not included.
    Nothing(u64),
}

/// What was found, by first position.
#[derive(Debug, Default)]
struct FoundStretches(BTreeMap<u64, FoundStretch>);

impl FoundStretches {
    fn find(&self, position: u64) -> Option<&FoundStretch> {
        let (_, stretch) = self.0.range(..=position).next_back()?;
        let has_it = match stretch {
            FoundStretch::Block(block) => block.contains(position),
            FoundStretch::Nothing(end) => position < *end,
        };
        has_it.then_some(stretch)
    }

    /// Adds a block. Those that were packed into it meanwhile would hide it.
    fn add(&mut self, block: Arc<ItemBlock>) {
        let inside = self.0.range(block.first + 1..block.end());
        let inside: Vec<u64> = inside.map(|(first, _)| *first).collect();
        inside.iter().for_each(|first| drop(self.0.remove(first)));
        self.0.insert(block.first, FoundStretch::Block(block));
    }

    /// Adds the block that comes after the one that ends here.
    fn add_after(&mut self, end: u64, block: Arc<ItemBlock>) -> Result<()> {
        if block.first.checked_sub(block.gap) != Some(end) {
            return Err(damaged_log(end, "a block of items is missing"));
        }
        if block.gap > 0 {
            self.0.insert(end, FoundStretch::Nothing(block.first));
        }
        self.add(block);
        Ok(())
    }
}

impl KvLog {
    /// Hands the items at these positions to `visit`.
    pub(super) fn read(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<()> {
        self.visit_blocks(
            positions,
            &mut |block, position| match block.item(position) {
                Some(item) => visit(item),
                None => ControlFlow::Continue(()),
            },
        )
    }

    /// Hands the labels of the items at these positions to `visit`.
    pub(super) fn read_labels(&self, positions: &[u64], visit: &mut VisitLabel<'_>) -> Result<()> {
        self.visit_blocks(positions, &mut |block, position| {
            if let Some(label) = block.label(position) {
                visit(position, label);
            }
            ControlFlow::Continue(())
        })
    }

    fn visit_blocks(
        &self,
        positions: &[u64],
        visit: &mut dyn FnMut(&ItemBlock, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        self.store.check()?;
        let end = self.end().position;
        for together in positions.chunks(TOGETHER) {
            let found = self.find_all(together, end)?;
            for &position in together {
                if let Some(FoundStretch::Block(block)) = found.find(position)
                    && visit(block, position).is_break()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Finds what there is at these positions, in memory or in the store.
    fn find_all(&self, positions: &[u64], end: u64) -> Result<FoundStretches> {
        let mut found = FoundStretches::default();
        let mut missing: Vec<u64> = Vec::new();
        for &position in positions {
            if !(1..=end).contains(&position) || found.find(position).is_some() {
                continue;
            }
            match self.recent.find(position) {
                Some(block) => found.add(block),
                None => missing.push(position),
            }
        }
        missing.sort_unstable();
        missing.dedup();
        let n_edits = self.recent.n_edits();
        if let Some(range) = dense(&missing) {
            for block in self.walk_over(&range, &mut found)? {
                self.recent.keep(&block, n_edits);
            }
            missing.retain(|position| found.find(*position).is_none());
        }
        let mut step = ITEMS_PER_BLOCK;
        while !missing.is_empty() {
            let fetched = self.fetch(&pick(&missing, step), end, &mut found)?;
            let n_items: usize = fetched.iter().map(|block| block.len()).sum();
            step = (n_items / fetched.len().max(1)).max(1) as u64;
            for block in fetched {
                self.recent.keep(&block, n_edits);
            }
            missing.retain(|position| found.find(*position).is_none());
        }
        Ok(found)
    }

    /// Reads the blocks of a range one after the other.
    fn walk_over(
        &self,
        range: &RangeInclusive<u64>,
        found: &mut FoundStretches,
    ) -> Result<Vec<Arc<ItemBlock>>> {
        let keys = &self.store.keys;
        let first = keys.numbered(Tag::Items, 0);
        let from = keys.numbered(Tag::Items, *range.start());
        let to = keys.after(Tag::Items, *range.end());
        // At one moment: blocks that are packed meanwhile would seem to be missing.
        let moment = self.store.moment()?;
        let floor = moment.floor(&[(&first, &from)]);
        let floor = floor.map_err(failed("reading items"))?;
        let mut read: Vec<Arc<ItemBlock>> = Vec::new();
        if let Some((key, value)) = floor.into_iter().flatten().next() {
            let block = Arc::new(self.decode(&key, &value)?);
            found.add(Arc::clone(&block));
            read.push(block);
        }
        let range = (next_key(&from), to);
        self.store.walk(&*moment, range, &mut |key, value| {
            let end = read.last().map_or(1, |block| block.end());
            let block = Arc::new(self.decode(&key, &value)?);
            found.add_after(end, Arc::clone(&block))?;
            read.push(block);
            Ok(())
        })?;
        Ok(read)
    }

    /// Fetches the blocks of these positions, and finds out where there is none.
    fn fetch(
        &self,
        positions: &[u64],
        end: u64,
        found: &mut FoundStretches,
    ) -> Result<Vec<Arc<ItemBlock>>> {
        let keys = &self.store.keys;
        let first = keys.numbered(Tag::Items, 0);
        let last = positions.iter();
        let last: Vec<Bytes> = last
            .map(|position| keys.numbered(Tag::Items, *position))
            .collect();
        let ranges: Vec<(&[u8], &[u8])> = last.iter().map(|last| (&first[..], &last[..])).collect();
        let floors = self.store.kv.floor(&ranges);
        let floors = floors.map_err(failed("reading items"))?;
        let mut fetched: Vec<Arc<ItemBlock>> = Vec::new();
        for (&position, floor) in positions.iter().zip(floors) {
            let block = match floor {
                Some((key, value)) => {
                    let known = found.0.get(&number_of(&key));
                    Some(match known {
                        // Another block may begin here by now.
                        Some(FoundStretch::Block(block)) if block.contains(position) => {
                            Arc::clone(block)
                        }
                        _ => {
                            let block = Arc::new(self.decode(&key, &value)?);
                            fetched.push(Arc::clone(&block));
                            block
                        }
                    })
                }
                None => None,
            };
            let block_end = block.as_ref().map_or(1, |block| block.end());
            block.into_iter().for_each(|block| found.add(block));
            if found.find(position).is_none() {
                fetched.push(self.look_beyond(block_end..position, end, found)?);
            }
        }
        Ok(fetched)
    }

    /// Finds the block after a position that no block has. The one before it ends where `nothing`
    /// begins.
    fn look_beyond(
        &self,
        nothing: Range<u64>,
        end: u64,
        found: &mut FoundStretches,
    ) -> Result<Arc<ItemBlock>> {
        let keys = &self.store.keys;
        let from = keys.numbered(Tag::Items, nothing.end);
        let to = keys.after(Tag::Items, end);
        let scan = self.store.kv.scan(&from, &to, Direction::Forwards, 1, true);
        let page = scan.map_err(failed("reading items"))?;
        let lacks = || damaged_log(nothing.start, "a block of items is missing");
        let (key, value) = page.entries.first().ok_or_else(lacks)?;
        let block = Arc::new(self.decode(key, value)?);
        found.add_after(nothing.start, Arc::clone(&block))?;
        Ok(block)
    }

    /// Returns the block that is stored under a key. Its parts may be replaced meanwhile, if its items
    /// are: then it is read again.
    pub(super) fn decode(&self, key: &Bytes, value: &Bytes) -> Result<ItemBlock> {
        let (cells, kv) = (&self.store.cells, &*self.store.kv);
        let content = match cells.content(kv, key, value)? {
            Some(content) => content,
            None => {
                let moment = self.store.moment()?;
                let again = moment.get(&[key]).map_err(failed("reading items"))?;
                let again = again.into_iter().flatten().next();
                let again = again.ok_or_else(|| damaged(key, "a block of items is missing"))?;
                cells.settled(&*moment, key, &again)?
            }
        };
        let block = ItemBlock::decode(number_of(key), &content);
        block.ok_or_else(|| damaged(key, "this is not a block of items"))
    }
}

/// Returns those of ascending positions that lie at least this far apart.
fn pick(positions: &[u64], step: u64) -> Vec<u64> {
    let mut picked: Vec<u64> = Vec::new();
    for &position in positions {
        if picked.last().is_none_or(|last| position - last >= step) {
            picked.push(position);
        }
    }
    picked
}

/// Returns from where to where positions lie, if they are many and lie close together.
fn dense(positions: &[u64]) -> Option<RangeInclusive<u64>> {
    let (first, last) = (*positions.first()?, *positions.last()?);
    let is_dense = positions.len() >= DENSE_MIN && last - first < 2 * positions.len() as u64;
    is_dense.then_some(first..=last)
}
