//! `ZRANGE` and its kin: members of a range, in order.

use bytes::Bytes;
use trefoil_core::Direction;

use super::bounds::{Bounds, RangeBy};
use super::scored_reply;
use super::scores::{Scored, Scores};
use crate::command::arguments::{ArgumentReader, check_name, integer, is_word};
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// What is to be returned of a sorted set.
#[derive(Debug)]
struct RangeQuery {
    bounds: Bounds,
    direction: Direction,
    /// How many members to skip, and how many to return at most; all, if negative.
    limit: (i64, i64),
    with_scores: bool,
}

/// What of a query the name of the command says already.
#[derive(Debug, Default)]
struct RangeCommand {
    by: Option<RangeBy>,
    direction: Option<Direction>,
    is_stored: bool,
}

impl RangeQuery {
    /// `min max [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`, where each option is
    /// one only if the name of the command leaves it open, and but once.
    fn parse(arguments: &[Bytes], given: &RangeCommand) -> Result<Self> {
        let (mut by, mut direction) = (given.by, given.direction);
        let mut limit = (0, -1);
        let mut with_scores = false;
        let mut rest = ArgumentReader::new(&arguments[2..]);
        while let Some(word) = rest.word() {
            if !given.is_stored && is_word(word, "WITHSCORES") {
                with_scores = true;
            } else if is_word(word, "LIMIT") && rest.all().len() >= 2 {
                limit = (integer(&rest.all()[0])?, integer(&rest.all()[1])?);
                rest = ArgumentReader::new(&rest.all()[2..]);
            } else if direction.is_none() && is_word(word, "REV") {
                direction = Some(Direction::Backwards);
            } else if by.is_none() && is_word(word, "BYLEX") {
                by = Some(RangeBy::Name);
            } else if by.is_none() && is_word(word, "BYSCORE") {
                by = Some(RangeBy::Score);
            } else {
                return Err(SYNTAX);
            }
        }
        let by = by.unwrap_or(RangeBy::Rank);
        let direction = direction.unwrap_or(Direction::Forwards);
        if limit.1 != -1 && by == RangeBy::Rank {
            return Err(CommandError::refused(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && by == RangeBy::Name {
            return Err(CommandError::refused(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        // A range that is walked backwards begins with its upper end; ranks count from there.
        let (min, max) = match (direction, by) {
            (Direction::Backwards, RangeBy::Score | RangeBy::Name) => {
                (&arguments[1], &arguments[0])
            }
            _ => (&arguments[0], &arguments[1]),
        };
        Ok(Self {
            bounds: Bounds::parse(by, min, max)?,
            direction,
            limit,
            with_scores,
        })
    }

    fn run(&self, keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Vec<Scored>> {
        let Some(scores) = Scores::find(keyspace, key)? else {
            return Ok(Vec::new());
        };
        let skipped = u64::try_from(self.limit.0).unwrap_or(u64::MAX);
        let n_max = u64::try_from(self.limit.1).unwrap_or(u64::MAX);
        let bounds = &self.bounds;
        let ranks = bounds.ranks(keyspace, &scores, self.direction, (skipped, n_max))?;
        keyspace.collect_counted(scores.members(keyspace, ranks, self.direction))
    }
}

fn read(keyspace: &Keyspace<'_>, arguments: &[Bytes], given: &RangeCommand) -> Result<Reply> {
    let query = RangeQuery::parse(&arguments[2..], given)?;
    let members = query.run(keyspace, &arguments[1])?;
    Ok(scored_reply(members, query.with_scores))
}

/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
pub(super) fn zrange(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    read(keyspace, arguments, &RangeCommand::default())
}

/// `ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`
pub(super) fn zrangestore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let given = RangeCommand {
        is_stored: true,
        ..RangeCommand::default()
    };
    let query = RangeQuery::parse(&arguments[3..], &given)?;
    let members = query.run(keyspace, &arguments[2])?;
    check_name(&arguments[1])?;
    let n_members = Scores::replace(keyspace, &arguments[1], &members)?;
    Ok(Reply::count(n_members))
}

/// `ZREVRANGE key start stop [WITHSCORES]`
pub(super) fn zrevrange(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    read_by(keyspace, arguments, RangeBy::Rank, Direction::Backwards)
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
pub(super) fn zrangebyscore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    read_by(keyspace, arguments, RangeBy::Score, Direction::Forwards)
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`
pub(super) fn zrevrangebyscore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    read_by(keyspace, arguments, RangeBy::Score, Direction::Backwards)
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`
pub(super) fn zrangebylex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    read_by(keyspace, arguments, RangeBy::Name, Direction::Forwards)
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`
pub(super) fn zrevrangebylex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    read_by(keyspace, arguments, RangeBy::Name, Direction::Backwards)
}

fn read_by(
    keyspace: &Keyspace<'_>,
    arguments: &[Bytes],
    by: RangeBy,
    direction: Direction,
) -> Result<Reply> {
    let given = RangeCommand {
        by: Some(by),
        direction: Some(direction),
        is_stored: false,
    };
    read(keyspace, arguments, &given)
}
