//! Members at random, or step by step.

use bytes::Bytes;

use super::change::SetChange;
use crate::command::sample::SampleChoice;
use crate::command::scan::{self, ScanOptions, parse_cursor};
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::meta::ValueKind;
use crate::number::parse_integer;
use crate::reply::Reply;

/// Returns the only argument after the key, if there is one.
fn count(arguments: &[Bytes]) -> Result<Option<&Bytes>> {
    match &arguments[2..] {
        [] => Ok(None),
        [count] => Ok(Some(count)),
        _ => Err(SYNTAX),
    }
}

/// `SRANDMEMBER key [count]`
pub(super) fn srandmember(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(count) = count(arguments)? else {
        let member = sample(keyspace, &arguments[1], SampleChoice::ONE)?.pop();
        return Ok(Reply::bulk_or_nil(member));
    };
    let members = sample(keyspace, &arguments[1], SampleChoice::parse(count)?)?;
    Ok(Reply::Array(bulks(members)))
}

/// `SPOP key [count]`
pub(super) fn spop(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let key = &arguments[1];
    let Some(count) = count(arguments)? else {
        let members = sample(keyspace, key, SampleChoice::ONE)?;
        remove(keyspace, key, &members)?;
        return Ok(Reply::bulk_or_nil(members.into_iter().next()));
    };
    let count = parse_integer(count).and_then(|count| u64::try_from(count).ok());
    let count = count.ok_or(CommandError::refused(
        "ERR value is out of range, must be positive",
    ))?;
    let members = sample(keyspace, key, SampleChoice::of(count))?;
    remove(keyspace, key, &members)?;
    Ok(Reply::Set(bulks(members)))
}

fn bulks(members: Vec<Bytes>) -> Vec<Reply> {
    members.into_iter().map(Reply::Bulk).collect()
}

/// Chooses among the members of a set.
fn sample(keyspace: &mut Keyspace<'_>, key: &Bytes, choice: SampleChoice) -> Result<Vec<Bytes>> {
    let Some(found) = keyspace.collection(key, ValueKind::Set)? else {
        return Ok(Vec::new());
    };
    let found = keyspace.sample(found.collection.id, found.collection.len, choice)?;
    Ok(found.into_iter().map(|(member, _)| member).collect())
}

/// Removes members that are there; if they are all, in one step.
fn remove(keyspace: &mut Keyspace<'_>, key: &Bytes, members: &[Bytes]) -> Result<()> {
    let found = keyspace.collection(key, ValueKind::Set)?;
    if found.is_some_and(|found| found.collection.len == members.len() as u64) {
        return keyspace.delete(key).map(drop);
    }
    let Some(mut change) = SetChange::existing(keyspace, key)? else {
        return Ok(());
    };
    for member in members {
        change.remove(member)?;
    }
    change.save()
}

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`
pub(super) fn sscan(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    parse_cursor(&arguments[2])?;
    let Some(found) = keyspace.collection(&arguments[1], ValueKind::Set)? else {
        return Ok(scan::reply(None, Vec::new()));
    };
    let options = ScanOptions::parse(&arguments[2..], "")?;
    let part = keyspace.scan_named(found.collection.id, options.cursor, options.count)?;
    let members = part.found.into_iter().map(|(member, _)| member);
    let selected = members.filter(|member| options.selects(member));
    Ok(scan::reply(part.next, selected.map(Reply::Bulk).collect()))
}
