//! `SORT`: the elements of a list, a set or a sorted set, in an order of the client's choice.

mod options;
mod order;
mod pattern;
mod source;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use trefoil_core::Direction;

use self::options::{SortBy, SortOptions};
use self::source::SortSource;
use super::CommandAccess::{Read, Write};
use super::arguments::check_name;
use super::list::{End, ListRow};
use super::{CommandSpec, Keys};
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("sort", -2, Write, Keys::ONE, sort),
    CommandSpec::new("sort_ro", -2, Read, Keys::ONE, sort_ro),
];

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]
/// [STORE destination]`
fn sort(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let options = SortOptions::parse(&arguments[2..], true)?;
    let elements = elements(keyspace, &arguments[1], &options)?;
    let Some(destination) = &options.store else {
        return reply(keyspace, &options, elements);
    };
    check_name(destination)?;
    let mut row = ListRow::new(keyspace);
    let mut values = Vec::with_capacity(elements.len());
    for element in elements {
        let found = options.values(keyspace, element)?;
        values.extend(found.into_iter().map(Option::unwrap_or_default));
    }
    row.push(keyspace, End::Right, &values)?;
    row.save(keyspace, destination)?;
    Ok(Reply::count(row.len() as usize))
}

/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]`
fn sort_ro(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let options = SortOptions::parse(&arguments[2..], false)?;
    let elements = elements(keyspace, &arguments[1], &options)?;
    reply(keyspace, &options, elements)
}

fn reply(keyspace: &Keyspace<'_>, options: &SortOptions, elements: Vec<Bytes>) -> Result<Reply> {
    let mut replies = Vec::with_capacity(elements.len());
    for element in elements {
        let values = options.values(keyspace, element)?;
        replies.extend(values.into_iter().map(Reply::bulk_or_nil));
    }
    Ok(Reply::Array(replies))
}

/// Returns the elements that are asked for, in order.
fn elements(keyspace: &Keyspace<'_>, key: &[u8], options: &SortOptions) -> Result<Vec<Bytes>> {
    let Some(source) = SortSource::find(keyspace, key)? else {
        return Ok(Vec::new());
    };
    let range = options.range(source.len());
    let is_unordered = matches!(source, SortSource::Set { .. });
    let (by, is_alpha) = match &options.by {
        // What is stored must not depend on where the members of a set happen to lie.
        SortBy::Nothing if is_unordered && options.store.is_some() => (&SortBy::Element, true),
        SortBy::Nothing => return source.elements(keyspace, range, options.direction()),
        by => (by, options.is_alpha),
    };
    let all = source.elements(keyspace, 0..source.len(), Direction::Forwards)?;
    let mut sorted = order::sort(keyspace, all, by, is_alpha, options.is_descending)?;
    sorted.truncate(range.end as usize);
    Ok(sorted.split_off(range.start as usize))
}
