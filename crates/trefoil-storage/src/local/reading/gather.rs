//! The blocks that one read needs, of any files: those that are not in memory are read together.

use std::borrow::Cow;
use std::ops::Range;

use trefoil_core::Result;

use super::file::{LogFile, ReadPatience};
use crate::file_cache::{BLOCK_BYTES, FileBlock};

const CACHE_LINE_BYTES: usize = 64;
/// What is longer has so much to be read in order that the processor fetches the rest by itself.
const TOUCHED_LINES_MAX: usize = 8;
/// How many blocks that follow each other are read at once.
const RUN_BLOCKS_MAX: u64 = 64;

/// A block that is needed.
#[derive(Debug)]
struct NeededBlock<'a> {
    file: &'a LogFile,
    number: u64,
    block: Option<FileBlock>,
}

/// Blocks that are needed together.
#[derive(Debug, Default)]
pub(in crate::local) struct BlockGather<'a> {
    needed: Vec<NeededBlock<'a>>,
    is_missing: bool,
}

/// Where the blocks of a range are among those that are gathered.
#[derive(Debug, Clone, Copy)]
pub(in crate::local) struct GatheredRange {
    first: usize,
    n_blocks: usize,
}

impl<'a> BlockGather<'a> {
    /// Needs the blocks that a range of a file is in, as far as the file has them.
    pub(in crate::local) fn need(&mut self, file: &'a LogFile, range: Range<u64>) -> GatheredRange {
        let numbers = range.start / BLOCK_BYTES..range.end.min(file.end()).div_ceil(BLOCK_BYTES);
        let mut first = self.needed.len();
        let mut n_blocks = 0;
        for number in numbers {
            // What stands next to each other is mostly in the same block.
            let last = self.needed.last();
            if n_blocks == 0
                && last.is_some_and(|last| last.number == number && std::ptr::eq(last.file, file))
            {
                first -= 1;
            } else {
                let block = file.block_at_hand(number);
                self.is_missing |= block.is_none();
                self.needed.push(NeededBlock {
                    file,
                    number,
                    block,
                });
            }
            n_blocks += 1;
        }
        GatheredRange { first, n_blocks }
    }

    /// Reads what is missing. Returns whether everything is there, without which there is something to
    /// wait for.
    pub(in crate::local) fn fetch(&mut self, patience: ReadPatience) -> Result<bool> {
        if !self.is_missing {
            return Ok(true);
        }
        let mut missing: Vec<usize> = (0..self.needed.len())
            .filter(|&at| self.needed[at].block.is_none())
            .collect();
        missing.sort_unstable_by_key(|&at| {
            let NeededBlock { file, number, .. } = self.needed[at];
            (file.number(), number)
        });
        let runs = self.runs(&missing);
        if patience == ReadPatience::Waits && runs.len() > 1 {
            // The disk then works on all of them at the same time.
            for (places, numbers) in &runs {
                let file = self.needed[missing[places.start]].file;
                file.read_on(numbers.start * BLOCK_BYTES..numbers.end * BLOCK_BYTES);
            }
        }
        for (places, numbers) in runs {
            let file = self.needed[missing[places.start]].file;
            let first = numbers.start;
            let Some(blocks) = file.read_blocks(numbers, patience)? else {
                return Ok(false);
            };
            for &at in &missing[places] {
                let needed = &mut self.needed[at];
                let block = blocks.get((needed.number - first) as usize);
                needed.block = block.cloned();
            }
        }
        self.is_missing = false;
        Ok(true)
    }

    /// Splits what is missing, in order, where blocks do not follow each other: the places in `missing`
    /// and the numbers of the blocks.
    fn runs(&self, missing: &[usize]) -> Vec<(Range<usize>, Range<u64>)> {
        let mut runs: Vec<(Range<usize>, Range<u64>)> = Vec::new();
        let mut last_file = None;
        for (place, &at) in missing.iter().enumerate() {
            let NeededBlock { file, number, .. } = self.needed[at];
            if let Some((places, numbers)) = runs.last_mut()
                && last_file == Some(file.number())
                && number <= numbers.end
                && number - numbers.start < RUN_BLOCKS_MAX
            {
                places.end = place + 1;
                numbers.end = number + 1;
            } else {
                runs.push((place..place + 1, number..number + 1));
            }
            last_file = Some(file.number());
        }
        runs
    }

    /// Reads a byte of each of the first cache lines of some ranges. Ranges far apart are not in the
    /// processor's caches: it fetches all of them at the same time if nothing depends on what is read,
    /// instead of one after the other when they are used.
    pub(in crate::local) fn touch(
        &self,
        ranges: impl Iterator<Item = (GatheredRange, Range<u64>)>,
    ) {
        let touched = ranges.map(|(gathered, range)| {
            let block = self.needed.get(gathered.first);
            let block = block.and_then(|needed| needed.block.as_ref());
            let start = (range.start % BLOCK_BYTES) as usize;
            let end = start + range.end.saturating_sub(range.start) as usize;
            let bytes = block.map_or(&[][..], FileBlock::bytes);
            let Some(bytes @ [_, ..]) = bytes.get(start..end.min(bytes.len())) else {
                return 0;
            };
            let byte = |line: usize| bytes[(line * CACHE_LINE_BYTES).min(bytes.len() - 1)];
            (0..TOUCHED_LINES_MAX).fold(0, |touched, line| touched ^ byte(line))
        });
        std::hint::black_box(touched.fold(0, std::ops::BitXor::bitxor));
    }

    /// Returns the bytes in a range of a file, as far as they are in these blocks; `None` if they are
    /// not.
    pub(in crate::local) fn bytes(
        &self,
        gathered: GatheredRange,
        range: Range<u64>,
    ) -> Option<Cow<'_, [u8]>> {
        let GatheredRange { first, n_blocks } = gathered;
        let blocks = self.needed.get(first..first + n_blocks)?;
        let start = blocks.first()?.number * BLOCK_BYTES;
        let (mut from, end) = (
            range.start.checked_sub(start)?,
            range.end.checked_sub(start)?,
        );
        if end <= (from / BLOCK_BYTES + 1) * BLOCK_BYTES {
            let bytes = blocks
                .get((from / BLOCK_BYTES) as usize)?
                .block
                .as_ref()?
                .bytes();
            let at = (from % BLOCK_BYTES) as usize;
            return bytes.get(at..at + (end - from) as usize).map(Cow::Borrowed);
        }
        let mut joined = Vec::with_capacity((end - from) as usize);
        while from < end {
            let bytes = blocks
                .get((from / BLOCK_BYTES) as usize)?
                .block
                .as_ref()?
                .bytes();
            let at = (from % BLOCK_BYTES) as usize;
            let n = (end - from).min(BLOCK_BYTES - at as u64) as usize;
            joined.extend_from_slice(bytes.get(at..at + n)?);
            from += n as u64;
        }
        Some(Cow::Owned(joined))
    }
}
