//! The postings of one term in a tail.

use trefoil_core::Direction;

use super::postings::{Posting, TermSummary};

/// The postings of one term.
#[derive(Debug, Default)]
pub(crate) struct PostingList {
    positions: Vec<u64>,
    /// The first ordinal of a stream.
    first_ordinal: u64,
    /// One per position for a stream that has gaps here; otherwise empty, and they are consecutive.
    ordinals: Vec<u64>,
    is_stream: bool,
    /// What decides which member of a consumer group a stream belongs to: making it takes longer
    /// than finding it here.
    group_hash: Option<i64>,
    new_streams: u64,
}

impl PostingList {
    /// Returns the list of a stream with this hash.
    pub(crate) fn of_stream(group_hash: Option<i64>) -> Self {
        Self {
            is_stream: true,
            group_hash,
            ..Self::default()
        }
    }

    /// Returns the hash of a stream.
    pub(crate) fn group_hash(&self) -> Option<i64> {
        self.group_hash
    }

    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    pub(crate) fn posting(&self, index: usize) -> Posting {
        Posting {
            position: self.positions[index],
            ordinal: self.ordinal(index),
        }
    }

    fn ordinal(&self, index: usize) -> u64 {
        match self.ordinals.get(index) {
            Some(ordinal) => *ordinal,
            None if self.is_stream => self.first_ordinal + index as u64,
            None => 0,
        }
    }

    pub(crate) fn last_ordinal(&self) -> u64 {
        self.positions
            .len()
            .checked_sub(1)
            .map_or(0, |index| self.ordinal(index))
    }

    /// Appends a posting of a term that is no stream, once even if an event has the term twice.
    pub(crate) fn push(&mut self, position: u64) {
        if self.positions.last() != Some(&position) {
            self.positions.push(position);
        }
    }

    /// Counts streams that occur here for the first time.
    pub(crate) fn add_new_streams(&mut self, n: u64) {
        self.new_streams += n;
    }

    /// Returns the last position; 0 if there is none.
    pub(crate) fn last_position(&self) -> u64 {
        self.positions.last().copied().unwrap_or_default()
    }

    /// Appends a posting of a stream.
    pub(crate) fn push_in_stream(&mut self, position: u64, ordinal: u64) {
        if self.positions.is_empty() {
            self.first_ordinal = ordinal;
        } else if self.ordinals.is_empty() && ordinal != self.last_ordinal() + 1 {
            self.ordinals = (0..self.positions.len())
                .map(|index| self.ordinal(index))
                .collect();
            self.ordinals.push(ordinal);
        } else if !self.ordinals.is_empty() {
            self.ordinals.push(ordinal);
        }
        self.positions.push(position);
    }

    pub(crate) fn summary(&self) -> Option<TermSummary> {
        let (first, last) = (self.positions.first()?, self.positions.last()?);
        Some(TermSummary {
            n: self.positions.len() as u64,
            first_position: *first,
            last_position: *last,
            first_ordinal: self.ordinal(0),
            last_ordinal: self.last_ordinal(),
            new_streams: self.new_streams,
        })
    }

    /// Returns how many positions there are from `low` to `high`, inclusive.
    pub(crate) fn count(&self, low: u64, high: u64) -> u64 {
        let end = self.positions.partition_point(|&position| position <= high);
        let start = self.positions[..end].partition_point(|&position| position < low);
        (end - start) as u64
    }

    /// Copies up to `max` positions at or beyond `from` in the given direction.
    pub(crate) fn page(&self, from: u64, direction: Direction, max: usize, out: &mut Vec<u64>) {
        match direction {
            Direction::Forwards => {
                let start = self.positions.partition_point(|&position| position < from);
                out.extend(self.positions[start..].iter().take(max));
            }
            Direction::Backwards => {
                let end = self.positions.partition_point(|&position| position <= from);
                out.extend(self.positions[..end].iter().rev().take(max));
            }
        }
    }

    /// Returns the position of the first event at or beyond the place `ordinal` in the given
    /// direction.
    pub(crate) fn seek_ordinal(&self, ordinal: u64, direction: Direction) -> Option<u64> {
        let n_below = |ordinal: u64| match self.ordinals.as_slice() {
            [] => {
                let below = ordinal.saturating_sub(self.first_ordinal);
                usize::try_from(below)
                    .unwrap_or(usize::MAX)
                    .min(self.positions.len())
            }
            ordinals => ordinals.partition_point(|&place| place < ordinal),
        };
        let index = match direction {
            Direction::Forwards => n_below(ordinal),
            Direction::Backwards => n_below(ordinal.saturating_add(1)).checked_sub(1)?,
        };
        self.positions.get(index).copied()
    }
}
