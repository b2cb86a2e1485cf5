//! All fields, step by step or at random.

use bytes::Bytes;

use super::field::HashField;
use super::fields::Hash;
use crate::command::arguments::is_word;
use crate::command::sample::{SampleChoice, at_indexes};
use crate::command::scan::{self, ScanOptions, parse_cursor};
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`
pub(super) fn hscan(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    parse_cursor(&arguments[2])?;
    let Some(hash) = Hash::find(keyspace, &arguments[1])? else {
        return Ok(scan::reply(None, Vec::new()));
    };
    let options = ScanOptions::parse(&arguments[2..], "NOVALUES")?;
    let part = hash.part(keyspace, options.cursor, options.count)?;
    let mut replies = Vec::new();
    for (name, field) in part.found {
        if options.selects(&name) {
            replies.push(Reply::Bulk(name));
            if !options.without_values {
                replies.push(Reply::Bulk(field.value));
            }
        }
    }
    Ok(scan::reply(part.next, replies))
}

/// `HRANDFIELD key [count [WITHVALUES]]`
pub(super) fn hrandfield(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(count) = arguments.get(2) else {
        let found = sample(keyspace, &arguments[1], SampleChoice::ONE)?;
        let name = found.into_iter().next().map(|(name, _)| name);
        return Ok(Reply::bulk_or_nil(name));
    };
    let choice = SampleChoice::parse(count)?;
    let with_values = match &arguments[3..] {
        [] => false,
        [word] if is_word(word, "WITHVALUES") => true,
        _ => return Err(SYNTAX),
    };
    if with_values && choice.count > i64::MAX as u64 / 2 {
        return Err(CommandError::refused("ERR value is out of range"));
    }
    let found = sample(keyspace, &arguments[1], choice)?.into_iter();
    if !with_values {
        return Ok(Reply::Array(
            found.map(|(name, _)| Reply::Bulk(name)).collect(),
        ));
    }
    let pair = |(name, field): (Bytes, HashField)| (Reply::Bulk(name), Reply::Bulk(field.value));
    Ok(Reply::Pairs(found.map(pair).collect()))
}

/// Chooses among the fields of a hash.
fn sample(
    keyspace: &mut Keyspace<'_>,
    key: &Bytes,
    choice: SampleChoice,
) -> Result<Vec<(Bytes, HashField)>> {
    let Some(hash) = Hash::find(keyspace, key)? else {
        return Ok(Vec::new());
    };
    let len = hash.len(keyspace)?;
    let id = match &hash {
        Hash::Large(collection) if collection.len == len => collection.id,
        // It is small, or some have expired and are still among the others.
        _ => return walk(keyspace, &hash, len, choice),
    };
    let found = keyspace.sample(id, len, choice)?;
    let fields = found.into_iter();
    fields
        .map(|(name, stored)| Ok((name, HashField::decode(stored)?)))
        .collect()
}

/// Chooses among the fields of a hash by walking over all of them.
fn walk(
    keyspace: &mut Keyspace<'_>,
    hash: &Hash,
    len: u64,
    choice: SampleChoice,
) -> Result<Vec<(Bytes, HashField)>> {
    let indexes = choice.indexes(keyspace, len)?;
    let mut found = at_indexes(hash.all(keyspace), &indexes)?;
    if choice.may_repeat {
        keyspace.shuffle(&mut found);
    }
    Ok(found)
}
