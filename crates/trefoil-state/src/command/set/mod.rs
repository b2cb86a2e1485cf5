//! Sets: members without order.
//!
//! ```text
//! members    adding, removing, moving and finding members
//! pick       members at random, or step by step
//! algebra    what is in all, in any or in only one of many sets
//! change     a set that is changed
//! ```

mod algebra;
mod change;
mod members;
mod pick;

use super::CommandAccess::{FastRead, Read, Write};
use super::{CommandSpec, Keys};

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("sadd", -3, Write, Keys::ONE, members::sadd),
    CommandSpec::new("srem", -3, Write, Keys::ONE, members::srem),
    CommandSpec::new("smove", 4, Write, Keys::TWO, members::smove),
    CommandSpec::new("sismember", 3, FastRead, Keys::ONE, members::sismember),
    CommandSpec::new("smismember", -3, FastRead, Keys::ONE, members::smismember),
    CommandSpec::new("scard", 2, FastRead, Keys::ONE, members::scard),
    CommandSpec::new("smembers", 2, Read, Keys::ONE, members::smembers),
    CommandSpec::new("spop", -2, Write, Keys::ONE, pick::spop),
    CommandSpec::new("srandmember", -2, Read, Keys::ONE, pick::srandmember),
    CommandSpec::new("sscan", -3, Read, Keys::ONE, pick::sscan),
    CommandSpec::new("sinter", -2, Read, Keys::ALL, algebra::sinter),
    CommandSpec::new("sintercard", -3, Read, Keys::NONE, algebra::sintercard),
    CommandSpec::new("sunion", -2, Read, Keys::ALL, algebra::sunion),
    CommandSpec::new("sdiff", -2, Read, Keys::ALL, algebra::sdiff),
    CommandSpec::new("sinterstore", -3, Write, Keys::ALL, algebra::sinterstore),
    CommandSpec::new("sunionstore", -3, Write, Keys::ALL, algebra::sunionstore),
    CommandSpec::new("sdiffstore", -3, Write, Keys::ALL, algebra::sdiffstore),
];

#[cfg(test)]
mod tests;
