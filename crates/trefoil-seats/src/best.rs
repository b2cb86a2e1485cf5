//! The best of the seats that are available.
//!
//! Works on whole words of the map: it looks at a seat only where a run of available ones begins
//! or ends.

/// The seats of a section, two bits each from the highest down; what is missing is available.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid<'a> {
    pub(super) bits: &'a [u8],
    pub(super) rows: usize,
    pub(super) seats_per_row: usize,
}

/// Adjacent available seats of one row: the index of the first, and how many.
type SeatRun = (usize, usize);

const WORD_BYTES: usize = size_of::<u64>();
const SEATS_PER_WORD: usize = WORD_BYTES * 4;

/// The higher bit of every seat of a word.
const HIGHER: u64 = 0xaaaa_aaaa_aaaa_aaaa;

impl Grid<'_> {
    /// Returns the indexes of the `n` best available seats: the first `n` that are adjacent in a
    /// row; otherwise those of the longest runs, of equally long ones the first. If there are not
    /// enough, the error is how many there are.
    pub(super) fn best(&self, n: usize) -> Result<Vec<usize>, usize> {
        // Of the runs of each length, as many as can be needed.
        let mut by_length = vec![Vec::new(); n];
        let mut n_available = 0;
        for (first, length) in self.runs() {
            if length >= n {
                return Ok((first..first + n).collect());
            }
            n_available += length;
            if by_length[length].len() * length < n {
                by_length[length].push(first);
            }
        }
        if n_available < n {
            return Err(n_available);
        }
        let runs = by_length.iter().enumerate().rev();
        let runs = runs.flat_map(|(length, firsts)| firsts.iter().map(move |&at| at..at + length));
        Ok(runs.flatten().take(n).collect())
    }

    /// Returns all runs, in the order of their seats.
    fn runs(&self) -> impl Iterator<Item = SeatRun> + '_ {
        let mut at = 0;
        let mut end = 0;
        std::iter::from_fn(move || {
            if at == end {
                at = self.next(end, true);
                end = self.next(at, false);
            }
            let end_of_row = (at / self.seats_per_row + 1) * self.seats_per_row;
            let first = std::mem::replace(&mut at, end.min(end_of_row));
            (first < at).then_some((first, at - first))
        })
    }

    /// Returns the first seat from one on that is available, or is not; or how many seats there
    /// are.
    fn next(&self, from: usize, is_available: bool) -> usize {
        let n_seats = self.rows * self.seats_per_row;
        let mut at = from;
        while at < n_seats {
            let available = self.available(at / SEATS_PER_WORD);
            let wanted = if is_available {
                available
            } else {
                HIGHER & !available
            };
            let wanted = wanted << (at % SEATS_PER_WORD * 2);
            if wanted != 0 {
                return n_seats.min(at + wanted.leading_zeros() as usize / 2);
            }
            at = (at / SEATS_PER_WORD + 1) * SEATS_PER_WORD;
        }
        n_seats
    }

    /// Returns the higher bit of each seat of a word that is available.
    fn available(&self, word: usize) -> u64 {
        let rest = self.bits.get(word * WORD_BYTES..).unwrap_or_default();
        let mut bytes = [0; WORD_BYTES];
        let n = rest.len().min(WORD_BYTES);
        bytes[..n].copy_from_slice(&rest[..n]);
        let bits = u64::from_be_bytes(bytes);
        HIGHER & !(bits | bits << 1)
    }

    /// Returns how many seats are in each of the four states.
    pub(super) fn count(&self) -> [usize; 4] {
        let n_seats = self.rows * self.seats_per_row;
        let mut counts = [0; 4];
        for index in 0..n_seats {
            counts[self.state(index)] += 1;
        }
        counts
    }

    /// Returns the bits of a seat.
    pub(super) fn state(&self, index: usize) -> usize {
        let byte = self.bits.get(index / 4).copied().unwrap_or_default();
        usize::from(byte >> (6 - index % 4 * 2) & 3)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the map of seats in these states.
    fn bits(states: &[u8]) -> Vec<u8> {
        let byte = |seats: &[u8]| {
            let seats = seats.iter().zip([6, 4, 2, 0]);
            seats.fold(0, |byte, (state, shift)| byte | state << shift)
        };
        states.chunks(4).map(byte).collect()
    }

    /// Returns the same as [`Grid::best`], said seat by seat.
    fn naive(states: &[u8], seats_per_row: usize, n: usize) -> Result<Vec<usize>, usize> {
        let mut runs: Vec<Vec<usize>> = vec![Vec::new()];
        for (index, state) in states.iter().enumerate() {
            if index % seats_per_row == 0 || *state != 0 {
                runs.push(Vec::new());
            }
            if *state == 0
                && let Some(run) = runs.last_mut()
            {
                run.push(index);
            }
        }
        if let Some(run) = runs.iter().find(|run| run.len() >= n) {
            return Ok(run[..n].to_vec());
        }
        runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
        let mut seats = runs.concat();
        if seats.len() < n {
            return Err(seats.len());
        }
        seats.truncate(n);
        Ok(seats)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_best_seats_are_those_of_a_naive_search(
            rows in 1..40_usize,
            seats_per_row in 1..80_usize,
            n in 1..12_usize,
            taken in 0..100_u32,
            seed in any::<u64>(),
            is_short in any::<bool>(),
        ) {
            let mut random = seed;
            let mut states = Vec::new();
            for _ in 0..rows * seats_per_row {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let is_taken = (random >> 33) as u32 % 100 < taken;
                states.push(if is_taken { 1 + (random >> 60) as u8 % 3 } else { 0 });
            }
            let mut bits = bits(&states);
            if is_short {
                // A map may end with its last seat that is not available.
                while bits.last() == Some(&0) {
                    bits.pop();
                }
            }
            let grid = Grid { bits: &bits, rows, seats_per_row };
            prop_assert_eq!(grid.best(n), naive(&states, seats_per_row, n));
            let count = |wanted| states.iter().filter(|state| **state == wanted).count();
            prop_assert_eq!(grid.count(), [count(0), count(1), count(2), count(3)]);
        }
    }

    #[test]
    fn the_first_adjacent_seats_are_the_best() {
        let best = |rows: &[&[u8]], n| {
            let seats_per_row = rows[0].len();
            let bits = bits(&rows.concat());
            let rows = rows.len();
            Grid {
                bits: &bits,
                rows,
                seats_per_row,
            }
            .best(n)
        };
        // Adjacent ones first, in the first row that has them.
        assert_eq!(best(&[&[0, 1, 0, 1], &[1, 0, 0, 0]], 3), Ok(vec![5, 6, 7]));
        // Seats at the end of a row are not adjacent to those of the next one.
        assert_eq!(best(&[&[1, 0, 0], &[0, 0, 1]], 3), Ok(vec![1, 2, 3]));
        // Otherwise from the longest runs: two, two of the next, and so on.
        assert_eq!(
            best(&[&[0, 2, 0, 0], &[0, 0, 3, 0]], 4),
            Ok(vec![2, 3, 4, 5])
        );
        assert_eq!(
            best(&[&[0, 2, 0, 0], &[0, 1, 1, 0]], 4),
            Ok(vec![2, 3, 0, 4])
        );
        assert_eq!(best(&[&[1, 2, 0, 1], &[0, 1, 1, 0]], 4), Err(3));
        assert_eq!(best(&[&[1, 2, 3, 1]], 1), Err(0));
    }
}
