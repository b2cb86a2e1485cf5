//! When something is to expire, as options of commands say it.

use bytes::Bytes;

use super::arguments::{ArgumentReader, integer};
use super::clock::TimeUnit;
use crate::error::{CommandError, Result, SYNTAX};

/// `EX seconds`, `PX milliseconds`, `EXAT second` or `PXAT millisecond`, which is read when the
/// command gets to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline<'a> {
    number: &'a Bytes,
    clock: TimeUnit,
}

impl<'a> Deadline<'a> {
    /// A number of seconds from now.
    pub(crate) fn seconds(number: &'a Bytes) -> Self {
        let clock = TimeUnit::EX;
        Self { number, clock }
    }

    /// A number of milliseconds from now.
    pub(crate) fn milliseconds(number: &'a Bytes) -> Self {
        let clock = TimeUnit::PX;
        Self { number, clock }
    }

    /// Returns what this word and the argument after it say; `None` if it is another word.
    pub(crate) fn take(word: &[u8], rest: &mut ArgumentReader<'a>) -> Result<Option<Self>> {
        let Some(clock) = TimeUnit::of(word) else {
            return Ok(None);
        };
        let number = rest.word().ok_or(SYNTAX)?;
        Ok(Some(Self { number, clock }))
    }

    /// Returns whether it was said with the same word; where one may stand twice, the last one
    /// counts.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.clock == other.clock
    }

    /// Returns the time, in milliseconds since 1970; `command` is named where it is no time.
    pub(crate) fn time(&self, now: u64, command: &str) -> Result<u64> {
        let number = integer(self.number)?;
        let time = self.clock.time(number, now).filter(|_| number > 0);
        let time = time.and_then(|time| u64::try_from(time).ok());
        time.ok_or_else(|| invalid_time(command))
    }
}

/// Returns the refusal of a time that cannot be one.
pub(crate) fn invalid_time(command: &str) -> CommandError {
    CommandError::because(format!("ERR invalid expire time in '{command}' command"))
}
