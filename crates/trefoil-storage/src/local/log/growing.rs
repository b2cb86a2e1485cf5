//! A list of numbers that one thread appends to while others read, without locks.
//!
//! Invariants: chunk `k` has room for `64 << k` numbers and never moves; `length` is stored only
//! after the numbers below it, so whoever sees a length sees the numbers.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The bits of an index inside the first chunk.
const FIRST_CHUNK_BITS: u32 = 6;
/// Enough chunks for more numbers than a segment can have items.
const N_CHUNKS: usize = 28;

/// The list.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    chunks: [OnceLock<Box<[AtomicU64]>>; N_CHUNKS],
    length: AtomicUsize,
}

/// The chunk that holds number `index`, and its place there.
fn place(index: usize) -> (usize, usize) {
    let shifted = index + (1 << FIRST_CHUNK_BITS);
    let chunk = shifted.ilog2() - FIRST_CHUNK_BITS;
    (chunk as usize, shifted - (1 << (chunk + FIRST_CHUNK_BITS)))
}

impl Growing {
    /// How many numbers can be read.
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Acquire)
    }

    /// The number at `index`, which must be below a length seen before.
    pub(crate) fn get(&self, index: usize) -> u64 {
        let (chunk, place) = place(index);
        let number = self.chunks[chunk].get().and_then(|chunk| chunk.get(place));
        number.map_or(0, |number| number.load(Ordering::Relaxed))
    }

    /// Appends a number. Only one thread may do this.
    pub(crate) fn push(&self, number: u64) {
        let index = self.length.load(Ordering::Relaxed);
        let (chunk, place) = place(index);
        let numbers = self.chunks[chunk].get_or_init(|| {
            let length = 1 << (chunk as u32 + FIRST_CHUNK_BITS);
            (0..length).map(|_| AtomicU64::new(0)).collect()
        });
        numbers[place].store(number, Ordering::Relaxed);
        self.length.store(index + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_seen_while_others_are_appended() {
        let list = Growing::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100_000).for_each(|number| list.push(number * 3)));
            loop {
                let length = list.len();
                for index in [0, length / 2, length.saturating_sub(1)] {
                    assert!(index >= length || list.get(index) == index as u64 * 3);
                }
                if length == 100_000 {
                    break;
                }
            }
        });
    }
}
