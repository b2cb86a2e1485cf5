//! `ZREM` and its kin: removing members.

use bytes::Bytes;
use trefoil_core::Direction;

use super::bounds::{Bounds, RangeBy};
use super::scores::Scores;
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `ZREM key member [member …]`
pub(super) fn zrem(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let key = &arguments[1];
    let Some(mut scores) = Scores::find_to_change(keyspace, key)? else {
        return Ok(Reply::Integer(0));
    };
    let mut n_removed = 0;
    for member in &arguments[2..] {
        if let Some(score) = scores.score(keyspace, member)? {
            scores.remove(keyspace, member, score)?;
            n_removed += 1;
        }
    }
    if n_removed > 0 {
        scores.save(keyspace, key)?;
    }
    Ok(Reply::count(n_removed))
}

/// `ZREMRANGEBYRANK key start stop`
pub(super) fn zremrangebyrank(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    remove_range(keyspace, arguments, RangeBy::Rank)
}

/// `ZREMRANGEBYSCORE key min max`
pub(super) fn zremrangebyscore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    remove_range(keyspace, arguments, RangeBy::Score)
}

/// `ZREMRANGEBYLEX key min max`
pub(super) fn zremrangebylex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    remove_range(keyspace, arguments, RangeBy::Name)
}

fn remove_range(keyspace: &mut Keyspace<'_>, arguments: &[Bytes], by: RangeBy) -> Result<Reply> {
    let bounds = Bounds::parse(by, &arguments[2], &arguments[3])?;
    let key = &arguments[1];
    let Some(scores) = Scores::find_to_change(keyspace, key)? else {
        return Ok(Reply::Integer(0));
    };
    let all = (0, u64::MAX);
    let ranks = bounds.ranks(keyspace, &scores, Direction::Forwards, all)?;
    let removed = scores.remove_ranks(keyspace, key, ranks)?;
    Ok(Reply::count(removed.len()))
}
