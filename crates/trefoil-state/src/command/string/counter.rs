//! Strings that are numbers.

use bytes::Bytes;

use crate::command::arguments::{check_name, integer};
use crate::error::{CommandError, NOT_FLOAT, NOT_INTEGER, OVERFLOW, Result};
use crate::keyspace::Keyspace;
use crate::long_double::{FLOAT_BYTES_MAX, LongDouble};
use crate::number::integer_bytes;
use crate::reply::Reply;

/// A string longer than this is no integer.
const INTEGER_BYTES_MAX: u64 = 20;

/// `INCR key`
pub(super) fn incr(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    add(keyspace, &arguments[1], 1)
}

/// `DECR key`
pub(super) fn decr(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    add(keyspace, &arguments[1], -1)
}

/// `INCRBY key increment`
pub(super) fn incrby(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let by = integer(&arguments[2])?;
    add(keyspace, &arguments[1], by)
}

/// `DECRBY key decrement`
pub(super) fn decrby(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let by = integer(&arguments[2])?.checked_neg();
    let by = by.ok_or(CommandError::refused("ERR decrement would overflow"))?;
    add(keyspace, &arguments[1], by)
}

fn add(keyspace: &mut Keyspace<'_>, key: &Bytes, by: i64) -> Result<Reply> {
    let text = keyspace.string(key)?;
    let before = match &text {
        Some(text) if text.len() > INTEGER_BYTES_MAX => return Err(NOT_INTEGER),
        Some(text) => integer(&keyspace.read(text)?)?,
        None => 0,
    };
    let sum = before.checked_add(by).ok_or(OVERFLOW)?;
    check_name(key)?;
    let expires = text.and_then(|text| text.expires);
    keyspace.put_string(key, &integer_bytes(sum), expires)?;
    Ok(Reply::Integer(sum))
}

/// `INCRBYFLOAT key increment`
pub(super) fn incrbyfloat(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let key = &arguments[1];
    let text = keyspace.string(key)?;
    let before = match &text {
        Some(text) if text.len() >= FLOAT_BYTES_MAX as u64 => return Err(NOT_FLOAT),
        Some(text) => keyspace.read(text)?,
        None => Bytes::from_static(b"0"),
    };
    let before = LongDouble::parse(&before).ok_or(NOT_FLOAT)?;
    let by = LongDouble::parse(&arguments[2]).ok_or(NOT_FLOAT)?;
    let sum = before.add(&by).ok_or(CommandError::refused(
        "ERR increment would produce NaN or Infinity",
    ))?;
    check_name(key)?;
    let sum = Bytes::from(sum.to_string());
    let expires = text.and_then(|text| text.expires);
    keyspace.put_string(key, &sum, expires)?;
    Ok(Reply::Bulk(sum))
}
