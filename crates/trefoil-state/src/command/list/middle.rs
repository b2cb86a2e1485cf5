//! What changes the middle of lists: setting, inserting, removing, trimming.

use bytes::Bytes;
use trefoil_core::Direction;

use super::row::{End, ListRow};
use crate::command::arguments::{index_range, integer, is_word};
use crate::error::{NO_SUCH_KEY, OUT_OF_RANGE, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `LSET key index element`
pub(super) fn lset(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let row = ListRow::find_to_change(keyspace, &arguments[1])?;
    let mut row = row.ok_or(NO_SUCH_KEY)?;
    let index = row.index(integer(&arguments[2])?).ok_or(OUT_OF_RANGE)?;
    row.set(keyspace, index, arguments[3].clone())?;
    row.save(keyspace, &arguments[1])?;
    Ok(Reply::OK)
}

/// `LINSERT key BEFORE | AFTER pivot element`
pub(super) fn linsert(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let offset = if is_word(&arguments[2], "AFTER") {
        1
    } else if is_word(&arguments[2], "BEFORE") {
        0
    } else {
        return Err(SYNTAX);
    };
    let Some(mut row) = ListRow::find_to_change(keyspace, &arguments[1])? else {
        return Ok(Reply::Integer(0));
    };
    let [pivot] = find(keyspace, &row, &arguments[3], 1)?[..] else {
        return Ok(Reply::Integer(-1));
    };
    row.insert(keyspace, pivot + offset, &arguments[4])?;
    row.save(keyspace, &arguments[1])?;
    Ok(Reply::count(row.len() as usize))
}

/// `LREM key count element`
pub(super) fn lrem(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let count = integer(&arguments[2])?;
    let Some(mut row) = ListRow::find_to_change(keyspace, &arguments[1])? else {
        return Ok(Reply::Integer(0));
    };
    let indexes = find(keyspace, &row, &arguments[3], count)?;
    if !indexes.is_empty() {
        row.remove(keyspace, &indexes)?;
        row.save(keyspace, &arguments[1])?;
    }
    Ok(Reply::count(indexes.len()))
}

/// Returns the indexes of an element, ascending: this many from the left, from the right if the
/// number is negative, or all if it is 0.
fn find(keyspace: &Keyspace<'_>, row: &ListRow, element: &Bytes, count: i64) -> Result<Vec<u64>> {
    let direction = match count >= 0 {
        true => Direction::Forwards,
        false => Direction::Backwards,
    };
    let n_max = match usize::try_from(count.unsigned_abs()) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(n_max) => n_max,
    };
    let mut indexes = Vec::new();
    let elements = row.elements(keyspace, 0..row.len(), direction);
    for (passed, other) in (0..row.len()).zip(elements) {
        if other? == element {
            indexes.push(match direction {
                Direction::Forwards => passed,
                Direction::Backwards => row.len() - 1 - passed,
            });
            if indexes.len() == n_max {
                break;
            }
        }
    }
    if direction == Direction::Backwards {
        indexes.reverse();
    }
    Ok(indexes)
}

/// `LTRIM key start stop`
pub(super) fn ltrim(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let start = integer(&arguments[2])?;
    let stop = integer(&arguments[3])?;
    let Some(mut row) = ListRow::find_to_change(keyspace, &arguments[1])? else {
        return Ok(Reply::OK);
    };
    let kept = index_range(start, stop, row.len());
    if kept.is_empty() {
        keyspace.delete(&arguments[1])?;
        return Ok(Reply::OK);
    }
    row.drop(keyspace, End::Right, row.len() - kept.end)?;
    row.drop(keyspace, End::Left, kept.start)?;
    row.save(keyspace, &arguments[1])?;
    Ok(Reply::OK)
}
