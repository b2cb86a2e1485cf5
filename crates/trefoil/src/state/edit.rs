//! Edits: how a value is made from the one before it, in few bytes.
//!
//! An edit is steps from the beginning of the value before to its end. A step keeps some bytes, drops
//! some, puts new ones in the place of as many, or puts new ones in between. What the steps do not
//! reach is kept. Behind its end the value before goes on with zeros, so a bit that is set far behind
//! the others takes no more than one among them.

use std::ops::Range;

use trefoil_core::limits::STATE_BYTES_PER_COMMIT_MAX;
use trefoil_core::{put_varint, take_varint};

/// The next bytes of the value before stay.
const KEEP: u64 = 0;
/// The next bytes of the value before go.
const DROP: u64 = 1;
/// New bytes take the place of as many of the value before.
const REPLACE: u64 = 2;
/// New bytes stand before the next ones of the value before.
const ADD: u64 = 3;
/// A step is a number of bytes, behind which these bits say what becomes of them.
const STEP_BITS: u32 = 2;

/// An edit is worth it if it saves this many bytes.
const SAVES_MIN: usize = 16;
/// Differences that are nearer to each other than this are one step.
const GAP_BYTES: usize = 16;
/// An edit this short is taken without looking for a shorter one.
const SHORT_BYTES: usize = 32;
/// How many bytes are compared at a time: slices compare many times faster than single bytes.
const COMPARED_BYTES: usize = 64;

const ZEROS: [u8; COMPARED_BYTES] = [0; COMPARED_BYTES];

/// Returns the steps from one value to another, if they take so much less than the other that it
/// pays.
pub(super) fn steps_between(before: &[u8], after: &[u8]) -> Option<Vec<u8>> {
    let room = after.len().checked_sub(SAVES_MIN)?;
    let first = common_prefix(before, after);
    let same_end = common_suffix(&before[first..], &after[first..]);
    let draft = EditDraft {
        before,
        after,
        first,
        room,
    };
    let in_between = draft.steps(same_end);
    let is_good = |steps: &Vec<u8>| steps.len() <= SHORT_BYTES;
    if same_end == 0 || before.len() == after.len() || in_between.as_ref().is_some_and(is_good) {
        return in_between;
    }
    // That the ends are the same may be chance.
    let at_the_end = draft.steps(0);
    let both = in_between.into_iter().chain(at_the_end);
    both.min_by_key(Vec::len)
}

/// Two values, and from where on they differ.
struct EditDraft<'a> {
    before: &'a [u8],
    after: &'a [u8],
    first: usize,
    /// How many bytes the steps may take.
    room: usize,
}

impl EditDraft<'_> {
    /// Returns the steps, if there is room for them. The last `same_end` bytes of both values are the
    /// same.
    fn steps(&self, same_end: usize) -> Option<Vec<u8>> {
        let (before_len, after_len) = (self.before.len(), self.after.len());
        let (before_end, after_end) = (before_len - same_end, after_len - same_end);
        // Only behind the end of the value before there are zeros to go on with.
        let end = match same_end {
            0 => after_end,
            _ => before_end.min(after_end),
        };
        let mut steps = Vec::with_capacity(SHORT_BYTES);
        let at = self.replace(self.first..end, &mut steps)?;
        if before_end != after_end {
            put_step(&mut steps, KEEP, end - at);
            let added = &self.after[end..after_end];
            self.put_new(&mut steps, ADD, added)?;
            put_step(&mut steps, DROP, before_end.saturating_sub(end));
        }
        (steps.len() <= self.room).then_some(steps)
    }

    /// Appends the steps that replace what differs in a range, from the beginning on. Returns how far
    /// they reach; what follows of the range is the same.
    fn replace(&self, range: Range<usize>, steps: &mut Vec<u8>) -> Option<usize> {
        let (mut reached, mut at) = (0, range.start);
        loop {
            at += self.n_same(at..range.end);
            if at >= range.end {
                return Some(reached);
            }
            let start = at;
            while at < range.end && !self.is_same(at..range.end.min(at + GAP_BYTES)) {
                at = range.end.min(at + GAP_BYTES);
            }
            let end = at - self.n_same_before(start..at);
            put_step(steps, KEEP, start - reached);
            self.put_new(steps, REPLACE, &self.after[start..end])?;
            reached = end;
        }
    }

    fn put_new(&self, steps: &mut Vec<u8>, kind: u64, bytes: &[u8]) -> Option<()> {
        if steps.len() + bytes.len() > self.room {
            return None;
        }
        put_step(steps, kind, bytes.len());
        steps.extend_from_slice(bytes);
        Some(())
    }

    /// Returns the part of a range that the value before has, what stands there after, and the part
    /// behind the end of the value before.
    fn parts(&self, range: Range<usize>) -> (&[u8], &[u8], &[u8]) {
        let middle = self.before.len().clamp(range.start, range.end);
        let before = self.before.get(range.start..middle).unwrap_or_default();
        let (after, behind) = self.after[range.clone()].split_at(middle - range.start);
        (before, after, behind)
    }

    fn is_same(&self, range: Range<usize>) -> bool {
        let (before, after, behind) = self.parts(range);
        before == after && behind.iter().all(|byte| *byte == 0)
    }

    /// Returns how many bytes at the beginning of a range are the same.
    fn n_same(&self, range: Range<usize>) -> usize {
        let (before, after, behind) = self.parts(range);
        match common_prefix(before, after) {
            all if all == after.len() => all + n_zeros(behind),
            some => some,
        }
    }

    /// Returns how many bytes at the end of a range are the same.
    fn n_same_before(&self, range: Range<usize>) -> usize {
        let is_same =
            |at: &usize| self.before.get(*at).copied().unwrap_or_default() == self.after[*at];
        range.rev().take_while(is_same).count()
    }
}

