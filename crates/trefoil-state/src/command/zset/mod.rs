//! Sorted sets: members with scores.

mod add;
mod algebra;
mod bounds;
mod inputs;
mod names;
mod pop;
mod range;
mod read;
mod remove;
mod scores;
mod walk;

#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::CommandAccess::{FastRead, Read, Write};
use super::{CommandSpec, Keys};
use crate::reply::Reply;

use scores::Scored;
pub(crate) use scores::{Scores, read_score};

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("zadd", -4, Write, Keys::ONE, add::zadd),
    CommandSpec::new("zincrby", 4, Write, Keys::ONE, add::zincrby),
    CommandSpec::new("zrem", -3, Write, Keys::ONE, remove::zrem),
    CommandSpec::new(
        "zremrangebyrank",
        4,
        Write,
        Keys::ONE,
        remove::zremrangebyrank,
    ),
    CommandSpec::new(
        "zremrangebyscore",
        4,
        Write,
        Keys::ONE,
        remove::zremrangebyscore,
    ),
    CommandSpec::new(
        "zremrangebylex",
        4,
        Write,
        Keys::ONE,
        remove::zremrangebylex,
    ),
    CommandSpec::new("zcard", 2, FastRead, Keys::ONE, read::zcard),
    CommandSpec::new("zscore", 3, FastRead, Keys::ONE, read::zscore),
    CommandSpec::new("zmscore", -3, FastRead, Keys::ONE, read::zmscore),
    CommandSpec::new("zrank", -3, Read, Keys::ONE, read::zrank),
    CommandSpec::new("zrevrank", -3, Read, Keys::ONE, read::zrevrank),
    CommandSpec::new("zcount", 4, Read, Keys::ONE, read::zcount),
    CommandSpec::new("zlexcount", 4, Read, Keys::ONE, read::zlexcount),
    CommandSpec::new("zscan", -3, Read, Keys::ONE, walk::zscan),
    CommandSpec::new("zrandmember", -2, Read, Keys::ONE, walk::zrandmember),
    CommandSpec::new("zrange", -4, Read, Keys::ONE, range::zrange),
    CommandSpec::new("zrangestore", -5, Write, Keys::TWO, range::zrangestore),
    CommandSpec::new("zrevrange", -4, Read, Keys::ONE, range::zrevrange),
    CommandSpec::new("zrangebyscore", -4, Read, Keys::ONE, range::zrangebyscore),
    CommandSpec::new(
        "zrevrangebyscore",
        -4,
        Read,
        Keys::ONE,
        range::zrevrangebyscore,
    ),
    CommandSpec::new("zrangebylex", -4, Read, Keys::ONE, range::zrangebylex),
    CommandSpec::new("zrevrangebylex", -4, Read, Keys::ONE, range::zrevrangebylex),
    CommandSpec::new("zpopmin", -2, Write, Keys::ONE, pop::zpopmin),
    CommandSpec::new("zpopmax", -2, Write, Keys::ONE, pop::zpopmax),
    CommandSpec::new("zmpop", -4, Write, Keys::NONE, pop::zmpop),
    CommandSpec::new("zunion", -3, Read, Keys::NONE, algebra::zunion),
    CommandSpec::new("zinter", -3, Read, Keys::NONE, algebra::zinter),
    CommandSpec::new("zdiff", -3, Read, Keys::NONE, algebra::zdiff),
    CommandSpec::new("zintercard", -3, Read, Keys::NONE, algebra::zintercard),
    CommandSpec::new("zunionstore", -4, Write, Keys::ONE, algebra::zunionstore),
    CommandSpec::new("zinterstore", -4, Write, Keys::ONE, algebra::zinterstore),
    CommandSpec::new("zdiffstore", -4, Write, Keys::ONE, algebra::zdiffstore),
];

/// Members, and their scores if asked for.
fn scored_reply(members: Vec<Scored>, with_scores: bool) -> Reply {
    let members = members.into_iter();
    match with_scores {
        true => Reply::Pairs(members.map(pair).collect()),
        false => Reply::Array(members.map(|(member, _)| Reply::Bulk(member)).collect()),
    }
}

fn pair((member, score): (Bytes, f64)) -> (Reply, Reply) {
    (Reply::Bulk(member), Reply::Double(score))
}
