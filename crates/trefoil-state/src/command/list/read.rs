//! What is read of lists: how long they are, elements at indexes, indexes of elements.

use bytes::Bytes;
use trefoil_core::Direction;

use super::row::ListRow;
use crate::command::arguments::{ArgumentReader, index_range, integer, integer_from, is_word};
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `LLEN key`
pub(super) fn llen(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let row = ListRow::find(keyspace, &arguments[1])?;
    Ok(Reply::count(row.map_or(0, |row| row.len() as usize)))
}

/// `LINDEX key index`
pub(super) fn lindex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(row) = ListRow::find(keyspace, &arguments[1])? else {
        return Ok(Reply::Nil);
    };
    match row.index(integer(&arguments[2])?) {
        Some(index) => Ok(Reply::Bulk(row.get(keyspace, index)?)),
        None => Ok(Reply::Nil),
    }
}

/// `LRANGE key start stop`
pub(super) fn lrange(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let start = integer(&arguments[2])?;
    let stop = integer(&arguments[3])?;
    let Some(row) = ListRow::find(keyspace, &arguments[1])? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let range = index_range(start, stop, row.len());
    let elements = row.elements(keyspace, range, Direction::Forwards);
    let elements = elements.map(|element| element.map(Reply::Bulk));
    Ok(Reply::Array(keyspace.collect_counted(elements)?))
}

/// Which indexes of an element are asked for.
#[derive(Debug)]
struct PositionSearch {
    direction: Direction,
    /// How many of the element are passed over.
    n_skipped: u64,
    /// How many indexes are returned at most, 0 for all; `None` if one is, and not in a list.
    n_found_max: Option<usize>,
    /// How many elements are looked at, at most; 0 for all.
    n_read_max: usize,
}

impl PositionSearch {
    /// `[RANK rank] [COUNT n_matches] [MAXLEN len]`
    fn parse(arguments: &[Bytes]) -> Result<Self> {
        let mut search = Self {
            direction: Direction::Forwards,
            n_skipped: 0,
            n_found_max: None,
            n_read_max: 0,
        };
        let mut rest = ArgumentReader::new(arguments);
        while let Some(word) = rest.word() {
            let value = rest.word().ok_or(SYNTAX)?;
            if is_word(word, "RANK") {
                search.set_rank(integer(value)?)?;
            } else if is_word(word, "COUNT") {
                let count = integer_from(0, value, "ERR COUNT can't be negative")?;
                search.n_found_max = Some(count);
            } else if is_word(word, "MAXLEN") {
                search.n_read_max = integer_from(0, value, "ERR MAXLEN can't be negative")?;
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(search)
    }

    fn set_rank(&mut self, rank: i64) -> Result<()> {
        let n_skipped = rank.unsigned_abs().checked_sub(1);
        self.n_skipped = n_skipped.ok_or(CommandError::refused(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
             or use negative to start from the end of the list",
        ))?;
        self.direction = match rank > 0 {
            true => Direction::Forwards,
            false => Direction::Backwards,
        };
        Ok(())
    }

    fn run(&self, keyspace: &Keyspace<'_>, row: &ListRow, element: &Bytes) -> Result<Vec<Reply>> {
        let or_all = |n: usize| if n == 0 { usize::MAX } else { n };
        let n_found_max = or_all(self.n_found_max.unwrap_or(1));
        let mut n_skipped = self.n_skipped;
        let mut found = Vec::new();
        let elements = row.elements(keyspace, 0..row.len(), self.direction);
        let elements = elements.take(or_all(self.n_read_max));
        for (passed, other) in (0..row.len()).zip(elements) {
            if other? != element {
                continue;
            }
            if n_skipped > 0 {
                n_skipped -= 1;
                continue;
            }
            let index = match self.direction {
                Direction::Forwards => passed,
                Direction::Backwards => row.len() - 1 - passed,
            };
            found.push(Reply::count(index as usize));
            if found.len() == n_found_max {
                break;
            }
        }
        Ok(found)
    }
}

/// `LPOS key element [RANK rank] [COUNT n_matches] [MAXLEN len]`
pub(super) fn lpos(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let search = PositionSearch::parse(&arguments[3..])?;
    let mut found = match ListRow::find(keyspace, &arguments[1])? {
        Some(row) => search.run(keyspace, &row, &arguments[2])?,
        None => Vec::new(),
    };
    Ok(match search.n_found_max {
        Some(_) => Reply::Array(found),
        None => found.pop().unwrap_or(Reply::Nil),
    })
}
