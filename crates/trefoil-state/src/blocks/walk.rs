//! Elements one after the other, in either direction, a block at a time.

use std::ops::Range;
use std::vec;

use bytes::Bytes;
use trefoil_core::Direction;

use super::block::{self, LEAF};
use super::tree::BlockTree;
use crate::error::Result;
use crate::keyspace::Keyspace;

/// A walk over elements.
pub(crate) struct BlockWalk<'s, 'a> {
    keyspace: &'s Keyspace<'a>,
    tree: BlockTree,
    direction: Direction,
    /// The index that the walk begins at, until it has.
    begin: Option<u64>,
    n_left: u64,
    /// The blocks that are still to be read, the higher ones first.
    blocks: Vec<vec::IntoIter<u64>>,
    elements: vec::IntoIter<Bytes>,
}

impl<'s, 'a> BlockWalk<'s, 'a> {
    pub(super) fn new(
        keyspace: &'s Keyspace<'a>,
        tree: BlockTree,
        range: Range<u64>,
        direction: Direction,
    ) -> Self {
        let begin = match direction {
            Direction::Forwards => range.start,
            Direction::Backwards => range.end.saturating_sub(1),
        };
        Self {
            keyspace,
            tree,
            direction,
            begin: Some(begin),
            n_left: range.end.saturating_sub(range.start),
            blocks: Vec::new(),
            elements: Vec::new().into_iter(),
        }
    }

    /// Goes down to the element at an index.
    fn begin(&mut self, index: u64) -> Result<()> {
        let mut block = self.tree.root(self.keyspace)?;
        let mut n_before = index;
        while block::level(&block)? != LEAF {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            let mut chosen = None;
            for below in block::below(&block) {
                let below = below?;
                if chosen.is_some() {
                    after.push(below.number);
                } else if n_before < below.len {
                    chosen = Some(below.number);
                    // The rest of the blocks is read only if the walk comes to them.
                    if self.is_within(n_before, below.len) {
                        before.clear();
                        break;
                    }
                } else {
                    n_before -= below.len;
                    before.push(below.number);
                }
            }
            let rest = match self.direction {
                Direction::Forwards => after,
                Direction::Backwards => {
                    before.reverse();
                    before
                }
            };
            self.blocks.push(rest.into_iter());
            let chosen = chosen.ok_or_else(block::unreadable)?;
            block = self.tree.block(self.keyspace, chosen)?;
        }
        let (n_before, n_max) = (n_before as usize, self.n_left_max());
        let wanted = match self.direction {
            Direction::Forwards => n_before..n_before.saturating_add(n_max),
            Direction::Backwards => (n_before + 1).saturating_sub(n_max)..n_before + 1,
        };
        self.enter(&block, wanted)
    }

    /// Returns whether the walk ends in a block of so many elements, which it enters at an index.
    fn is_within(&self, index: u64, len: u64) -> bool {
        match self.direction {
            Direction::Forwards => self.n_left < len - index,
            Direction::Backwards => self.n_left <= index,
        }
    }

    /// Returns how many elements are still to come, the next one included.
    fn n_left_max(&self) -> usize {
        usize::try_from(self.n_left).map_or(usize::MAX, |n| n.saturating_add(1))
    }

    /// Goes on with some elements of a block.
    fn enter(&mut self, block: &Bytes, wanted: Range<usize>) -> Result<()> {
        let elements = block::elements(block).skip(wanted.start);
        let elements = elements.take(wanted.end - wanted.start);
        let elements = elements.map(|element| Ok(block.slice_ref(element?.bytes)));
        let mut elements = elements.collect::<Result<Vec<Bytes>>>()?;
        if elements.is_empty() {
            return Err(block::unreadable());
        }
        if self.direction == Direction::Backwards {
            elements.reverse();
        }
        self.elements = elements.into_iter();
        Ok(())
    }

    /// Goes on to the next block of elements.
    fn next_block(&mut self) -> Result<()> {
        loop {
            let Some(numbers) = self.blocks.last_mut() else {
                return Err(block::unreadable());
            };
            let Some(number) = numbers.next() else {
                self.blocks.pop();
                continue;
            };
            let block = self.tree.block(self.keyspace, number)?;
            if block::level(&block)? == LEAF {
                return self.enter(&block, 0..usize::MAX);
            }
            let numbers = block::below(&block).map(|below| Ok(below?.number));
            let mut numbers = numbers.collect::<Result<Vec<u64>>>()?;
            if self.direction == Direction::Backwards {
                numbers.reverse();
            }
            self.blocks.push(numbers.into_iter());
        }
    }

    fn step(&mut self) -> Result<Bytes> {
        if let Some(index) = self.begin.take() {
            self.begin(index)?;
        }
        loop {
            match self.elements.next() {
                Some(element) => return Ok(element),
                None => self.next_block()?,
            }
        }
    }
}

impl Iterator for BlockWalk<'_, '_> {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        self.n_left = self.n_left.checked_sub(1)?;
        let element = self.step();
        if element.is_err() {
            self.n_left = 0;
        }
        Some(element)
    }
}
