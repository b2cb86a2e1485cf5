//! Bitmaps made of bitmaps.

use bytes::Bytes;

use crate::command::arguments::{check_name, is_word};
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;
use crate::string::StoredString;

/// What is done with two bytes.
type Combine = fn(u8, u8) -> u8;

/// `BITOP AND | OR | XOR | NOT destination key [key …]`
pub(super) fn bitop(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (word, destination, sources) = (&arguments[1], &arguments[2], &arguments[3..]);
    // What is not is what differs from ones.
    let (first, combine): (u8, Combine) = match word {
        word if is_word(word, "AND") => (u8::MAX, |a, b| a & b),
        word if is_word(word, "OR") => (0, |a, b| a | b),
        word if is_word(word, "XOR") => (0, |a, b| a ^ b),
        word if is_word(word, "NOT") => (u8::MAX, |a, b| a ^ b),
        _ => return Err(SYNTAX),
    };
    if is_word(word, "NOT") && sources.len() != 1 {
        return Err(CommandError::refused(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    let read = |key: &Bytes| Ok(keyspace.string(key)?.unwrap_or(StoredString::EMPTY));
    let sources: Vec<StoredString> = sources.iter().map(read).collect::<Result<_>>()?;
    let len = sources
        .iter()
        .map(StoredString::len)
        .max()
        .unwrap_or_default();
    if len == 0 {
        keyspace.delete(destination)?;
        return Ok(Reply::Integer(0));
    }
    check_name(destination)?;
    keyspace.put_parts(destination, len, None, |keyspace, part| {
        let mut combined = vec![first; (part.end - part.start) as usize];
        for source in &sources {
            // A source that ends before has zeros there.
            let bytes = keyspace.read_range(source, part.clone())?;
            let pairs = combined.iter_mut().zip(&bytes);
            pairs.for_each(|(byte, other)| *byte = combine(*byte, *other));
        }
        Ok(combined.into())
    })?;
    Ok(Reply::Integer(len as i64))
}
