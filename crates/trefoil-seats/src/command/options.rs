//! Ids, numbers and the prefix among the arguments.

use std::ops::RangeInclusive;

use bytes::Bytes;
use trefoil_state::{ArgumentReader, CommandError, SYNTAX, parse_integer};

use crate::Result;
use crate::{EventNames, SectionNames, check_prefix};

/// Takes `[PREFIX prefix]` off the end of the arguments, of which at least `n_min` are left, and
/// the name of the command off their begin.
pub(super) fn split(arguments: &[Bytes], n_min: usize) -> Result<(ArgumentReader<'_>, String)> {
    let (arguments, prefix) = match arguments {
        [others @ .., word, prefix]
            if others.len() >= n_min && word.eq_ignore_ascii_case(b"PREFIX") =>
        {
            (others, check_prefix(prefix)?)
        }
        others => (others, String::new()),
    };
    let arguments = arguments.get(1..).unwrap_or_default();
    Ok((ArgumentReader::new(arguments), prefix))
}

/// Returns the next argument.
pub(super) fn next<'a>(rest: &mut ArgumentReader<'a>) -> Result<&'a Bytes> {
    rest.word().ok_or(SYNTAX)
}

/// `event section`
pub(super) fn section(rest: &mut ArgumentReader<'_>, prefix: String) -> Result<SectionNames> {
    let event = EventNames::new(prefix, next(rest)?)?;
    SectionNames::new(event, next(rest)?)
}

/// Returns the number after a word, which must be in a range.
pub(super) fn number<T: TryFrom<i64>>(
    rest: &mut ArgumentReader<'_>,
    word: &str,
    range: RangeInclusive<i64>,
) -> Result<T> {
    let number = parse_integer(next(rest)?).filter(|number| range.contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| {
        let (low, high) = range.into_inner();
        CommandError::because(format!("ERR {word} must be a number from {low} to {high}"))
    })
}

/// Checks that nothing is left.
pub(super) fn end(rest: &ArgumentReader<'_>) -> Result<()> {
    match rest.is_empty() {
        true => Ok(()),
        false => Err(SYNTAX),
    }
}
