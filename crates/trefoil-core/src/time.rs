//! Points in time: nanoseconds since 1970, UTC, written as RFC 3339.

use jiff::Timestamp as Instant;

/// Nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Reads RFC 3339 with an optional fraction and any offset; `None` if it is not that or lies
    /// outside the years 1678 to 2262.
    pub fn parse(text: &str) -> Option<Self> {
        let instant: Instant = text.parse().ok()?;
        i64::try_from(instant.as_nanosecond()).ok().map(Self)
    }

    /// Milliseconds since 1970; 0 for anything earlier.
    pub fn millis(self) -> u64 {
        u64::try_from(self.0 / 1_000_000).unwrap_or(0)
    }

    /// Returns the same time without its fraction of a second.
    pub fn whole_seconds(self) -> Self {
        Self(self.0.div_euclid(1_000_000_000) * 1_000_000_000)
    }
}

/// RFC 3339 in UTC with as many fractional digits as are needed: `2026-03-03T10:00:00.123456Z`.
impl std::fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match Instant::from_nanosecond(i128::from(self.0)) {
            Ok(instant) => write!(formatter, "{instant}"),
            Err(_) => Err(std::fmt::Error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_the_digits_they_need() {
        let cases = [
            (
                "2026-03-03T10:00:00.123456789Z",
                "2026-03-03T10:00:00.123456789Z",
            ),
            ("2026-03-03T10:00:00.500Z", "2026-03-03T10:00:00.5Z"),
            ("2026-03-03T12:00:00+02:00", "2026-03-03T10:00:00Z"),
            ("1969-12-31T23:59:59.9Z", "1969-12-31T23:59:59.9Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "yesterday", "2026-03-03", "9999-12-31T00:00:00Z"] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
