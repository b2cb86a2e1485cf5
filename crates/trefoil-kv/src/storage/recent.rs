//! Blocks of the log in memory: the last that were appended, and the last that were read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::block::ItemBlock;

/// Blocks in memory.
#[derive(Debug)]
pub(super) struct RecentBlocks {
    tail: RwLock<LogTail>,
    read: Mutex<ReadBlocks>,
}

/// The end of the log: every block from the first on.
#[derive(Debug)]
struct LogTail {
    blocks: VecDeque<Arc<ItemBlock>>,
    bytes: usize,
    bytes_max: usize,
}

/// Blocks that were read. Which one goes when there is no more room is found by going round: it is the
/// first that was not used since the last time.
#[derive(Debug)]
struct ReadBlocks {
    blocks: BTreeMap<u64, (Arc<ItemBlock>, bool)>,
    bytes: usize,
    bytes_max: usize,
    /// Where going round goes on.
    next: u64,
    /// How often items were replaced or dropped.
    n_edits: u64,
}

impl RecentBlocks {
    /// Keeps this many bytes of the end of the log, and of what was read.
    pub(super) fn new(tail_bytes: usize, read_bytes: usize) -> Self {
        Self {
            tail: RwLock::new(LogTail {
                blocks: VecDeque::new(),
                bytes: 0,
                bytes_max: tail_bytes,
            }),
            read: Mutex::new(ReadBlocks {
                blocks: BTreeMap::new(),
                bytes: 0,
                bytes_max: read_bytes,
                next: 0,
                n_edits: 0,
            }),
        }
    }

    /// Adds blocks that were appended.
    pub(super) fn push(&self, blocks: Vec<Arc<ItemBlock>>) {
        let mut tail = self.tail.write();
        for block in blocks {
            tail.bytes += block.memory();
            tail.blocks.push_back(block);
        }
        while tail.bytes > tail.bytes_max {
            let Some(block) = tail.blocks.pop_front() else {
                break;
            };
            tail.bytes -= block.memory();
        }
    }

    /// Returns the block with a position, if it is in memory.
    pub(super) fn find(&self, position: u64) -> Option<Arc<ItemBlock>> {
        let tail = self.tail.read();
        let after = tail.blocks.partition_point(|block| block.first <= position);
        let found = after.checked_sub(1).and_then(|at| tail.blocks.get(at));
        if let Some(block) = found.filter(|block| block.contains(position)) {
            return Some(Arc::clone(block));
        }
        drop(tail);
        let mut read = self.read.lock();
        let (_, (block, is_used)) = read.blocks.range_mut(..=position).next_back()?;
        if !block.contains(position) {
            return None;
        }
        *is_used = true;
        Some(Arc::clone(block))
    }

    /// Returns what says whether items were replaced or dropped meanwhile.
    pub(super) fn n_edits(&self) -> u64 {
        self.read.lock().n_edits
    }

    /// Keeps a block that was read, unless items were replaced or dropped since it was looked for.
    pub(super) fn keep(&self, block: &Arc<ItemBlock>, n_edits: u64) {
        let mut read = self.read.lock();
        if read.n_edits != n_edits || block.memory() > read.bytes_max {
            return;
        }
        read.forget_inside(block);
        read.bytes += block.memory();
        let kept = (Arc::clone(block), false);
        if let Some((before, _)) = read.blocks.insert(block.first, kept) {
            read.bytes -= before.memory();
        }
        read.shrink(block.first);
    }

    /// Forgets everything, because items were replaced or dropped.
    pub(super) fn forget(&self) {
        let mut tail = self.tail.write();
        tail.blocks.clear();
        tail.bytes = 0;
        let mut read = self.read.lock();
        read.blocks.clear();
        read.bytes = 0;
        read.n_edits += 1;
    }

    /// Returns how many bytes of memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.tail.read().bytes + self.read.lock().bytes
    }
}

impl ReadBlocks {
    /// Forgets blocks that were packed into this one: they would hide it.
    fn forget_inside(&mut self, block: &ItemBlock) {
        let inside = self.blocks.range(block.first + 1..block.end());
        let inside: Vec<u64> = inside.map(|(first, _)| *first).collect();
        for first in inside {
            if let Some((forgotten, _)) = self.blocks.remove(&first) {
                self.bytes -= forgotten.memory();
            }
        }
    }

    /// Makes room for the block that begins here.
    fn shrink(&mut self, newest: u64) {
        while self.bytes > self.bytes_max {
            let next = self.blocks.range_mut(self.next..).next();
            let Some((&first, (block, is_used))) = next else {
                if self.next == 0 {
                    return;
                }
                self.next = 0;
                continue;
            };
            self.next = first + 1;
            if !std::mem::take(is_used) && first != newest {
                self.bytes -= block.memory();
                self.blocks.remove(&first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use trefoil_storage::{Items, Label};

    use super::*;

    fn block(first: u64, n_bytes: usize) -> Arc<ItemBlock> {
        let mut items = Items::default();
        items.push(Label::default(), &vec![1; n_bytes]);
        items.push(Label::default(), &[]);
        Arc::new(ItemBlock::of(first, 0, &items))
    }

    #[test]
    fn the_end_of_the_log_stays() {
        let recent = RecentBlocks::new(3000, 0);
        for number in 0..10 {
            recent.push(vec![block(1 + 2 * number, 900)]);
        }
        assert!(recent.bytes() <= 3000);
        assert_eq!(recent.find(20).unwrap().first, 19);
        assert_eq!(recent.find(16).unwrap().first, 15);
        assert!(recent.find(2).is_none() && recent.find(21).is_none());
        recent.forget();
        assert!(recent.find(20).is_none() && recent.bytes() == 0);
    }

    #[test]
    fn what_is_read_again_stays() {
        let recent = RecentBlocks::new(0, 3500);
        for number in 0..100 {
            let edits = recent.n_edits();
            recent.keep(&block(1 + 2 * number, 900), edits);
            assert!(recent.bytes() <= 3500);
            recent.find(1);
        }
        assert!(recent.find(1).is_some(), "it was read all the time");
        assert!(recent.find(199).is_some() && recent.find(21).is_none());
        let before = recent.n_edits();
        recent.forget();
        recent.keep(&block(1, 900), before);
        assert!(recent.find(1).is_none(), "it is from before the edit");
    }
}
