//! What is in all, in any, or in only the first of many sets.

use std::collections::HashSet;

use bytes::Bytes;

use super::change::SetChange;
use crate::command::arguments::ArgumentReader;
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::meta::{Collection, ValueKind};
use crate::meter::Weighed as _;
use crate::number::parse_integer;
use crate::reply::Reply;

/// `SINTER key [key …]`
pub(super) fn sinter(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let members = intersection(keyspace, &arguments[1..])?;
    Ok(answer(keyspace.collect_counted(members)?))
}

/// `SUNION key [key …]`
pub(super) fn sunion(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    Ok(answer(union(keyspace, &arguments[1..])?))
}

/// `SDIFF key [key …]`
pub(super) fn sdiff(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let members = difference(keyspace, &arguments[1..])?;
    Ok(answer(keyspace.collect_counted(members)?))
}

fn answer(members: impl IntoIterator<Item = Bytes>) -> Reply {
    Reply::Set(members.into_iter().map(Reply::Bulk).collect())
}

/// `SINTERSTORE destination key [key …]`
pub(super) fn sinterstore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let members = intersection(keyspace, &arguments[2..])?.collect::<Result<Vec<_>>>()?;
    store(keyspace, &arguments[1], members)
}

/// `SUNIONSTORE destination key [key …]`
pub(super) fn sunionstore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let members = union(keyspace, &arguments[2..])?;
    store(keyspace, &arguments[1], members)
}

/// `SDIFFSTORE destination key [key …]`
pub(super) fn sdiffstore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let members = difference(keyspace, &arguments[2..])?.collect::<Result<Vec<_>>>()?;
    store(keyspace, &arguments[1], members)
}

/// Replaces whatever is under a key by a set.
fn store(
    keyspace: &mut Keyspace<'_>,
    key: &Bytes,
    members: impl IntoIterator<Item = Bytes>,
) -> Result<Reply> {
    let mut change = SetChange::new(keyspace, key)?;
    for member in members {
        change.add(&member)?;
    }
    let len = change.len();
    change.save()?;
    Ok(Reply::count(len as usize))
}

/// `SINTERCARD numkeys key [key …] [LIMIT limit]`
pub(super) fn sintercard(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let n_keys = parse_integer(&arguments[1]).filter(|n_keys| *n_keys > 0);
    let n_keys = n_keys.ok_or(CommandError::refused(
        "ERR numkeys should be greater than 0",
    ))?;
    let n_keys = usize::try_from(n_keys).unwrap_or(usize::MAX);
    let (keys, rest) = arguments[2..]
        .split_at_checked(n_keys)
        .ok_or(CommandError::refused(
            "ERR Number of keys can't be greater than number of args",
        ))?;
    let mut rest = ArgumentReader::new(rest);
    let mut limit = 0;
    while !rest.is_empty() {
        if !rest.take("LIMIT") {
            return Err(SYNTAX);
        }
        let number = parse_integer(rest.word().ok_or(SYNTAX)?);
        let number = number.and_then(|number| usize::try_from(number).ok());
        limit = number.ok_or(CommandError::refused("ERR LIMIT can't be negative"))?;
    }
    let limit = if limit == 0 { usize::MAX } else { limit };
    let mut members = intersection(keyspace, keys)?.take(limit);
    let count = members.try_fold(0, |count, member| member.map(|_| count + 1))?;
    Ok(Reply::Integer(count))
}

/// Returns the sets under keys.
fn find(keyspace: &Keyspace<'_>, keys: &[Bytes]) -> Result<Vec<Option<Collection>>> {
    let find = |key: &Bytes| {
        let found = keyspace.collection(key, ValueKind::Set)?;
        Ok(found.map(|found| found.collection))
    };
    keys.iter().map(find).collect()
}

fn members<'s>(
    keyspace: &'s Keyspace<'_>,
    set: Collection,
) -> impl Iterator<Item = Result<Bytes>> + 's {
    let members = keyspace.all_named(set.id);
    members.map(|member| member.map(|(name, _)| name))
}

/// Returns the members that are in all sets: those of the smallest that are in the others.
fn intersection<'s>(
    keyspace: &'s Keyspace<'_>,
    keys: &[Bytes],
) -> Result<impl Iterator<Item = Result<Bytes>> + 's> {
    let sets: Option<Vec<_>> = find(keyspace, keys)?.into_iter().collect();
    let mut sets = sets.unwrap_or_default();
    sets.sort_by_key(|set| set.len);
    let mut others = sets.into_iter();
    let smallest = others.next();
    Ok(select(keyspace, smallest, others.collect(), true))
}

/// Returns the members of the first set that are in no other.
fn difference<'s>(
    keyspace: &'s Keyspace<'_>,
    keys: &[Bytes],
) -> Result<impl Iterator<Item = Result<Bytes>> + 's> {
    let mut others = find(keyspace, keys)?.into_iter();
    let first = others.next().flatten();
    Ok(select(keyspace, first, others.flatten().collect(), false))
}

/// Returns the members of a set that are in each of the others, or in none.
fn select<'s>(
    keyspace: &'s Keyspace<'_>,
    set: Option<Collection>,
    others: Vec<Collection>,
    in_others: bool,
) -> impl Iterator<Item = Result<Bytes>> + 's {
    let members = set.into_iter().flat_map(|set| members(keyspace, set));
    let select = move |member: Result<Bytes>| {
        let member = member?;
        for other in &others {
            if keyspace.named(other.id, &member)?.is_some() != in_others {
                return Ok(None);
            }
        }
        Ok(Some(member))
    };
    members.filter_map(move |member| select(member).transpose())
}

/// Returns the members that are in any of the sets.
fn union(keyspace: &Keyspace<'_>, keys: &[Bytes]) -> Result<HashSet<Bytes>> {
    let sets = find(keyspace, keys)?;
    let sets = sets.into_iter().flatten();
    let mut all = HashSet::new();
    for member in sets.flat_map(|set| members(keyspace, set)) {
        let member = member?;
        let weight = member.weight();
        if all.insert(member) {
            keyspace.hold(weight)?;
        }
    }
    Ok(all)
}
