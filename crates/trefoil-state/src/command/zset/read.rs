//! What is read of a sorted set without a range: sizes, scores, ranks.

use bytes::Bytes;
use trefoil_core::Direction;

use super::bounds::{Bounds, RangeBy};
use super::scores::Scores;
use crate::command::arguments::{is_word, wrong_arity};
use crate::error::{Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `ZCARD key`
pub(super) fn zcard(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let scores = Scores::find(keyspace, &arguments[1])?;
    Ok(Reply::count(
        scores.map_or(0, |scores| scores.len() as usize),
    ))
}

/// `ZSCORE key member`
pub(super) fn zscore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let scores = Scores::find(keyspace, &arguments[1])?;
    score_reply(keyspace, scores.as_ref(), &arguments[2])
}

/// `ZMSCORE key member [member …]`
pub(super) fn zmscore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let scores = Scores::find(keyspace, &arguments[1])?;
    let replies = arguments[2..].iter();
    let replies = replies.map(|member| score_reply(keyspace, scores.as_ref(), member));
    Ok(Reply::Array(replies.collect::<Result<_>>()?))
}

fn score_reply(keyspace: &Keyspace<'_>, scores: Option<&Scores>, member: &[u8]) -> Result<Reply> {
    let Some(scores) = scores else {
        return Ok(Reply::Nil);
    };
    let score = scores.score(keyspace, member)?;
    Ok(score.map_or(Reply::Nil, Reply::Double))
}

/// `ZCOUNT key min max`
pub(super) fn zcount(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    count(keyspace, arguments, RangeBy::Score)
}

/// `ZLEXCOUNT key min max`
pub(super) fn zlexcount(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    count(keyspace, arguments, RangeBy::Name)
}

fn count(keyspace: &Keyspace<'_>, arguments: &[Bytes], by: RangeBy) -> Result<Reply> {
    let bounds = Bounds::parse(by, &arguments[2], &arguments[3])?;
    let Some(scores) = Scores::find(keyspace, &arguments[1])? else {
        return Ok(Reply::Integer(0));
    };
    let all = (0, u64::MAX);
    let ranks = bounds.ranks(keyspace, &scores, Direction::Forwards, all)?;
    Ok(Reply::count((ranks.end - ranks.start) as usize))
}

/// `ZRANK key member [WITHSCORE]`
pub(super) fn zrank(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    rank(keyspace, arguments, |rank, _| rank, "zrank")
}

/// `ZREVRANK key member [WITHSCORE]`
pub(super) fn zrevrank(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    rank(
        keyspace,
        arguments,
        |rank, len| len.saturating_sub(1 + rank),
        "zrevrank",
    )
}

fn rank(
    keyspace: &Keyspace<'_>,
    arguments: &[Bytes],
    counted: fn(u64, u64) -> u64,
    command: &str,
) -> Result<Reply> {
    let with_score = match &arguments[3..] {
        [] => false,
        [word] if is_word(word, "WITHSCORE") => true,
        [_] => return Err(SYNTAX),
        _ => return Err(wrong_arity(command)),
    };
    let member = &arguments[2];
    let scores = Scores::find(keyspace, &arguments[1])?;
    let score = match &scores {
        Some(scores) => scores.score(keyspace, member)?,
        None => None,
    };
    let (Some(scores), Some(score)) = (scores, score) else {
        return Ok(match with_score {
            true => Reply::NilArray,
            false => Reply::Nil,
        });
    };
    let rank = counted(scores.rank(keyspace, member, score)?, scores.len());
    let rank = Reply::count(rank as usize);
    Ok(match with_score {
        true => Reply::Array(vec![rank, Reply::Double(score)]),
        false => rank,
    })
}
