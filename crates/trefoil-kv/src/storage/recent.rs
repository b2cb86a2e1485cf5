//! Blocks of the log in memory: the last that were appended, and the last that were read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::block::ItemBlock;
use super::room::LogRoom;

/// Blocks in memory.
#[derive(Debug)]
pub(super) struct RecentBlocks {
    room: Arc<LogRoom>,
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
    /// Where going round goes on.
    next: u64,
    /// The block that was read last, which is being used.
    newest: u64,
    /// How often items were replaced or dropped.
    n_edits: u64,
}

impl RecentBlocks {
    /// Keeps as much as there is room for, and no more than this of the end of the log.
    pub(super) fn new(room: &Arc<LogRoom>, tail_bytes: usize) -> Arc<Self> {
        let recent = Arc::new(Self {
            room: Arc::clone(room),
            tail: RwLock::new(LogTail {
                blocks: VecDeque::new(),
                bytes: 0,
                bytes_max: tail_bytes,
            }),
            read: Mutex::new(ReadBlocks {
                blocks: BTreeMap::new(),
                bytes: 0,
                next: 0,
                newest: 0,
                n_edits: 0,
            }),
        });
        room.join(&recent);
        recent
    }

    /// Adds blocks that were appended.
    pub(super) fn push(&self, blocks: Vec<Arc<ItemBlock>>) {
        let mut tail = self.tail.write();
        for block in blocks {
            self.room.take(block.memory());
            tail.bytes += block.memory();
            tail.blocks.push_back(block);
        }
        while tail.bytes > tail.bytes_max {
            self.room.give(tail.forget_first());
        }
        drop(tail);
        self.room.shrink();
    }

    /// Forgets a block, if there is one: of whichever there is more, the end of the log or what was read.
    pub(super) fn give_up(&self) {
        let mut tail = self.tail.write();
        let mut read = self.read.lock();
        self.room.give(match tail.bytes > read.bytes {
            true => tail.forget_first(),
            false => read.forget_unused(),
        });
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
        if read.n_edits != n_edits || block.memory() > self.room.bytes_max() {
            return;
        }
        let before = read.bytes;
        read.forget_inside(block);
        read.bytes += block.memory();
        read.newest = block.first;
        let kept = (Arc::clone(block), false);
        if let Some((before, _)) = read.blocks.insert(block.first, kept) {
            read.bytes -= before.memory();
        }
        self.room.take(read.bytes);
        self.room.give(before);
        drop(read);
        self.room.shrink();
    }

    /// Forgets everything, because items were replaced or dropped.
    pub(super) fn forget(&self) {
        let mut tail = self.tail.write();
        let mut read = self.read.lock();
        self.room.give(tail.bytes + read.bytes);
        tail.blocks.clear();
        tail.bytes = 0;
        read.blocks.clear();
        read.bytes = 0;
        read.n_edits += 1;
    }

    /// Returns how many bytes of memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.tail.read().bytes + self.read.lock().bytes
    }
}

impl Drop for RecentBlocks {
    fn drop(&mut self) {
        self.room.give(self.bytes());
    }
}

impl LogTail {
    /// Forgets the oldest block. Returns how many bytes it took.
    fn forget_first(&mut self) -> usize {
        let Some(block) = self.blocks.pop_front() else {
            return 0;
        };
        self.bytes -= block.memory();
        block.memory()
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

    /// Forgets a block that was not used since the last time. Returns how many bytes it took.
    fn forget_unused(&mut self) -> usize {
        let n_blocks = self.blocks.len();
        loop {
            let next = self.blocks.range_mut(self.next..).next();
            let Some((&first, (block, is_used))) = next else {
                if self.next == 0 {
                    return 0;
                }
                self.next = 0;
                continue;
            };
            self.next = first + 1;
            let is_newest = first == self.newest && n_blocks > 1;
            if !std::mem::take(is_used) && !is_newest {
                let forgotten = block.memory();
                self.bytes -= forgotten;
                self.blocks.remove(&first);
                return forgotten;
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
        let recent = RecentBlocks::new(&Arc::new(LogRoom::new(100_000)), 3000);
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
        let room = Arc::new(LogRoom::new(3500));
        let recent = RecentBlocks::new(&room, 0);
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

    #[test]
    fn all_logs_share_the_room() {
        let room = Arc::new(LogRoom::new(20_000));
        let fill = |recent: &RecentBlocks| {
            for number in 0..100 {
                recent.push(vec![block(1 + 2 * number, 900)]);
                recent.keep(&block(1001 + 2 * number, 900), 0);
            }
        };
        let idle = RecentBlocks::new(&room, 30_000);
        fill(&idle);
        let all = idle.bytes();
        assert!((15_000..=20_000).contains(&all), "{all}");
        let busy = RecentBlocks::new(&room, 30_000);
        fill(&busy);
        assert!(idle.bytes() < all / 4, "it keeps {}", idle.bytes());
        assert!(busy.bytes() > all / 2 && idle.bytes() + busy.bytes() <= 20_000);
        drop(busy);
        fill(&idle);
        assert_eq!(idle.bytes(), all);
    }
}
