//! Postings: the ascending positions at which a term occurs, and how they are packed.
//!
//! For a stream, each posting also has the event's place in the stream, its ordinal. Both ascend.

use trefoil_core::{put_varint, take_varint};

/// A posting: the position of an event and, for a stream, its place there (0 otherwise).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) position: u64,
    pub(crate) ordinal: u64,
}

/// What is known of the postings of a term in one layer of the index without reading them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TermSummary {
    /// How many postings there are; at least one.
    pub(crate) n: u64,
    /// The first and last position.
    pub(crate) first_position: u64,
    pub(crate) last_position: u64,
    /// The first and last ordinal, for a stream.
    pub(crate) first_ordinal: u64,
    pub(crate) last_ordinal: u64,
    /// How many streams of a category, or of everything, occur here for the first time.
    pub(crate) new_streams: u64,
}

impl TermSummary {
    /// Returns what is known of this and `later`, a layer after this one, together.
    pub(crate) fn followed_by(&self, later: &Self) -> Self {
        Self {
            n: self.n + later.n,
            last_position: later.last_position,
            last_ordinal: later.last_ordinal,
            new_streams: self.new_streams + later.new_streams,
            ..*self
        }
    }

    /// Returns whether the places in the stream follow each other.
    pub(crate) fn is_dense(&self) -> bool {
        self.last_ordinal - self.first_ordinal == self.n - 1
    }

    /// At most how many of the postings lie between two positions, inclusive.
    pub(crate) fn n_within(&self, low: u64, high: u64) -> u64 {
        let is_outside = self.last_position < low || self.first_position > high;
        if is_outside {
            return 0;
        }
        let (low, high) = (low.max(self.first_position), high.min(self.last_position));
        self.n.min(high - low + 1)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.n);
        put_varint(out, self.first_position);
        put_varint(out, self.last_position - self.first_position);
        put_varint(out, self.first_ordinal);
        put_varint(out, self.last_ordinal - self.first_ordinal);
        put_varint(out, self.new_streams);
    }

    pub(crate) fn decode(input: &mut &[u8]) -> Option<Self> {
        let n = take_varint(input)?;
        let first_position = take_varint(input)?;
        let last_position = first_position.checked_add(take_varint(input)?)?;
        let first_ordinal = take_varint(input)?;
        let last_ordinal = first_ordinal.checked_add(take_varint(input)?)?;
        let new_streams = take_varint(input)?;
        (n > 0).then_some(Self {
            n,
            first_position,
            last_position,
            first_ordinal,
            last_ordinal,
            new_streams,
        })
    }
}

/// The step to the next posting is 1 throughout, so the steps are left out.
const DENSE_POSITIONS: u64 = 1;
const DENSE_ORDINALS: u64 = 2;
/// There are no ordinals.
const NO_ORDINALS: u64 = 4;

/// Packs postings, at least one, into a block.
pub(crate) fn encode_block(postings: &[Posting], out: &mut Vec<u8>) {
    let (Some(first), Some(last)) = (postings.first(), postings.last()) else {
        return;
    };
    let n = postings.len() as u64;
    let mut flags = 0;
    if last.position - first.position == n - 1 {
        flags |= DENSE_POSITIONS;
    }
    if last.ordinal == 0 && n > 1 {
        flags |= NO_ORDINALS;
    } else if last.ordinal - first.ordinal == n - 1 {
        flags |= DENSE_ORDINALS;
    }
    put_varint(out, n << 3 | flags);
    put_varint(out, first.position);
    if flags & DENSE_POSITIONS == 0 {
        for pair in postings.windows(2) {
            put_varint(out, pair[1].position - pair[0].position);
        }
    }
    if flags & NO_ORDINALS == 0 {
        put_varint(out, first.ordinal);
        if flags & DENSE_ORDINALS == 0 {
            for pair in postings.windows(2) {
                put_varint(out, pair[1].ordinal - pair[0].ordinal);
            }
        }
    }
}

/// Unpacks a block, appending to `out`; `None` if the bytes are not a block.
pub(crate) fn decode_block(mut input: &[u8], out: &mut Vec<Posting>) -> Option<()> {
    let header = take_varint(&mut input)?;
    let (n, flags) = (usize::try_from(header >> 3).ok()?, header & 7);
    let start = out.len();
    let mut position = take_varint(&mut input)?;
    out.push(Posting {
        position,
        ordinal: 0,
    });
    for _ in 1..n {
        let step = if flags & DENSE_POSITIONS != 0 {
            1
        } else {
            take_varint(&mut input)?
        };
        position = position.checked_add(step)?;
        out.push(Posting {
            position,
            ordinal: 0,
        });
    }
    if flags & NO_ORDINALS == 0 {
        let mut ordinal = take_varint(&mut input)?;
        let postings = out.get_mut(start..)?;
        postings.first_mut()?.ordinal = ordinal;
        for posting in &mut postings[1..] {
            let step = if flags & DENSE_ORDINALS != 0 {
                1
            } else {
                take_varint(&mut input)?
            };
            ordinal = ordinal.checked_add(step)?;
            posting.ordinal = ordinal;
        }
    }
    input.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(postings: &[(u64, u64)], bytes: usize) {
        let postings: Vec<Posting> = postings
            .iter()
            .map(|&(position, ordinal)| Posting { position, ordinal })
            .collect();
        let mut block = Vec::new();
        encode_block(&postings, &mut block);
        assert_eq!(block.len(), bytes, "{postings:?}");
        let mut back = Vec::new();
        decode_block(&block, &mut back).unwrap();
        assert_eq!(back, postings);
        for length in 0..block.len() {
            assert!(
                decode_block(&block[..length], &mut Vec::new()).is_none(),
                "cut at {length}"
            );
        }
    }

    #[test]
    fn postings_come_back_from_a_block() {
        check(&[(7, 0)], 3);
        check(&[(7, 0), (9, 1), (300, 2)], 6);
        check(&[(7, 0), (9, 0), (300, 0)], 5);
        check(&[(7, 4), (8, 5), (9, 6)], 3);
        check(&[(7, 4), (8, 9), (9, 11)], 5);
        check(&[(u64::MAX - 1, 0), (u64::MAX, 0)], 11);
    }
}
