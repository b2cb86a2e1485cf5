//! Times and lists of fields among the arguments of commands.

use bytes::Bytes;

use crate::command::arguments::{ArgumentReader, integer};
use crate::command::clock::TimeUnit;
use crate::command::deadline::invalid_time;
use crate::error::{CommandError, Result};
use crate::number::parse_integer;

/// The latest time at which a field may expire, as in Redis: in milliseconds since 1970.
const FIELD_EXPIRY_MAX: i64 = (1 << 46) - 1;

/// Returns the time at which a field is to expire, in milliseconds since 1970.
pub(super) fn field_time(clock: TimeUnit, argument: &[u8], now: u64, command: &str) -> Result<u64> {
    let number = integer(argument)?;
    if number < 0 {
        let text = "ERR invalid expire time, must be >= 0";
        return Err(CommandError::refused(text));
    }
    let time = clock.time(number, now);
    let time = time.filter(|time| *time <= FIELD_EXPIRY_MAX);
    let time = time.ok_or_else(|| invalid_time(command))?;
    Ok(time.unsigned_abs())
}

/// What most commands say if a number of fields is none.
pub(super) const NOT_POSITIVE: CommandError =
    CommandError::refused("ERR Number of fields must be a positive integer");

/// `FIELDS numfields field [field …]`, to the end of the arguments.
pub(super) fn field_names<'a>(
    mut rest: ArgumentReader<'a>,
    not_positive: CommandError,
) -> Result<&'a [Bytes]> {
    if !rest.take("FIELDS") {
        return Err(CommandError::refused(
            "ERR Mandatory argument FIELDS is missing or not at the right position",
        ));
    }
    let count = rest.word().and_then(|count| parse_integer(count));
    let count = count.filter(|count| *count > 0).ok_or(not_positive)?;
    if usize::try_from(count) != Ok(rest.all().len()) {
        return Err(CommandError::refused(
            "ERR The `numfields` parameter must match the number of arguments",
        ));
    }
    Ok(rest.all())
}
