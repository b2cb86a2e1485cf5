//! What happens at the ends of lists: pushing, popping, moving from one to another.

use bytes::Bytes;
use trefoil_core::Direction;

use super::row::{End, ListRow};
use crate::command::arguments::{check_name, count, is_word, multi_pop, wrong_arity};
use crate::error::{Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `LPUSH key element [element …]`
pub(super) fn lpush(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    check_name(&arguments[1])?;
    let row = ListRow::find_or_new(keyspace, &arguments[1])?;
    push(keyspace, arguments, row, End::Left)
}

/// `RPUSH key element [element …]`
pub(super) fn rpush(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    check_name(&arguments[1])?;
    let row = ListRow::find_or_new(keyspace, &arguments[1])?;
    push(keyspace, arguments, row, End::Right)
}

/// `LPUSHX key element [element …]`
pub(super) fn lpushx(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    match ListRow::find_to_change(keyspace, &arguments[1])? {
        Some(row) => push(keyspace, arguments, row, End::Left),
        None => Ok(Reply::Integer(0)),
    }
}

/// `RPUSHX key element [element …]`
pub(super) fn rpushx(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    match ListRow::find_to_change(keyspace, &arguments[1])? {
        Some(row) => push(keyspace, arguments, row, End::Right),
        None => Ok(Reply::Integer(0)),
    }
}

fn push(
    keyspace: &mut Keyspace<'_>,
    arguments: &[Bytes],
    mut row: ListRow,
    end: End,
) -> Result<Reply> {
    row.push(keyspace, end, &arguments[2..])?;
    row.save(keyspace, &arguments[1])?;
    Ok(Reply::count(row.len() as usize))
}

/// `LPOP key [count]`
pub(super) fn lpop(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    pop(keyspace, arguments, End::Left, "lpop")
}

/// `RPOP key [count]`
pub(super) fn rpop(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    pop(keyspace, arguments, End::Right, "rpop")
}

fn pop(keyspace: &mut Keyspace<'_>, arguments: &[Bytes], end: End, command: &str) -> Result<Reply> {
    let n_max = match &arguments[2..] {
        [] => None,
        [n_max] => Some(count(n_max)?),
        _ => return Err(wrong_arity(command)),
    };
    let Some(row) = ListRow::find_to_change(keyspace, &arguments[1])? else {
        return Ok(n_max.map_or(Reply::Nil, |_| Reply::NilArray));
    };
    let mut popped = take(keyspace, &arguments[1], row, end, n_max.unwrap_or(1))?;
    Ok(match n_max {
        Some(_) => Reply::Array(popped),
        None => popped.pop().unwrap_or(Reply::Nil),
    })
}

/// Removes at most this many elements at one end, and returns them from there on.
fn take(
    keyspace: &mut Keyspace<'_>,
    key: &Bytes,
    mut row: ListRow,
    end: End,
    n_max: usize,
) -> Result<Vec<Reply>> {
    let n_taken = row.len().min(n_max as u64);
    let (range, direction) = match end {
        End::Left => (0..n_taken, Direction::Forwards),
        End::Right => (row.len() - n_taken..row.len(), Direction::Backwards),
    };
    let elements = row.elements(keyspace, range, direction);
    let elements = elements.map(|element| element.map(Reply::Bulk));
    let elements = elements.collect::<Result<Vec<Reply>>>()?;
    if n_taken > 0 {
        row.drop(keyspace, end, n_taken)?;
        row.save(keyspace, key)?;
    }
    Ok(elements)
}

/// `LMPOP numkeys key [key …] LEFT | RIGHT [COUNT count]`
pub(super) fn lmpop(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (keys, end, n_max) = multi_pop(&arguments[1..], parse_end)?;
    for key in keys {
        if let Some(row) = ListRow::find_to_change(keyspace, key)? {
            let popped = take(keyspace, key, row, end, n_max)?;
            let key = Reply::Bulk(key.clone());
            return Ok(Reply::Array(vec![key, Reply::Array(popped)]));
        }
    }
    Ok(Reply::NilArray)
}

/// `LMOVE source destination LEFT | RIGHT LEFT | RIGHT`
pub(super) fn lmove(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let from = parse_end(&arguments[3])?;
    let to = parse_end(&arguments[4])?;
    move_element(keyspace, (&arguments[1], from), (&arguments[2], to))
}

/// `RPOPLPUSH source destination`
pub(super) fn rpoplpush(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let from = (&arguments[1], End::Right);
    move_element(keyspace, from, (&arguments[2], End::Left))
}

fn move_element(
    keyspace: &mut Keyspace<'_>,
    (source, from): (&Bytes, End),
    (destination, to): (&Bytes, End),
) -> Result<Reply> {
    let Some(mut row) = ListRow::find_to_change(keyspace, source)? else {
        return Ok(Reply::Nil);
    };
    check_name(destination)?;
    let index = match from {
        End::Left => 0,
        End::Right => row.len().saturating_sub(1),
    };
    let element = row.get(keyspace, index)?;
    if source == destination {
        // A list of one element stays as it is, and never is without elements in between.
        if row.len() > 1 && from != to {
            row.drop(keyspace, from, 1)?;
            row.push(keyspace, to, std::slice::from_ref(&element))?;
        }
        row.save(keyspace, source)?;
        return Ok(Reply::Bulk(element));
    }
    let mut other = ListRow::find_or_new(keyspace, destination)?;
    row.drop(keyspace, from, 1)?;
    row.save(keyspace, source)?;
    other.push(keyspace, to, std::slice::from_ref(&element))?;
    other.save(keyspace, destination)?;
    Ok(Reply::Bulk(element))
}

fn parse_end(word: &[u8]) -> Result<End> {
    if is_word(word, "LEFT") {
        Ok(End::Left)
    } else if is_word(word, "RIGHT") {
        Ok(End::Right)
    } else {
        Err(SYNTAX)
    }
}
