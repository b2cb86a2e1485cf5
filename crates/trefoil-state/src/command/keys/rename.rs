//! Giving values to other keys.

use bytes::Bytes;

use crate::command::arguments::{ArgumentReader, check_name, integer};
use crate::error::{CommandError, NO_SUCH_KEY, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `RENAME key newkey`
pub(super) fn rename(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (from, to) = (&arguments[1], &arguments[2]);
    let meta = keyspace.find(from)?.ok_or(NO_SUCH_KEY)?;
    if from != to {
        check_name(to)?;
        keyspace.rename(from, to, &meta)?;
    }
    Ok(Reply::OK)
}

/// `RENAMENX key newkey`
pub(super) fn renamenx(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (from, to) = (&arguments[1], &arguments[2]);
    let meta = keyspace.find(from)?.ok_or(NO_SUCH_KEY)?;
    if from == to || keyspace.find(to)?.is_some() {
        return Ok(Reply::flag(false));
    }
    check_name(to)?;
    keyspace.rename(from, to, &meta)?;
    Ok(Reply::flag(true))
}

/// `COPY source destination [DB 0] [REPLACE]`
pub(super) fn copy(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (from, to) = (&arguments[1], &arguments[2]);
    let mut rest = ArgumentReader::new(&arguments[3..]);
    let mut replaces = false;
    while !rest.is_empty() {
        if rest.take("REPLACE") {
            replaces = true;
        } else if rest.take("DB") {
            check_database(rest.word().ok_or(SYNTAX)?)?;
        } else {
            return Err(SYNTAX);
        }
    }
    if from == to {
        return Err(CommandError::refused(
            "ERR source and destination objects are the same",
        ));
    }
    let Some(meta) = keyspace.find(from)? else {
        return Ok(Reply::flag(false));
    };
    if !replaces && keyspace.find(to)?.is_some() {
        return Ok(Reply::flag(false));
    }
    check_name(to)?;
    keyspace.copy(to, &meta)?;
    Ok(Reply::flag(true))
}

/// There is but one database.
fn check_database(argument: &[u8]) -> Result<()> {
    match i32::try_from(integer(argument)?) {
        Ok(0) => Ok(()),
        Ok(_) => Err(CommandError::refused("ERR DB index is out of range")),
        Err(_) => Err(CommandError::refused(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        )),
    }
}