/// Appends a step, if it is about any bytes.
fn put_step(steps: &mut Vec<u8>, kind: u64, n: usize) {
    if n > 0 {
        put_varint(steps, (n as u64) << STEP_BITS | kind);
    }
}

/// Returns how many bytes at the beginning of two values are the same.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let n = one.len().min(other.len());
    let (one, other) = (&one[..n], &other[..n]);
    let chunks = one.chunks(COMPARED_BYTES).zip(other.chunks(COMPARED_BYTES));
    let n_chunks = chunks.take_while(|(one, other)| one == other).count();
    let start = (n_chunks * COMPARED_BYTES).min(n);
    let rest = one[start..].iter().zip(&other[start..]);
    start + rest.take_while(|(one, other)| one == other).count()
}

/// Returns how many bytes at the end of two values are the same.
fn common_suffix(one: &[u8], other: &[u8]) -> usize {
    let n = one.len().min(other.len());
    let (one, other) = (&one[one.len() - n..], &other[other.len() - n..]);
    let chunks = one
        .rchunks(COMPARED_BYTES)
        .zip(other.rchunks(COMPARED_BYTES));
    let n_chunks = chunks.take_while(|(one, other)| one == other).count();
    let end = n.saturating_sub(n_chunks * COMPARED_BYTES);
    let rest = one[..end].iter().rev().zip(other[..end].iter().rev());
    n - end + rest.take_while(|(one, other)| one == other).count()
}

/// Returns how many bytes at the beginning are zeros.
fn n_zeros(bytes: &[u8]) -> usize {
    let chunks = bytes.chunks(COMPARED_BYTES);
    let n_chunks = chunks
        .take_while(|chunk| **chunk == ZEROS[..chunk.len()])
        .count();
    let start = (n_chunks * COMPARED_BYTES).min(bytes.len());
    let rest = bytes[start..].iter();
    start + rest.take_while(|byte| **byte == 0).count()
}

