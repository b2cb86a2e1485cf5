//! Reading whole strings, and what is done along with it.

use bytes::Bytes;

use crate::command::arguments::{ArgumentReader, is_word};
use crate::command::deadline::Deadline;
use crate::error::{Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `GET key`
pub(super) fn get(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    Ok(Reply::bulk_or_nil(keyspace.string_bytes(&arguments[1])?))
}

/// `STRLEN key`
pub(super) fn strlen(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let text = keyspace.string(&arguments[1])?;
    Ok(Reply::Integer(text.map_or(0, |text| text.len() as i64)))
}

/// `GETDEL key`
pub(super) fn getdel(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let bytes = keyspace.string_bytes(&arguments[1])?;
    if bytes.is_some() {
        keyspace.delete(&arguments[1])?;
    }
    Ok(Reply::bulk_or_nil(bytes))
}

/// What `GETEX` does to the time of expiry.
enum ExpiryChange<'a> {
    None,
    Persist,
    Expire(Deadline<'a>),
}

/// `GETEX key [EX seconds | PX milliseconds | EXAT second | PXAT millisecond | PERSIST]`
pub(super) fn getex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let key = &arguments[1];
    let change = parse_change(&arguments[2..])?;
    let Some(text) = keyspace.string(key)? else {
        return Ok(Reply::Nil);
    };
    let expires = match change {
        ExpiryChange::None => text.expires,
        ExpiryChange::Persist => None,
        ExpiryChange::Expire(deadline) => Some(deadline.time(keyspace.now(), "getex")?),
    };
    let bytes = keyspace.read(&text)?;
    if expires != text.expires {
        keyspace.put_or_expire(key, &text.into_meta(expires))?;
    }
    Ok(Reply::Bulk(bytes))
}

fn parse_change(arguments: &[Bytes]) -> Result<ExpiryChange<'_>> {
    let mut rest = ArgumentReader::new(arguments);
    let mut change = ExpiryChange::None;
    while let Some(word) = rest.word() {
        let next = match Deadline::take(word, &mut rest)? {
            Some(deadline) => ExpiryChange::Expire(deadline),
            None if is_word(word, "PERSIST") => ExpiryChange::Persist,
            None => return Err(SYNTAX),
        };
        match (&change, &next) {
            (ExpiryChange::None, _) | (ExpiryChange::Persist, ExpiryChange::Persist) => {}
            (ExpiryChange::Expire(before), ExpiryChange::Expire(after))
                if before.is_like(after) => {}
            _ => return Err(SYNTAX),
        }
        change = next;
    }
    Ok(change)
}
