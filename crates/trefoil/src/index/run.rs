//! A run: the index of a stretch of the log as an immutable map.
//!
//! Keys, by their first byte: `a` a term's summary and, if there are few, its postings; `b` a block
//! of postings of a term that has many, under its last position, or its last ordinal for a stream;
//! `i` the positions of an id; `m` a sample of the highest time. `docs/format.md` has the bytes.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use trefoil_core::{Damage, Direction, Error, Result, Timestamp, put_varint, take_varint};
use trefoil_storage::{Map, Scan};

use super::postings::{Posting, TermSummary, decode_block};
use super::term::{TermKind, put_term};

/// A term with more postings than this keeps them in blocks of their own.
pub(crate) const INLINE_POSTINGS_MAX: u64 = 256;
/// How many postings a block holds, except the last of a term.
pub(crate) const BLOCK_POSTINGS: usize = 512;

pub(crate) const TERM: u8 = b'a';
pub(crate) const BLOCK: u8 = b'b';
pub(crate) const ID: u8 = b'i';
pub(crate) const TIME: u8 = b'm';

/// The index of the events from `first_position` to `last_position`.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) first_position: u64,
    pub(crate) last_position: u64,
    pub(crate) n_events: u64,
    /// The highest time of all events up to the end of the run.
    pub(crate) highest_time: Timestamp,
    pub(crate) map: Arc<dyn Map>,
}

/// A term as one run has it.
#[derive(Debug)]
pub(crate) struct RunTerm {
    pub(crate) summary: TermSummary,
    /// The postings; empty if they are in blocks.
    inline: Bytes,
    /// What was unpacked last: all postings, or those of one block. Whoever looks for a place in a
    /// stream reads on from there.
    unpacked: RefCell<Vec<Posting>>,
}

impl RunTerm {
    pub(crate) fn decode(value: &Bytes) -> Option<Self> {
        let mut rest: &[u8] = value;
        let summary = TermSummary::decode(&mut rest)?;
        Some(Self {
            summary,
            inline: value.slice_ref(rest),
            unpacked: RefCell::default(),
        })
    }

    /// Returns whether there can be a place in the stream at or beyond `ordinal` in the given
    /// direction.
    pub(crate) fn reaches(&self, ordinal: u64, direction: Direction) -> bool {
        match direction {
            Direction::Forwards => self.summary.last_ordinal >= ordinal,
            Direction::Backwards => self.summary.first_ordinal <= ordinal,
        }
    }

    pub(crate) fn is_inline(&self) -> bool {
        self.summary.n <= INLINE_POSTINGS_MAX
    }
}

impl Run {
    /// Returns what says that this run's bytes are not what was written.
    pub(crate) fn damaged(&self, what: &str) -> Error {
        Error::Damaged(Box::new(Damage {
            file: format!("maps/{}", self.name).into(),
            offset: 0,
            position: self.first_position,
            what: what.to_owned(),
            help: "run `trefoil repair`, which rebuilds the maps from the log".to_owned(),
        }))
    }

    pub(crate) fn term(&self, kind: TermKind, name: &str) -> Result<Option<RunTerm>> {
        let mut key = vec![TERM];
        put_term(&mut key, kind, name);
        let Some(value) = self.map.get(&key)? else {
            return Ok(None);
        };
        RunTerm::decode(&value)
            .map(Some)
            .ok_or_else(|| self.damaged("unreadable term"))
    }

