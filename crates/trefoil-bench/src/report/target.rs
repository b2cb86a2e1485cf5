//! What a row must reach.

use super::figure_of;
use super::row::Row;
use super::text::figure_text;

/// A bound of a figure, or of its ratio to others.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// The ratio in the row is at least this.
    RatioAtLeast(f64),
    /// The ratio in the row is at most this.
    RatioAtMost(f64),
    /// The figure is at least this many times that of a system of the same table, or of the best one
    /// of several.
    Times(f64, &'static [&'static str]),
    /// The figure itself is at least this.
    AtLeast(f64),
    /// The figure itself is at most this.
    AtMost(f64),
}

impl Target {
    pub(super) fn text(self) -> String {
        match self {
            Self::RatioAtLeast(bound) => format!(">= {bound}x"),
            Self::RatioAtMost(bound) => format!("<= {bound}x"),
            Self::Times(bound, [peer]) => format!(">= {bound}x {peer}"),
            Self::Times(bound, peers) => format!(">= {bound}x the best of {}", peers.join(", ")),
            Self::AtLeast(bound) => format!(">= {bound}"),
            Self::AtMost(bound) => format!("<= {bound}"),
        }
    }

    /// Returns what was measured of a row of a table, and whether that is enough; `None` if there is
    /// nothing to compare with.
    pub(super) fn judge(self, row: &Row, table: &[Row]) -> (String, Option<bool>) {
        let measured = match self {
            Self::RatioAtLeast(_) | Self::RatioAtMost(_) => row.ratio,
            Self::Times(_, peers) => {
                let peers = peers.iter().filter_map(|peer| figure_of(table, peer));
                let best = peers.reduce(f64::max);
                row.figure.zip(best).map(|(own, best)| own / best)
            }
            Self::AtLeast(_) | Self::AtMost(_) => row.figure,
        };
        let Some(measured) = measured else {
            return ("-".to_owned(), None);
        };
        match self {
            Self::RatioAtLeast(bound) | Self::Times(bound, _) => {
                (format!("{measured:.2}x"), Some(measured >= bound))
            }
            Self::RatioAtMost(bound) => (format!("{measured:.2}x"), Some(measured <= bound)),
            Self::AtLeast(bound) => (figure_text(measured), Some(measured >= bound)),
            Self::AtMost(bound) => (figure_text(measured), Some(measured <= bound)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_compared_with_the_best_of_the_systems_that_are_there() {
        let rows = [
            Row::new("a", 10.0),
            Row::new("b", 20.0),
            Row::new("c", 30.0),
        ];
        let judge = |target: Target| target.judge(&rows[2], &rows);
        assert_eq!(
            judge(Target::Times(1.5, &["a", "b", "x"])),
            ("1.50x".to_owned(), Some(true))
        );
        assert_eq!(judge(Target::Times(1.6, &["b"])).1, Some(false));
        assert_eq!(judge(Target::Times(1.6, &["x"])), ("-".to_owned(), None));
        assert_eq!(
            judge(Target::AtMost(29.0)),
            ("30.0".to_owned(), Some(false))
        );
        assert_eq!(
            Target::Times(1.5, &["a", "b"]).text(),
            ">= 1.5x the best of a, b"
        );
    }
}
