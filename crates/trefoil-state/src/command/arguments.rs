//! Reading the arguments of commands.

use std::ops::Range;

use bytes::Bytes;
use trefoil_core::Direction;

use crate::error::{CommandError, NOT_FLOAT, NOT_INTEGER, Result, SYNTAX};
use crate::layout::KEY_BYTES_MAX;
use crate::number::{parse_double, parse_integer};

/// Returns an integer.
pub(crate) fn integer(argument: &[u8]) -> Result<i64> {
    parse_integer(argument).ok_or(NOT_INTEGER)
}

/// Returns a floating-point number.
pub(crate) fn double(argument: &[u8]) -> Result<f64> {
    parse_double(argument).ok_or(NOT_FLOAT)
}

/// Returns whether an argument is this word, in any case.
pub(crate) fn is_word(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// Checks the length of a key, a field or a member that is to be written.
pub(crate) fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > KEY_BYTES_MAX {
        let n = name.len();
        return Err(CommandError::because(format!(
            "ERR a key, field or member of {n} bytes is over the limit of {KEY_BYTES_MAX}"
        )));
    }
    Ok(())
}

/// Returns what says that a command has too few or too many arguments.
pub(crate) fn wrong_arity(command: &str) -> CommandError {
    CommandError::because(format!(
        "ERR wrong number of arguments for '{command}' command"
    ))
}

/// How much of a word that is not known is repeated in the error, as Redis does.
const REPEATED_BYTES_MAX: usize = 128;

/// Returns the one of a command's subcommands, given in lower case, that a word names.
pub(crate) fn subcommand(
    command: &str,
    word: &[u8],
    names: &[&'static str],
) -> Result<&'static str> {
    let found = names.iter().find(|name| is_word(word, name));
    found.copied().ok_or_else(|| {
        let word = String::from_utf8_lossy(&word[..word.len().min(REPEATED_BYTES_MAX)]);
        CommandError::because(format!(
            "ERR unknown subcommand '{word}'. Try {command} HELP."
        ))
    })
}

/// Returns a number of things, where none is a number as well.
pub(crate) fn count(argument: &[u8]) -> Result<usize> {
    integer_from(0, argument, "ERR value is out of range, must be positive")
}

/// Returns an integer that is at least `min`, or an error of the command's own, whatever is wrong.
pub(crate) fn integer_from(min: i64, argument: &[u8], error: &'static str) -> Result<usize> {
    let number = parse_integer(argument).filter(|number| *number >= min);
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or(CommandError::refused(error))
}

/// Returns the indexes that `start` and `end`, both included and from the end if negative, mean
/// among `len` elements.
pub fn index_range(start: i64, end: i64, len: u64) -> Range<u64> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |index: i64| if index < 0 { index + len } else { index };
    let start = from_end(start).max(0);
    let end = from_end(end).min(len - 1);
    if start > end {
        return 0..0;
    }
    start as u64..end as u64 + 1
}

/// Returns indexes that count from the end that a direction begins at, as they count from the first
/// element.
pub(crate) fn from_end(indexes: Range<u64>, len: u64, direction: Direction) -> Range<u64> {
    match direction {
        Direction::Forwards => indexes,
        Direction::Backwards => len - indexes.end..len - indexes.start,
    }
}

/// `numkeys key [key …] END [COUNT count]`: keys, which end to take elements from, and how many.
pub(crate) fn multi_pop<T>(
    arguments: &[Bytes],
    parse_end: fn(&[u8]) -> Result<T>,
) -> Result<(&[Bytes], T, usize)> {
    const NO_KEYS: &str = "ERR numkeys should be greater than 0";
    const NO_COUNT: &str = "ERR count should be greater than 0";
    let mut rest = ArgumentReader::new(arguments);
    let n_keys = integer_from(1, rest.word().ok_or(SYNTAX)?, NO_KEYS)?;
    let split = rest.all().split_at_checked(n_keys);
    let (keys, options) = split.ok_or(SYNTAX)?;
    let [end, options @ ..] = options else {
        return Err(SYNTAX);
    };
    let end = parse_end(end)?;
    let (n_max, surplus) = match options {
        [word, n_max, surplus @ ..] if is_word(word, "COUNT") => {
            (integer_from(1, n_max, NO_COUNT)?, surplus)
        }
        surplus => (1, surplus),
    };
    if !surplus.is_empty() {
        return Err(SYNTAX);
    }
    Ok((keys, end, n_max))
}

/// The arguments of a command that are still to be read.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentReader<'a>(&'a [Bytes]);

impl<'a> ArgumentReader<'a> {
    /// Reads these arguments.
    pub fn new(arguments: &'a [Bytes]) -> Self {
        Self(arguments)
    }

    /// Takes the next argument.
    pub fn word(&mut self) -> Option<&'a Bytes> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Takes the next argument if it is this word, given in upper case.
    pub fn take(&mut self, word: &str) -> bool {
        let is_next = self.0.first().is_some_and(|next| is_word(next, word));
        if is_next {
            self.0 = &self.0[1..];
        }
        is_next
    }

    /// Returns what is left.
    pub fn all(&self) -> &'a [Bytes] {
        self.0
    }

    /// Returns whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
