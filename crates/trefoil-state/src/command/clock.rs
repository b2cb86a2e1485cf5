//! How times are given and told: in seconds or milliseconds, from now on or since 1970.

use super::arguments::is_word;

/// How a time is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeUnit {
    /// Whether it counts from now on; otherwise from 1970.
    is_relative: bool,
    /// How many milliseconds one is.
    unit: i64,
}

impl TimeUnit {
    /// Seconds from now.
    pub(crate) const EX: Self = Self::new(true, 1000);
    /// Milliseconds from now.
    pub(crate) const PX: Self = Self::new(true, 1);
    /// Seconds since 1970.
    pub(crate) const EXAT: Self = Self::new(false, 1000);
    /// Milliseconds since 1970.
    pub(crate) const PXAT: Self = Self::new(false, 1);

    const fn new(is_relative: bool, unit: i64) -> Self {
        Self { is_relative, unit }
    }

    /// Returns the clock that `EX`, `PX`, `EXAT` or `PXAT` says; `None` if it is another word.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        const WORDS: [(&str, TimeUnit); 4] = [
            ("EX", TimeUnit::EX),
            ("PX", TimeUnit::PX),
            ("EXAT", TimeUnit::EXAT),
            ("PXAT", TimeUnit::PXAT),
        ];
        let found = WORDS.iter().find(|(name, _)| is_word(word, name));
        found.map(|(_, clock)| *clock)
    }

    /// Returns the time that is so far by this clock, in milliseconds since 1970; `None` if it is
    /// beyond all numbers.
    pub(crate) fn time(self, number: i64, now: u64) -> Option<i64> {
        let base = if self.is_relative { now } else { 0 };
        number.checked_mul(self.unit)?.checked_add_unsigned(base)
    }

    /// Returns how far a time is by this clock, begun units counted as whole ones.
    pub(crate) fn tell(self, time: u64, now: u64) -> i64 {
        let base = if self.is_relative { now } else { 0 };
        let unit = self.unit.unsigned_abs();
        time.saturating_sub(base).div_ceil(unit) as i64
    }
}
