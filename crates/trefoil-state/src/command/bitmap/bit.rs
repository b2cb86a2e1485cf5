//! Single bits.

use bytes::Bytes;

use crate::command::arguments::check_name;
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::layout::STRING_BYTES_MAX;
use crate::number::parse_integer;
use crate::reply::Reply;
use crate::string::StringDraft;

/// Returns the offset of a bit; with `width`, `#n` stands for the n-th field of this many bits.
pub(super) fn offset(argument: &[u8], width: Option<u32>) -> Result<u64> {
    let offset = match (argument, width) {
        ([b'#', index @ ..], Some(width)) => {
            parse_integer(index).and_then(|index| index.checked_mul(i64::from(width)))
        }
        _ => parse_integer(argument),
    };
    offset
        .and_then(|offset| u64::try_from(offset).ok())
        .filter(|offset| offset / 8 < STRING_BYTES_MAX as u64)
        .ok_or(CommandError::refused(
            "ERR bit offset is not an integer or out of range",
        ))
}

/// Returns the bit at an offset within its byte.
fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// `SETBIT key offset value`
pub(super) fn setbit(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let key = &arguments[1];
    let offset = offset(&arguments[2], None)?;
    let is_set = match parse_integer(&arguments[3]) {
        Some(0) => false,
        Some(1) => true,
        _ => {
            return Err(CommandError::refused(
                "ERR bit is not an integer or out of range",
            ));
        }
    };
    check_name(key)?;
    let mut draft = StringDraft::new(keyspace.string(key)?);
    let mut byte = [0];
    draft.read(keyspace, offset / 8, &mut byte)?;
    let [before] = byte;
    let after = match is_set {
        true => before | mask(offset),
        false => before & !mask(offset),
    };
    draft.write(keyspace, offset / 8, &[after])?;
    draft.save(keyspace, key)?;
    Ok(Reply::flag(before & mask(offset) != 0))
}

/// `GETBIT key offset`
pub(super) fn getbit(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let offset = offset(&arguments[2], None)?;
    let at = offset / 8;
    let byte = match keyspace.string(&arguments[1])? {
        Some(text) => keyspace.read_range(&text, at..at + 1)?[0],
        None => 0,
    };
    Ok(Reply::flag(byte & mask(offset) != 0))
}
