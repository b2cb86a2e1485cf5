//! The tree of blocks: finding elements, adding and removing them.
//!
//! The root has the number 0. What changes is written from the leaf up: a block that became too large
//! is cut, one that became small is joined with its neighbour, and the block above is told.

use std::ops::Range;

use bytes::Bytes;
use trefoil_core::{Direction, put_bytes};

use super::BLOCKS;
use super::block::{self, Grown, HEAD_BYTES, LEAF, unreadable};
use super::walk::BlockWalk;
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::layout::{MadeName, kept, put_ordered};

/// The number of the root.
const ROOT_NUMBER: u64 = 0;

/// The elements of a collection in blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockTree {
    /// The collection.
    pub(crate) id: u64,
    /// Whether the elements are in the order of their bytes.
    pub(crate) is_ordered: bool,
    /// How many elements there are.
    pub(crate) len: u64,
    /// The highest number that a block has had.
    pub(crate) last_number: u64,
}

/// What is looked for in a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sought<'e> {
    /// The element at this index.
    Index(u64),
    /// The first element that is not before these bytes.
    Element(&'e [u8]),
}

/// Where something is, or would be.
#[derive(Debug)]
pub(crate) struct BlockPath {
    /// The blocks above, the root first.
    steps: Vec<PathStep>,
    /// The block of elements.
    number: u64,
    block: Bytes,
    /// Where the element lies in it; empty at the end of the block.
    place: Range<usize>,
    /// How many elements of the block are before it.
    n_before: u64,
    /// How many elements of the tree are before it.
    pub(crate) index: u64,
    /// The element, if it is in the block.
    pub(crate) element: Option<Bytes>,
}

/// A block on the way to another, and what it knows of the next one.
#[derive(Debug)]
struct PathStep {
    number: u64,
    block: Bytes,
    place: Range<usize>,
    below: u64,
    len: u64,
    bound: Bytes,
}

/// A block that has changed, and what the one above it knows of it.
struct ChangedBlock {
    number: u64,
    block: Vec<u8>,
    len: u64,
    bound: Bytes,
}

impl BlockTree {
    /// Returns a block.
    pub(super) fn block(&self, keyspace: &Keyspace<'_>, number: u64) -> Result<Bytes> {
        let block = keyspace.element(self.id, &place(number))?;
        block.ok_or_else(unreadable)
    }

    /// Returns the root, which a tree without elements does not have.
    pub(super) fn root(&self, keyspace: &Keyspace<'_>) -> Result<Bytes> {
        match self.len {
            0 => Ok(Bytes::from_static(&[LEAF])),
            _ => self.block(keyspace, ROOT_NUMBER),
        }
    }

    fn set_block(
        &self,
        keyspace: &mut Keyspace<'_>,
        number: u64,
        block: Option<Vec<u8>>,
    ) -> Result<()> {
        keyspace.set_element(self.id, &place(number), block.map(Bytes::from))
    }

    /// Returns where something is, or would be.
    pub(crate) fn find(&self, keyspace: &Keyspace<'_>, sought: Sought<'_>) -> Result<BlockPath> {
        let mut steps = Vec::new();
        let (mut number, mut index, mut len) = (ROOT_NUMBER, 0, self.len);
        let mut block = self.root(keyspace)?;
        while block::level(&block)? != LEAF {
            let step;
            (step, index) = choose(number, block, sought, index)?;
            (number, len) = (step.below, step.len);
            block = self.block(keyspace, number)?;
            steps.push(step);
        }
        let mut path = BlockPath {
            steps,
            number,
            place: HEAD_BYTES..HEAD_BYTES,
            n_before: 0,
            index,
            element: None,
            block: block.clone(),
        };
        if matches!(sought, Sought::Index(sought) if sought == index + len) {
            path.place = block.len()..block.len();
            (path.n_before, path.index) = (len, index + len);
            return Ok(path);
        }
        for element in block::elements(&block) {
            let element = element?;
            let is_found = match sought {
                Sought::Index(sought) => path.index == sought,
                Sought::Element(sought) => element.bytes >= sought,
            };
            if is_found {
                path.place = element.place;
                path.element = Some(block.slice_ref(element.bytes));
                break;
            }
            path.place = element.place.end..element.place.end;
            path.n_before += 1;
            path.index += 1;
        }
        Ok(path)
    }

    /// Returns the element at an index, which is there.
    pub(crate) fn get(&self, keyspace: &Keyspace<'_>, index: u64) -> Result<Bytes> {
        let path = self.find(keyspace, Sought::Index(index))?;
        path.element.ok_or_else(unreadable)
    }

