//! Parts of strings.

use std::ops::Range;

use bytes::Bytes;

use crate::command::arguments::{check_name, integer};
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::reply::Reply;
use crate::string::StringDraft;

/// `APPEND key value`
pub(super) fn append(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (key, value) = (&arguments[1], &arguments[2]);
    let text = keyspace.string(key)?;
    let mut draft = StringDraft::new(text.clone());
    draft.write(keyspace, draft.len(), value)?;
    let len = draft.len();
    if text.is_none() {
        check_name(key)?;
        keyspace.put_string(key, value, None)?;
    } else {
        keyspace.touch(key);
        draft.save(keyspace, key)?;
    }
    Ok(Reply::Integer(len as i64))
}

/// `SETRANGE key offset value`
pub(super) fn setrange(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (key, value) = (&arguments[1], &arguments[3]);
    let at = u64::try_from(integer(&arguments[2])?)
        .map_err(|_| CommandError::refused("ERR offset is out of range"))?;
    let mut draft = StringDraft::new(keyspace.string(key)?);
    if !value.is_empty() {
        check_name(key)?;
        draft.write(keyspace, at, value)?;
    }
    let len = draft.len();
    draft.save(keyspace, key)?;
    Ok(Reply::Integer(len as i64))
}

/// `GETRANGE key start end`, which was `SUBSTR` once.
pub(super) fn getrange(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let start = integer(&arguments[2])?;
    let end = integer(&arguments[3])?;
    let range = match keyspace.string(&arguments[1])? {
        Some(text) => string_range(start, end, text.len()).map(|range| (text, range)),
        None => None,
    };
    Ok(Reply::Bulk(match range {
        Some((text, range)) => keyspace.read_range(&text, range)?,
        None => Bytes::new(),
    }))
}

/// Returns the bytes between two indexes, which count from the end if they are negative.
pub fn string_range(start: i64, end: i64, len: u64) -> Option<Range<u64>> {
    if start < 0 && end < 0 && start > end {
        return None;
    }
    let len = len as i64;
    // An end before the first byte means the first byte.
    let from_end = |index: i64| {
        if index < 0 {
            (len + index).max(0)
        } else {
            index
        }
    };
    let start = from_end(start);
    let end = from_end(end).min(len - 1);
    (start <= end).then(|| start as u64..end as u64 + 1)
}
