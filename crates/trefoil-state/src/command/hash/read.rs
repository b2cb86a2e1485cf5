//! Reading fields: one, some, all.

use bytes::Bytes;

use super::field::HashField;
use super::fields::Hash;
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::meter::Weighed;
use crate::reply::Reply;

fn find(keyspace: &Keyspace<'_>, key: &Bytes, field: &Bytes) -> Result<Option<HashField>> {
    match Hash::find(keyspace, key)? {
        Some(hash) => hash.get(keyspace, field),
        None => Ok(None),
    }
}

/// The value of a field.
pub(in crate::command) fn value(
    keyspace: &Keyspace<'_>,
    key: &Bytes,
    field: &Bytes,
) -> Result<Option<Bytes>> {
    let field = find(keyspace, key, field)?;
    Ok(field.map(|field| field.value))
}

/// `HGET key field`
pub(super) fn hget(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let value = value(keyspace, &arguments[1], &arguments[2])?;
    Ok(Reply::bulk_or_nil(value))
}

/// `HMGET key field [field …]`
pub(super) fn hmget(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(hash) = Hash::find(keyspace, &arguments[1])? else {
        return Ok(Reply::Array(vec![Reply::Nil; arguments.len() - 2]));
    };
    let values = arguments[2..].iter().map(|name| {
        let field = hash.get(keyspace, name)?;
        Ok(Reply::bulk_or_nil(field.map(|field| field.value)))
    });
    values.collect::<Result<_>>().map(Reply::Array)
}

/// `HEXISTS key field`
pub(super) fn hexists(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let field = find(keyspace, &arguments[1], &arguments[2])?;
    Ok(Reply::flag(field.is_some()))
}

/// `HSTRLEN key field`
pub(super) fn hstrlen(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let field = find(keyspace, &arguments[1], &arguments[2])?;
    Ok(Reply::count(field.map_or(0, |field| field.value.len())))
}

/// `HLEN key`
pub(super) fn hlen(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let len = match Hash::find(keyspace, &arguments[1])? {
        Some(hash) => hash.len(keyspace)?,
        None => 0,
    };
    Ok(Reply::count(len as usize))
}

/// `HGETALL key`
pub(super) fn hgetall(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let pair = |name, field: HashField| (Reply::Bulk(name), Reply::Bulk(field.value));
    all(keyspace, &arguments[1], pair).map(Reply::Map)
}

/// `HKEYS key`
pub(super) fn hkeys(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    all(keyspace, &arguments[1], |name, _| Reply::Bulk(name)).map(Reply::Array)
}

/// `HVALS key`
pub(super) fn hvals(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let value = |_, field: HashField| Reply::Bulk(field.value);
    all(keyspace, &arguments[1], value).map(Reply::Array)
}

/// Something of every field.
fn all<T: Weighed>(
    keyspace: &Keyspace<'_>,
    key: &Bytes,
    take: impl Fn(Bytes, HashField) -> T,
) -> Result<Vec<T>> {
    let Some(hash) = Hash::find(keyspace, key)? else {
        return Ok(Vec::new());
    };
    let fields = hash.all(keyspace);
    keyspace.collect_counted(fields.map(|field| field.map(|(name, field)| take(name, field))))
}