    /// Returns how many elements are before these bytes.
    pub(crate) fn rank(&self, keyspace: &Keyspace<'_>, element: &[u8]) -> Result<u64> {
        Ok(self.find(keyspace, Sought::Element(element))?.index)
    }

    /// Returns the elements of a range of indexes, in either direction.
    pub(crate) fn walk<'s, 'a>(
        &self,
        keyspace: &'s Keyspace<'a>,
        range: Range<u64>,
        direction: Direction,
    ) -> BlockWalk<'s, 'a> {
        BlockWalk::new(keyspace, *self, range, direction)
    }

    /// Puts elements, one after the other, before what a path leads to.
    pub(crate) fn insert<'e>(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        path: BlockPath,
        elements: impl Iterator<Item = &'e [u8]>,
    ) -> Result<()> {
        let (before, after) = path.block.split_at(path.place.start);
        let mut block = Vec::with_capacity(path.block.len() + 64);
        block.extend_from_slice(before);
        let mut n_added = 0;
        for element in elements {
            put_bytes(&mut block, element);
            n_added += 1;
        }
        block.extend_from_slice(after);
        self.len += n_added;
        let place = path.place.start..path.place.start;
        let grown = Grown::at(&place, path.block.len());
        self.rewrite(keyspace, path, block, n_added.cast_signed(), grown)
    }

    /// Puts another element in the place of one that is there.
    pub(crate) fn replace(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        index: u64,
        element: &[u8],
    ) -> Result<()> {
        let path = self.find(keyspace, Sought::Index(index))?;
        let mut block = Vec::with_capacity(path.block.len() + element.len() + 8);
        block.extend_from_slice(&path.block[..path.place.start]);
        put_bytes(&mut block, element);
        block.extend_from_slice(&path.block[path.place.end..]);
        self.rewrite(keyspace, path, block, 0, Grown::Middle)
    }

    /// Removes the element that a path leads to.
    pub(crate) fn remove_found(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        path: BlockPath,
    ) -> Result<()> {
        let (before, after) = (
            &path.block[..path.place.start],
            &path.block[path.place.end..],
        );
        let block = [before, after].concat();
        self.len = self.len.saturating_sub(1);
        self.rewrite(keyspace, path, block, -1, Grown::Middle)
    }

    /// Removes the elements at these indexes, which are there and ascend. Each block is written once.
    pub(crate) fn remove(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        indexes: impl DoubleEndedIterator<Item = u64>,
    ) -> Result<()> {
        let mut indexes = indexes.rev().peekable();
        while let Some(last) = indexes.peek().copied() {
            let path = self.find(keyspace, Sought::Index(last))?;
            let first = path.index - path.n_before;
            let here = std::iter::from_fn(|| indexes.next_if(|index| *index >= first));
            let mut removed: Vec<u64> = here.collect();
            let n_removed = removed.len() as u64;
            let mut block = Vec::with_capacity(path.block.len());
            let mut kept = 0;
            for (index, element) in (first..).zip(block::elements(&path.block)) {
                let Some(next) = removed.last() else { break };
                let place = element?.place;
                if *next == index {
                    removed.pop();
                    block.extend_from_slice(&path.block[kept..place.start]);
                    kept = place.end;
                }
            }
            if !removed.is_empty() {
                return Err(unreadable());
            }
            block.extend_from_slice(&path.block[kept..]);
            self.len = self.len.saturating_sub(n_removed);
            let difference = -n_removed.cast_signed();
            self.rewrite(keyspace, path, block, difference, Grown::Middle)?;
        }
        Ok(())
    }

    /// Writes the block that a path leads to, which has so many elements more than before, and tells
    /// those above it.
    fn rewrite(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        path: BlockPath,
        block: Vec<u8>,
        difference: i64,
        mut grown: Grown,
    ) -> Result<()> {
        let (mut number, mut block) = (path.number, block);
        for step in path.steps.into_iter().rev() {
            let mut place = step.place;
            let mut changed = ChangedBlock {
                number,
                block,
                len: step.len.saturating_add_signed(difference),
                bound: step.bound,
            };
            if difference < 0 {
                self.join(keyspace, &step.block, &mut place, &mut changed)?;
            }
            let told = self.put(keyspace, changed, grown)?;
            grown = Grown::at(&place, step.block.len());
            let (before, after) = (&step.block[..place.start], &step.block[place.end..]);
            block = [before, &told, after].concat();
            number = step.number;
        }
        self.put_root(keyspace, block, grown)
    }

    /// Joins a block that became small with one of its neighbours, if both are one block.
    fn join(
        &self,
        keyspace: &mut Keyspace<'_>,
        above: &Bytes,
        place: &mut Range<usize>,
        changed: &mut ChangedBlock,
    ) -> Result<()> {
        let max = block::bytes_max(block::level(&changed.block)?);
        if changed.block.len() >= max / 4 || changed.len == 0 {
            return Ok(());
        }
        for neighbour in block::below(above) {
            let neighbour = neighbour?;
            let is_before = neighbour.place.end == place.start;
            if !is_before && neighbour.place.start != place.end {
                continue;
            }
            let other = self.block(keyspace, neighbour.number)?;
            if changed.block.len() + other.len() > max / 4 * 3 {
                continue;
            }
            let (one, next) = match is_before {
                true => (&other[..], &changed.block[HEAD_BYTES..]),
                false => (&changed.block[..], &other[HEAD_BYTES..]),
            };
            changed.block = [one, next].concat();
            changed.len += neighbour.len;
            if is_before {
                changed.bound = above.slice_ref(neighbour.bound);
                place.start = neighbour.place.start;
            } else {
                place.end = neighbour.place.end;
            }
            return self.set_block(keyspace, neighbour.number, None);
        }
        Ok(())
    }

    /// Writes a block, or several if it is too large, or removes it if it is empty. Returns what the
    /// block above is told.
    fn put(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        changed: ChangedBlock,
        grown: Grown,
    ) -> Result<Vec<u8>> {
        let mut told = Vec::new();
        let ChangedBlock { number, block, .. } = changed;
        if block.len() <= HEAD_BYTES {
            self.set_block(keyspace, number, None)?;
            return Ok(told);
        }
        if !block::is_too_large(&block)? {
            block::put_below(&mut told, number, changed.len, &changed.bound);
            self.set_block(keyspace, number, Some(block))?;
            return Ok(told);
        }
        let parts = block::split(&block, grown)?;
        // The part that changes least keeps the number.
        let kept = match grown {
            Grown::Begin => parts.len() - 1,
            Grown::Middle | Grown::End => 0,
        };
        let mut bounds = vec![changed.bound];
        for pair in parts.windows(2).filter(|_| self.is_ordered) {
            bounds.push(block::bound_between(&pair[0], &pair[1])?.into());
        }
        bounds.resize(parts.len(), Bytes::new());
        for (index, (part, bound)) in parts.into_iter().zip(bounds).enumerate() {
            let number = if index == kept {
                number
            } else {
                self.new_number()
            };
            block::put_below(&mut told, number, block::count(&part)?, &bound);
            self.set_block(keyspace, number, Some(part))?;
        }
        Ok(told)
    }

    /// Writes the root. One that is too large gets a level more, one with a single block below it is
    /// that block.
    fn put_root(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        block: Vec<u8>,
        grown: Grown,
    ) -> Result<()> {
        let mut block = block;
        while block::is_too_large(&block)? {
            let level = block::level(&block)?;
            let parts = ChangedBlock {
                number: self.new_number(),
                block,
                len: self.len,
                bound: Bytes::new(),
            };
            let below = self.put(keyspace, parts, grown)?;
            let above = level.checked_add(1).ok_or_else(unreadable)?;
            block = [&[above], &below[..]].concat();
        }
        while let Some(number) = block::only_below(&block)? {
            block = self.block(keyspace, number)?.to_vec();
            self.set_block(keyspace, number, None)?;
        }
        let block = Some(block).filter(|block| block.len() > HEAD_BYTES);
        self.set_block(keyspace, ROOT_NUMBER, block)
    }

    fn new_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

/// Returns the place of a block.
fn place(number: u64) -> Bytes {
    let mut place = MadeName::from_slice(BLOCKS);
    put_ordered(&mut place, number);
    kept(&place)
}

/// Returns the block below in which something is, or would be, and the index of its first element.
/// `index` is that of the first element of the block.
fn choose(number: u64, block: Bytes, sought: Sought<'_>, index: u64) -> Result<(PathStep, u64)> {
    let mut chosen = None;
    let mut begin = index;
    for below in block::below(&block) {
        let below = below?;
        let is_beyond = match sought {
            Sought::Index(sought) => begin > sought,
            Sought::Element(sought) => below.bound > sought,
        };
        if is_beyond && chosen.is_some() {
            break;
        }
        let len = below.len;
        chosen = Some((below, begin));
        begin += len;
    }
    let (below, begin) = chosen.ok_or_else(unreadable)?;
    let step = PathStep {
        number,
        place: below.place,
        below: below.number,
        len: below.len,
        bound: block.slice_ref(below.bound),
        block,
    };
    Ok((step, begin))
}