/// Returns the value that steps lead to; `None` if they are none, or not for this value.
pub(super) fn follow(before: &[u8], mut steps: &[u8]) -> Option<Vec<u8>> {
    let mut after = Vec::with_capacity(before.len() + steps.len());
    let mut rest = before;
    while !steps.is_empty() {
        let step = take_varint(&mut steps)?;
        let n = usize::try_from(step >> STEP_BITS).ok()?;
        if after.len().checked_add(n)? > STATE_BYTES_PER_COMMIT_MAX {
            return None;
        }
        match step & ((1 << STEP_BITS) - 1) {
            KEEP => {
                let kept = rest.split_off(..n.min(rest.len()))?;
                let end = after.len() + n;
                after.extend_from_slice(kept);
                after.resize(end, 0);
            }
            DROP => {
                rest.split_off(..n)?;
            }
            kind => {
                after.extend_from_slice(steps.split_off(..n)?);
                if kind == REPLACE {
                    rest.split_off(..n.min(rest.len()))?;
                }
            }
        }
    }
    after.extend_from_slice(rest);
    Some(after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns how many bytes the steps from one value to another take.
    fn cost(before: &[u8], after: &[u8]) -> usize {
        let Some(steps) = steps_between(before, after) else {
            return after.len();
        };
        assert_eq!(follow(before, &steps).as_deref(), Some(after));
        assert!(steps.len() + SAVES_MIN <= after.len());
        steps.len()
    }

    fn changed(value: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
        let mut value = value.to_vec();
        for (at, byte) in changes {
            if value.len() <= *at {
                value.resize(at + 1, 0);
            }
            value[*at] = *byte;
        }
        value
    }

    #[test]
    fn what_changes_counts_and_not_the_value() {
        let text: Vec<u8> = (0..4096_u32).map(|n| ((n * n) >> 5) as u8 | 1).collect();
        let far = changed(&text, &[(100, 0), (2000, 0), (4000, 0)]);
        assert!(cost(&text, &far) <= 12, "{}", cost(&text, &far));
        assert_eq!(cost(&text, &changed(&text, &[(2000, 0)])), 4);
        // In the middle, with a byte that changes before it.
        let mut longer = changed(&text, &[(3, 0)]);
        longer.splice(2000..2000, *b"some more");
        assert!(cost(&text, &longer) <= 18, "{}", cost(&text, &longer));
        assert!(cost(&longer, &text) <= 9, "{}", cost(&longer, &text));
        // At the end.
        assert_eq!(cost(&text[..4000], &[&text[..4000], b"x"].concat()), 4);
        assert_eq!(cost(&text, &text[..4000]), 4);
    }

    #[test]
    fn zeros_cost_nothing() {
        for before in [&[][..], &[7], &[7; 300], &changed(&[], &[(500, 1)])] {
            let after = changed(before, &[(3000, 1)]);
            assert_eq!(cost(before, &after), 4, "{}", before.len());
            let two = changed(before, &[(100, 1), (3000, 1)]);
            assert!(cost(before, &two) <= 8, "{}", before.len());
            assert!(cost(before, &changed(before, &[(3000, 0)])) <= 3);
        }
        // The last bits are removed, and the zeros before them.
        let (before, after) = (changed(&[7; 300], &[(3000, 1)]), [7; 300]);
        assert_eq!(cost(&before, &after), 4);
    }

    #[test]
    fn steps_that_are_cut_or_for_another_value_are_none() {
        let before = [7; 100];
        let steps = steps_between(&before, &changed(&before, &[(50, 0)])).unwrap();
        assert_eq!(follow(&before, &steps[..steps.len() - 1]), None);
        let shorter = steps_between(&before, &before[..60]).unwrap();
        assert_eq!(follow(&before[..99], &shorter), None);
        let mut endless = Vec::new();
        put_varint(&mut endless, u64::MAX);
        assert_eq!(follow(&before, &endless), None);
    }

    #[test]
    fn values_are_compared_to_the_byte() {
        for length in [0, 1, 63, 64, 65, 200] {
            let one = vec![0; length];
            assert_eq!(common_prefix(&one, &one), length);
            assert_eq!(common_suffix(&one, &one), length);
            assert_eq!(n_zeros(&one), length);
            for at in 0..length {
                let mut other = one.clone();
                other[at] = 8;
                assert_eq!(common_prefix(&one, &other), at);
                assert_eq!(common_suffix(&one, &other), length - at - 1);
                assert_eq!(n_zeros(&other), at);
                assert_eq!(common_prefix(&one, &[&other[..], &[1]].concat()), at);
                assert_eq!(
                    common_suffix(&[&[1], &other[..]].concat(), &one),
                    length - at - 1
                );
            }
        }
    }

    /// A value that is changed in some places: bytes are overwritten, inserted and removed.
    fn edited() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let byte = prop_oneof![3 => Just(0_u8), 1 => any::<u8>()];
        let value = proptest::collection::vec(byte, 0..400);
        let change = (any::<prop::sample::Index>(), 0_usize..20, "[ab]{0,20}");
        let changes = proptest::collection::vec(change, 0..4);
        (value, changes, any::<bool>()).prop_map(|(before, changes, is_trimmed)| {
            let mut after = before.clone();
            for (at, n_removed, new) in changes {
                let start = at.index(after.len() + 1);
                let end = after.len().min(start + n_removed);
                after.splice(start..end, new.into_bytes());
            }
            if is_trimmed {
                let end = after.iter().rposition(|byte| *byte != 0);
                after.truncate(end.map_or(0, |end| end + 1));
            }
            (before, after)
        })
    }

    proptest! {
        #[test]
        fn steps_lead_from_one_value_to_the_other((before, after) in edited()) {
            cost(&before, &after);
            cost(&after, &before);
            cost(&[], &after);
        }

        #[test]
        fn any_bytes_are_steps_or_none(
            before in proptest::collection::vec(any::<u8>(), 0..50),
            steps in proptest::collection::vec(0_u8..90, 0..20),
        ) {
            if let Some(after) = follow(&before, &steps) {
                prop_assert!(after.len() < 2000);
            }
        }
    }
}
