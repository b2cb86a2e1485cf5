//! How text looks to a person: in colour, and with times as they are said.
//!
//! On a terminal only. What a program reads through a pipe has no colour and exact times.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::IsTerminal as _;

use anstyle::{AnsiColor, Style};
use trefoil::{Clock, Timestamp};

/// The head of a table.
pub(crate) const HEAD: Style = Style::new().bold();
/// What is there to find other things by.
pub(crate) const QUIET: Style = Style::new().dimmed();
/// The name of a stream.
pub(crate) const STREAM: Style = AnsiColor::Cyan.on_default();
/// The type of an event.
pub(crate) const TYPE: Style = AnsiColor::Green.on_default();
/// Tags.
pub(crate) const TAGS: Style = AnsiColor::Yellow.on_default();

/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What somebody should look at.
pub(crate) const WORRYING: Style = AnsiColor::Yellow.on_default();
/// What is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// How text looks.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    has_colour: bool,
    /// Times are told from here on; exactly if there is none.
    clock: Option<Clock>,
}

impl Look {
    /// What standard output wants.
    pub(crate) fn of_stdout() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            has_colour: is_terminal && !is_dumb && !is_set("NO_COLOR"),
            clock: is_terminal.then(Clock::default),
        }
    }

    /// Whether a person looks at a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.clock.is_some()
    }

    /// Whether colours are wanted.
    pub(crate) fn has_colour(&self) -> bool {
        self.has_colour
    }

    /// The text in a style.
    pub(crate) fn paint(&self, style: Style, text: impl Display) -> String {
        match self.has_colour {
            true => format!("{style}{text}{style:#}"),
            false => text.to_string(),
        }
    }

    /// A time, or text that stands for none.
    pub(crate) fn time<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let time = Timestamp::parse(text);
        match self.clock.as_ref().zip(time) {
            Some((clock, time)) => Cow::Owned(from(clock.now(), time)),
            None => Cow::Borrowed(text),
        }
    }
}

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Beyond this a date says more.
const SPOKEN_MAX: i64 = 30 * DAY;

/// A time as seen from another one.
fn from(now: Timestamp, time: Timestamp) -> String {
    let distance = now.0.saturating_sub(time.0);
    let length = distance.saturating_abs();
    let (unit, name) = match length {
        SPOKEN_MAX.. => {
            let exact = time.to_string();
            return exact.split('T').next().unwrap_or(&exact).to_owned();
        }
        DAY.. => (DAY, "d"),
        HOUR.. => (HOUR, "h"),
        MINUTE.. => (MINUTE, "m"),
        SECOND.. => (SECOND, "s"),
        _ => return "now".to_owned(),
    };
    match (length / unit, distance > 0) {
        (count, true) => format!("{count}{name} ago"),
        (count, false) => format!("in {count}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_from_now_on_and_old_ones_have_a_date() {
        let now = Timestamp::parse("2026-03-31T12:00:00Z").unwrap();
        for (time, expected) in [
            ("2026-03-31T11:59:59.5Z", "now"),
            ("2026-03-31T11:59:18Z", "42s ago"),
            ("2026-03-31T11:01:00Z", "59m ago"),
            ("2026-03-30T13:00:00Z", "23h ago"),
            ("2026-03-02T12:00:00Z", "29d ago"),
            ("2026-03-01T11:00:00Z", "2026-03-01"),
            ("2026-03-31T12:10:00Z", "in 10m"),
        ] {
            let time = Timestamp::parse(time).unwrap();
            assert_eq!(from(now, time), expected);
        }
    }
}
