//! Many strings at once.

use bytes::Bytes;

use super::set::{SetCondition, SetOptions, replace};
use crate::command::arguments::integer;
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::meta::ValueKind;
use crate::reply::Reply;

/// `MGET key [key …]`
pub(super) fn mget(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let read = |key: &Bytes| {
        // A key that holds no string counts as missing.
        let meta = keyspace.find(key)?;
        let is_string = meta.is_some_and(|meta| meta.kind() == ValueKind::String);
        let bytes = is_string.then(|| keyspace.string_bytes(key));
        Ok(Reply::bulk_or_nil(bytes.transpose()?.flatten()))
    };
    let replies = arguments[1..].iter().map(read).collect::<Result<_>>()?;
    Ok(Reply::Array(replies))
}

/// `MSET key value [key value …]`
pub(super) fn mset(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    for [key, value] in pairs(arguments, "mset")? {
        replace(keyspace, key, value, None)?;
    }
    Ok(Reply::OK)
}

/// `MSETNX key value [key value …]`
pub(super) fn msetnx(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let pairs = pairs(arguments, "msetnx")?;
    for [key, _] in pairs {
        if keyspace.find(key)?.is_some() {
            return Ok(Reply::flag(false));
        }
    }
    for [key, value] in pairs {
        replace(keyspace, key, value, None)?;
    }
    Ok(Reply::flag(true))
}

/// `MSETEX numkeys key value [key value …] [NX | XX]
/// [EX seconds | PX milliseconds | EXAT second | PXAT millisecond | KEEPTTL]`
pub(super) fn msetex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let n_keys = usize::try_from(integer(&arguments[1])?).unwrap_or_default();
    if n_keys == 0 {
        return Err(CommandError::refused(
            "ERR numkeys should be greater than 0",
        ));
    }
    let (pairs, _) = arguments[2..].as_chunks::<2>();
    let Some(pairs) = pairs.get(..n_keys) else {
        return Err(wrong_number("msetex"));
    };
    let options = SetOptions::parse(&arguments[2 + 2 * n_keys..])?;
    let is_comparison = matches!(options.condition, Some(SetCondition::Compares(_)));
    if options.answers_value || is_comparison {
        return Err(SYNTAX);
    }
    let time = options.time(keyspace.now(), "msetex")?;
    for [key, _] in pairs {
        if let Some(condition) = &options.condition
            && !condition.is_met(keyspace, key)?
        {
            return Ok(Reply::flag(false));
        }
    }
    for [key, value] in pairs {
        options.write(keyspace, key, value, time)?;
    }
    Ok(Reply::flag(true))
}

/// Returns the keys and values after the name of a command.
fn pairs<'a>(arguments: &'a [Bytes], command: &str) -> Result<&'a [[Bytes; 2]]> {
    match arguments[1..].as_chunks() {
        (pairs, []) => Ok(pairs),
        _ => Err(wrong_number(command)),
    }
}

fn wrong_number(command: &str) -> CommandError {
    CommandError::because(format!(
        "ERR wrong number of arguments for '{command}' command"
    ))
}
