//! `ZPOPMIN` and its kin: taking the members with the lowest or highest scores.

use bytes::Bytes;
use trefoil_core::Direction;

use super::scores::{Scored, Scores};
use super::{pair, scored_reply};
use crate::command::arguments::{count, from_end, is_word, multi_pop};
use crate::error::{Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `ZPOPMIN key [count]`
pub(super) fn zpopmin(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    pop(keyspace, arguments, Direction::Forwards)
}

/// `ZPOPMAX key [count]`
pub(super) fn zpopmax(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    pop(keyspace, arguments, Direction::Backwards)
}

fn pop(keyspace: &mut Keyspace<'_>, arguments: &[Bytes], from: Direction) -> Result<Reply> {
    let n_max = match &arguments[2..] {
        [] => None,
        [n_max] => Some(count(n_max)?),
        _ => return Err(SYNTAX),
    };
    let key = &arguments[1];
    let popped = match Scores::find_to_change(keyspace, key)? {
        Some(scores) => take(keyspace, key, scores, from, n_max.unwrap_or(1))?,
        None => Vec::new(),
    };
    if n_max.is_some() {
        return Ok(scored_reply(popped, true));
    }
    // One member alone and its score are not a list of pairs.
    let flat = popped.into_iter().map(pair);
    let flat = flat.flat_map(|(member, score)| [member, score]);
    Ok(Reply::Array(flat.collect()))
}

/// Removes at most `n_max` members from one end, and returns them.
fn take(
    keyspace: &mut Keyspace<'_>,
    key: &Bytes,
    scores: Scores,
    from: Direction,
    n_max: usize,
) -> Result<Vec<Scored>> {
    let n_taken = scores.len().min(n_max as u64);
    let ranks = from_end(0..n_taken, scores.len(), from);
    let mut members = scores.remove_ranks(keyspace, key, ranks)?;
    if from == Direction::Backwards {
        members.reverse();
    }
    Ok(members)
}

/// `ZMPOP numkeys key [key …] MIN | MAX [COUNT count]`
pub(super) fn zmpop(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (keys, from, n_max) = multi_pop(&arguments[1..], parse_end)?;
    for key in keys {
        if let Some(scores) = Scores::find_to_change(keyspace, key)? {
            let popped = take(keyspace, key, scores, from, n_max)?.into_iter();
            let pairs = popped.map(pair);
            let pairs = pairs.map(|(member, score)| Reply::Array(vec![member, score]));
            let key = Reply::Bulk(key.clone());
            return Ok(Reply::Array(vec![key, Reply::Array(pairs.collect())]));
        }
    }
    Ok(Reply::NilArray)
}

fn parse_end(word: &[u8]) -> Result<Direction> {
    if is_word(word, "MIN") {
        Ok(Direction::Forwards)
    } else if is_word(word, "MAX") {
        Ok(Direction::Backwards)
    } else {
        Err(SYNTAX)
    }
}
