//! What `SCAN`, `HSCAN`, `SSCAN` and `ZSCAN` have in common: a cursor, a pattern, a count.

use bytes::Bytes;

use super::arguments::{ArgumentReader, integer, is_word};
use crate::error::{CommandError, Result, SYNTAX};
use crate::matches_glob;
use crate::number::integer_bytes;
use crate::reply::Reply;

/// How many elements a step of a walk looks at unless the client says so.
const COUNT_DEFAULT: usize = 10;

/// At most how many elements one step looks at.
const COUNT_MAX: usize = 100_000;

/// Where a walk is to go on, and what it is to return.
#[derive(Debug)]
pub(crate) struct ScanOptions {
    pub(crate) cursor: u32,
    pub(crate) count: usize,
    pattern: Option<Bytes>,
    /// `TYPE name`, for keys.
    pub(crate) kind: Option<Bytes>,
    /// `NOVALUES`, for hashes.
    pub(crate) without_values: bool,
}

impl ScanOptions {
    /// `cursor [MATCH pattern] [COUNT n]`, and `[TYPE name]` or `[NOVALUES]` where they make sense.
    pub(crate) fn parse(arguments: &[Bytes], extra: &str) -> Result<Self> {
        let mut rest = ArgumentReader::new(arguments);
        let cursor = rest.word().ok_or(SYNTAX)?;
        let mut options = Self {
            cursor: parse_cursor(cursor)?,
            count: COUNT_DEFAULT,
            pattern: None,
            kind: None,
            without_values: false,
        };
        while let Some(word) = rest.word() {
            if is_word(word, "MATCH") {
                options.pattern = Some(rest.word().ok_or(SYNTAX)?.clone());
            } else if is_word(word, "COUNT") {
                let count = integer(rest.word().ok_or(SYNTAX)?)?;
                if count < 1 {
                    return Err(SYNTAX);
                }
                options.count = usize::try_from(count).map_or(COUNT_MAX, |n| n.min(COUNT_MAX));
            } else if extra == "TYPE" && is_word(word, extra) {
                options.kind = Some(rest.word().ok_or(SYNTAX)?.clone());
            } else if extra == "NOVALUES" && is_word(word, extra) {
                options.without_values = true;
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(options)
    }

    /// Returns whether a name is to be returned.
    pub(crate) fn selects(&self, name: &[u8]) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_none_or(|pattern| matches_glob(pattern, name))
    }
}

/// Reads a cursor alone: it is read before the key is looked at, the options after.
pub(crate) fn parse_cursor(argument: &[u8]) -> Result<u32> {
    let text = std::str::from_utf8(argument).ok();
    let cursor = text.and_then(|text| text.parse::<u64>().ok());
    let cursor = cursor.ok_or(CommandError::refused("ERR invalid cursor"))?;
    // One beyond all hashes is beyond all elements.
    Ok(u32::try_from(cursor).unwrap_or(u32::MAX))
}

/// Returns what a step of a walk replies.
pub(crate) fn reply(next: Option<u32>, found: Vec<Reply>) -> Reply {
    let next = Reply::Bulk(integer_bytes(i64::from(next.unwrap_or_default())));
    Reply::Array(vec![next, Reply::Array(found)])
}
