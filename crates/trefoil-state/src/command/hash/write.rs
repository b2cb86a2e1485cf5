//! Writing and removing fields.

use bytes::Bytes;

use super::field::HashField;
use super::fields::HashChange;
use crate::command::arguments::check_name;
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `HSET key field value [field value …]`
pub(super) fn hset(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    set_all(keyspace, arguments, "hset").map(Reply::count)
}

/// `HMSET key field value [field value …]`
pub(super) fn hmset(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    set_all(keyspace, arguments, "hmset")?;
    Ok(Reply::OK)
}

/// Sets fields, which then do not expire. Returns how many were not there.
fn set_all(keyspace: &mut Keyspace<'_>, arguments: &[Bytes], command: &str) -> Result<usize> {
    let (fields, rest) = arguments[2..].as_chunks::<2>();
    if !rest.is_empty() {
        let text = format!("ERR wrong number of arguments for '{command}' command");
        return Err(CommandError::because(text));
    }
    check_name(&arguments[1])?;
    let mut change = HashChange::existing_or_new(keyspace, &arguments[1])?;
    let mut n_new = 0;
    for [name, value] in fields {
        check_name(name)?;
        let before = change.get(name)?;
        n_new += usize::from(before.is_none());
        change.replace(name, before.as_ref(), &HashField::plain(value.clone()))?;
    }
    change.save()?;
    Ok(n_new)
}

/// `HSETNX key field value`
pub(super) fn hsetnx(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (name, value) = (&arguments[2], &arguments[3]);
    check_name(&arguments[1])?;
    check_name(name)?;
    let mut change = HashChange::existing_or_new(keyspace, &arguments[1])?;
    let is_new = change.get(name)?.is_none();
    if is_new {
        change.replace(name, None, &HashField::plain(value.clone()))?;
    }
    change.save()?;
    Ok(Reply::flag(is_new))
}

/// `HDEL key field [field …]`
pub(super) fn hdel(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(mut change) = HashChange::existing(keyspace, &arguments[1])? else {
        return Ok(Reply::Integer(0));
    };
    let mut n_removed = 0;
    for name in &arguments[2..] {
        if let Some(before) = change.get(name)? {
            change.remove(name, &before)?;
            n_removed += 1;
        }
    }
    change.save()?;
    Ok(Reply::Integer(n_removed))
}
