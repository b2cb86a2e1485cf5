//! Fields that count.

use bytes::Bytes;

use super::field::HashField;
use super::fields::HashChange;
use crate::command::arguments::{check_name, integer};
use crate::error::{CommandError, NOT_FLOAT, OVERFLOW, Result};
use crate::keyspace::Keyspace;
use crate::long_double::LongDouble;
use crate::number::{integer_bytes, parse_integer};
use crate::reply::Reply;

/// `HINCRBY key field increment`
pub(super) fn hincrby(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let increment = integer(&arguments[3])?;
    let mut sum = increment;
    update(keyspace, arguments, |before| {
        if let Some(before) = before {
            let before = parse_integer(before)
                .ok_or(CommandError::refused("ERR hash value is not an integer"))?;
            sum = before.checked_add(increment).ok_or(OVERFLOW)?;
        }
        Ok(integer_bytes(sum))
    })?;
    Ok(Reply::Integer(sum))
}

/// `HINCRBYFLOAT key field increment`
pub(super) fn hincrbyfloat(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let increment = LongDouble::parse(&arguments[3]).ok_or(NOT_FLOAT)?;
    if increment == LongDouble::Infinite {
        return Err(CommandError::refused("ERR value is NaN or Infinity"));
    }
    let value = update(keyspace, arguments, |before| {
        let before = before.map_or(&b"0"[..], Bytes::as_ref);
        let before = LongDouble::parse(before);
        let before = before.ok_or(CommandError::refused("ERR hash value is not a float"))?;
        let sum = before.add(&increment).ok_or(CommandError::refused(
            "ERR increment would produce NaN or Infinity",
        ))?;
        Ok(Bytes::from(sum.to_string()))
    })?;
    Ok(Reply::Bulk(value))
}

/// Replaces the value of a field and returns it; when it expires stays as it is.
fn update(
    keyspace: &mut Keyspace<'_>,
    arguments: &[Bytes],
    next: impl FnOnce(Option<&Bytes>) -> Result<Bytes>,
) -> Result<Bytes> {
    let (key, name) = (&arguments[1], &arguments[2]);
    check_name(key)?;
    check_name(name)?;
    let mut change = HashChange::existing_or_new(keyspace, key)?;
    let before = change.get(name)?;
    let after = HashField {
        value: next(before.as_ref().map(|before| &before.value))?,
        expires: before.as_ref().and_then(|before| before.expires),
    };
    change.replace(name, before.as_ref(), &after)?;
    change.save()?;
    Ok(after.value)
}