    /// Returns the first block of a term whose key is at or after `order`.
    fn blocks_from(&self, kind: TermKind, name: &str, order: u64) -> Scan<'_> {
        let mut from = vec![BLOCK];
        put_term(&mut from, kind, name);
        let mut to = from.clone();
        from.extend_from_slice(&order.to_be_bytes());
        to.extend_from_slice(&[0xff; 9]);
        self.map.scan(&from, &to, Direction::Forwards)
    }

    /// Returns the blocks of a stream, from the one that `ordinal` falls into, in the given
    /// direction. The first one, which is mostly enough, is found without a scan if that is
    /// possible.
    fn blocks_of_stream<'r>(
        &'r self,
        name: &'r str,
        summary: &TermSummary,
        ordinal: u64,
        direction: Direction,
    ) -> Result<Scan<'r>> {
        let scan = move |ordinal| self.blocks(TermKind::Stream, name, ordinal, direction);
        let Some((start, end)) = block_bounds(summary, ordinal) else {
            return Ok(scan(ordinal));
        };
        let mut key = vec![BLOCK];
        put_term(&mut key, TermKind::Stream, name);
        key.extend_from_slice(&end.to_be_bytes());
        let Some(block) = self.map.get(&key)? else {
            return Ok(scan(ordinal));
        };
        let next = match direction {
            Direction::Forwards => end.checked_add(1),
            Direction::Backwards => start.checked_sub(1),
        };
        let rest = next.into_iter().flat_map(scan);
        Ok(Box::new(
            std::iter::once(Ok((key.into(), block))).chain(rest),
        ))
    }

    /// Returns the blocks of a term, from the one that `order` falls into, in the given direction.
    fn blocks(&self, kind: TermKind, name: &str, order: u64, direction: Direction) -> Scan<'_> {
        if direction == Direction::Forwards {
            return self.blocks_from(kind, name, order);
        }
        let mut from = vec![BLOCK];
        put_term(&mut from, kind, name);
        let to = match self.blocks_from(kind, name, order).next() {
            Some(Ok((mut_key, _))) => [&mut_key[..], &[0]].concat(),
            Some(Err(error)) => return Box::new(std::iter::once(Err(error))),
            None => [&from[..], &[0xff; 9]].concat(),
        };
        self.map.scan(&from, &to, Direction::Backwards)
    }

    fn decode(&self, block: &[u8], out: &mut Vec<Posting>) -> Result<()> {
        out.clear();
        decode_block(block, out).ok_or_else(|| self.damaged("unreadable postings"))
    }

    /// Copies up to `max` positions of a term at or beyond `from` in the given direction.
    pub(crate) fn page(
        &self,
        (kind, name): (TermKind, &str),
        term: &RunTerm,
        from: u64,
        direction: Direction,
        max: usize,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let end = out.len() + max;
        let mut postings = term.unpacked.borrow_mut();
        if term.is_inline() {
            self.unpack_inline(term, &mut postings)?;
            copy_positions(&postings, from, direction, end, out);
            return Ok(());
        }
        let (mut from, mut order) = (from, from);
        if kind == TermKind::Stream {
            match (postings.first(), postings.last()) {
                (Some(first), Some(last)) if (first.position..=last.position).contains(&from) => {
                    copy_positions(&postings, from, direction, end, out);
                    let next = match direction {
                        Direction::Forwards => last
                            .position
                            .checked_add(1)
                            .zip(last.ordinal.checked_add(1)),
                        Direction::Backwards => first
                            .position
                            .checked_sub(1)
                            .zip(first.ordinal.checked_sub(1)),
                    };
                    let Some(next) = next.filter(|_| out.len() < end) else {
                        return Ok(());
                    };
                    (from, order) = next;
                }
                _ => order = self.ordinal_near(name, &term.summary, from)?,
            }
        }
        let blocks = match kind {
            TermKind::Stream => self.blocks_of_stream(name, &term.summary, order, direction)?,
            _ => self.blocks(kind, name, order, direction),
        };
        for block in blocks {
            self.decode(&block?.1, &mut postings)?;
            copy_positions(&postings, from, direction, end, out);
            if out.len() == end {
                break;
            }
        }
        Ok(())
    }

    /// Unpacks the postings that are kept with a term's summary, once.
    fn unpack_inline(&self, term: &RunTerm, postings: &mut Vec<Posting>) -> Result<()> {
        if postings.is_empty() {
            self.decode(&term.inline, postings)?;
        }
        Ok(())
    }

    /// Returns the last ordinal of the block of a stream that `position` falls into. Blocks of
    /// streams are ordered by ordinal, so a position is found by bisection.
    fn ordinal_near(&self, name: &str, summary: &TermSummary, position: u64) -> Result<u64> {
        let (mut low, mut high) = (summary.first_ordinal, summary.last_ordinal);
        let mut postings = Vec::new();
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(block) = self.blocks_from(TermKind::Stream, name, middle).next() else {
                break;
            };
            self.decode(&block?.1, &mut postings)?;
            let (Some(first), Some(last)) = (postings.first(), postings.last()) else {
                break;
            };
            if last.position < position {
                low = last.ordinal + 1;
            } else if first.position > position && first.ordinal > summary.first_ordinal {
                // The block may begin after a gap that the middle falls into.
                high = middle.min(first.ordinal - 1);
            } else {
                return Ok(last.ordinal);
            }
        }
        Ok(low)
    }

    /// Returns the position of the first event of a stream at or beyond `ordinal` in the given
    /// direction.
    pub(crate) fn seek_ordinal(
        &self,
        name: &str,
        term: &RunTerm,
        ordinal: u64,
        direction: Direction,
    ) -> Result<Option<u64>> {
        let mut postings = term.unpacked.borrow_mut();
        if term.is_inline() {
            self.unpack_inline(term, &mut postings)?;
            return Ok(seek(&postings, ordinal, direction));
        }
        for block in self.blocks_of_stream(name, &term.summary, ordinal, direction)? {
            self.decode(&block?.1, &mut postings)?;
            if let Some(position) = seek(&postings, ordinal, direction) {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// Hands every posting of a term to `visit`, in order.
    pub(crate) fn for_each_posting(
        &self,
        kind: TermKind,
        name: &str,
        visit: &mut dyn FnMut(Posting) -> Result<()>,
    ) -> Result<()> {
        let Some(term) = self.term(kind, name)? else {
            return Ok(());
        };
        let mut postings = Vec::new();
        if term.is_inline() {
            self.decode(&term.inline, &mut postings)?;
            return postings.into_iter().try_for_each(visit);
        }
        for block in self.blocks_from(kind, name, 0) {
            self.decode(&block?.1, &mut postings)?;
            postings.iter().copied().try_for_each(&mut *visit)?;
        }
        Ok(())
    }

    /// The postings of a term that keeps them with its summary.
    pub(crate) fn inline_postings(&self, term: &RunTerm, out: &mut Vec<Posting>) -> Result<()> {
        decode_block(&term.inline, out).ok_or_else(|| self.damaged("unreadable postings"))
    }

    /// The positions of events whose ids have this hash.
    pub(crate) fn positions_of_id(&self, hash: u64, out: &mut Vec<u64>) -> Result<()> {
        let mut key = vec![ID];
        key.extend_from_slice(&hash.to_be_bytes());
        let Some(value) = self.map.get(&key)? else {
            return Ok(());
        };
        decode_positions(&value, out).ok_or_else(|| self.damaged("unreadable id"))
    }

    /// Returns the first position of the first stretch of events in which the highest time so far
    /// reached `time`.
    pub(crate) fn seek_time(&self, time: Timestamp) -> Result<Option<u64>> {
        let Some(entry) = self
            .map
            .scan(&time_key(time), &[TIME + 1], Direction::Forwards)
            .next()
        else {
            return Ok(None);
        };
        let value = entry?.1;
        take_varint(&mut &value[..])
            .map(Some)
            .ok_or_else(|| self.damaged("unreadable time"))
    }
}

/// Returns the first and the last ordinal of the block of a stream that `ordinal` falls into, if
/// the stream has no gaps here: then every block but the last is full.
fn block_bounds(summary: &TermSummary, ordinal: u64) -> Option<(u64, u64)> {
    let (first, last) = (summary.first_ordinal, summary.last_ordinal);
    if !summary.is_dense() || !(first..=last).contains(&ordinal) {
        return None;
    }
    let n = BLOCK_POSTINGS as u64;
    let start = ordinal - (ordinal - first) % n;
    Some((start, last.min(start.saturating_add(n - 1))))
}

/// Copies positions at or beyond `from` in the given direction until `out` has the length `end`.
fn copy_positions(
    postings: &[Posting],
    from: u64,
    direction: Direction,
    end: usize,
    out: &mut Vec<u64>,
) {
    let room = end - out.len();
    match direction {
        Direction::Forwards => {
            let first = postings.partition_point(|posting| posting.position < from);
            let wanted = postings[first..].iter().take(room);
            out.extend(wanted.map(|posting| posting.position));
        }
        Direction::Backwards => {
            let after = postings.partition_point(|posting| posting.position <= from);
            let wanted = postings[..after].iter().rev().take(room);
            out.extend(wanted.map(|posting| posting.position));
        }
    }
}

fn seek(postings: &[Posting], ordinal: u64, direction: Direction) -> Option<u64> {
    let index = match direction {
        Direction::Forwards => postings.partition_point(|posting| posting.ordinal < ordinal),
        Direction::Backwards => postings
            .partition_point(|posting| posting.ordinal <= ordinal)
            .checked_sub(1)?,
    };
    postings.get(index).map(|posting| posting.position)
}

/// Returns the key of a time sample; times sort by it, also those before 1970.
pub(crate) fn time_key(time: Timestamp) -> Vec<u8> {
    let ordered = time.0 as u64 ^ (1 << 63);
    let mut key = vec![TIME];
    key.extend_from_slice(&ordered.to_be_bytes());
    key
}

pub(crate) fn encode_positions(positions: &[u64]) -> Vec<u8> {
    let mut value = Vec::new();
    for &position in positions {
        put_varint(&mut value, position);
    }
    value
}

pub(crate) fn decode_positions(mut value: &[u8], out: &mut Vec<u64>) -> Option<()> {
    while !value.is_empty() {
        out.push(take_varint(&mut value)?);
    }
    Some(())
}
