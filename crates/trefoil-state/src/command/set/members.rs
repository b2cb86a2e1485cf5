//! Adding, removing, moving and finding members.

use bytes::Bytes;

use super::change::SetChange;
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::meta::ValueKind;
use crate::reply::Reply;

/// `SADD key member [member …]`
pub(super) fn sadd(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let mut change = SetChange::existing_or_new(keyspace, &arguments[1])?;
    let mut n_new = 0;
    for member in &arguments[2..] {
        n_new += i64::from(change.add(member)?);
    }
    change.save()?;
    Ok(Reply::Integer(n_new))
}

/// `SREM key member [member …]`
pub(super) fn srem(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(mut change) = SetChange::existing(keyspace, &arguments[1])? else {
        return Ok(Reply::Integer(0));
    };
    let mut n_removed = 0;
    for member in &arguments[2..] {
        n_removed += i64::from(change.remove(member)?);
    }
    change.save()?;
    Ok(Reply::Integer(n_removed))
}

/// `SMOVE source destination member`
pub(super) fn smove(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (source, destination, member) = (&arguments[1], &arguments[2], &arguments[3]);
    let Some(found) = keyspace.collection(source, ValueKind::Set)? else {
        return Ok(Reply::Integer(0));
    };
    keyspace.collection(destination, ValueKind::Set)?;
    let is_there = keyspace.named(found.collection.id, member)?.is_some();
    if !is_there || source == destination {
        return Ok(Reply::flag(is_there));
    }
    if let Some(mut change) = SetChange::existing(keyspace, source)? {
        change.remove(member)?;
        change.save()?;
    }
    let mut change = SetChange::existing_or_new(keyspace, destination)?;
    change.add(member)?;
    change.save()?;
    Ok(Reply::Integer(1))
}

/// `SISMEMBER key member`
pub(super) fn sismember(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(found) = keyspace.collection(&arguments[1], ValueKind::Set)? else {
        return Ok(Reply::Integer(0));
    };
    let member = keyspace.named(found.collection.id, &arguments[2])?;
    Ok(Reply::flag(member.is_some()))
}

/// `SMISMEMBER key member [member …]`
pub(super) fn smismember(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let members = &arguments[2..];
    let Some(found) = keyspace.collection(&arguments[1], ValueKind::Set)? else {
        return Ok(Reply::Array(vec![Reply::Integer(0); members.len()]));
    };
    let flags = members.iter().map(|member| {
        let member = keyspace.named(found.collection.id, member)?;
        Ok(Reply::flag(member.is_some()))
    });
    flags.collect::<Result<_>>().map(Reply::Array)
}

/// `SCARD key`
pub(super) fn scard(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let found = keyspace.collection(&arguments[1], ValueKind::Set)?;
    let len = found.map_or(0, |found| found.collection.len);
    Ok(Reply::count(len as usize))
}

/// `SMEMBERS key`
pub(super) fn smembers(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(found) = keyspace.collection(&arguments[1], ValueKind::Set)? else {
        return Ok(Reply::Set(Vec::new()));
    };
    let members = keyspace.all_named(found.collection.id);
    let replies = members.map(|member| member.map(|(name, _)| Reply::Bulk(name)));
    keyspace.collect_counted(replies).map(Reply::Set)
}
