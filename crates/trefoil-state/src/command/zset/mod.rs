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

use super::Access::{FastRead, Read, Write};
use super::{Keys, Spec};
use crate::reply::Reply;

use scores::Scored;
pub(crate) use scores::Scores;

/// The commands of this family.
pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("zadd", -4, Write, Keys::ONE, add::zadd),
    Spec::new("zincrby", 4, Write, Keys::ONE, add::zincrby),
    Spec::new("zrem", -3, Write, Keys::ONE, remove::zrem),
    Spec::new(
        "zremrangebyrank",
        4,
        Write,
        Keys::ONE,
        remove::zremrangebyrank,
    ),
    Spec::new(
        "zremrangebyscore",
        4,
        Write,
        Keys::ONE,
        remove::zremrangebyscore,
    ),
    Spec::new(
        "zremrangebylex",
        4,
        Write,
        Keys::ONE,
        remove::zremrangebylex,
    ),
    Spec::new("zcard", 2, FastRead, Keys::ONE, read::zcard),
    Spec::new("zscore", 3, FastRead, Keys::ONE, read::zscore),
    Spec::new("zmscore", -3, FastRead, Keys::ONE, read::zmscore),
    Spec::new("zrank", -3, Read, Keys::ONE, read::zrank),
    Spec::new("zrevrank", -3, Read, Keys::ONE, read::zrevrank),
    Spec::new("zcount", 4, Read, Keys::ONE, read::zcount),
    Spec::new("zlexcount", 4, Read, Keys::ONE, read::zlexcount),
    Spec::new("zscan", -3, Read, Keys::ONE, walk::zscan),
    Spec::new("zrandmember", -2, Read, Keys::ONE, walk::zrandmember),
    Spec::new("zrange", -4, Read, Keys::ONE, range::zrange),
    Spec::new("zrangestore", -5, Write, Keys::TWO, range::zrangestore),
    Spec::new("zrevrange", -4, Read, Keys::ONE, range::zrevrange),
    Spec::new("zrangebyscore", -4, Read, Keys::ONE, range::zrangebyscore),
    Spec::new(
        "zrevrangebyscore",
        -4,
        Read,
        Keys::ONE,
        range::zrevrangebyscore,
    ),
    Spec::new("zrangebylex", -4, Read, Keys::ONE, range::zrangebylex),
    Spec::new("zrevrangebylex", -4, Read, Keys::ONE, range::zrevrangebylex),
    Spec::new("zpopmin", -2, Write, Keys::ONE, pop::zpopmin),
    Spec::new("zpopmax", -2, Write, Keys::ONE, pop::zpopmax),
    Spec::new("zmpop", -4, Write, Keys::NONE, pop::zmpop),
    Spec::new("zunion", -3, Read, Keys::NONE, algebra::zunion),
    Spec::new("zinter", -3, Read, Keys::NONE, algebra::zinter),
    Spec::new("zdiff", -3, Read, Keys::NONE, algebra::zdiff),
    Spec::new("zintercard", -3, Read, Keys::NONE, algebra::zintercard),
    Spec::new("zunionstore", -4, Write, Keys::ONE, algebra::zunionstore),
    Spec::new("zinterstore", -4, Write, Keys::ONE, algebra::zinterstore),
    Spec::new("zdiffstore", -4, Write, Keys::ONE, algebra::zdiffstore),
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
