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

use super::Access::{FastRead, Read, Write};
use super::{Keys, Spec};

/// The commands of this family.
pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("sadd", -3, Write, Keys::ONE, members::sadd),
    Spec::new("srem", -3, Write, Keys::ONE, members::srem),
    Spec::new("smove", 4, Write, Keys::TWO, members::smove),
    Spec::new("sismember", 3, FastRead, Keys::ONE, members::sismember),
    Spec::new("smismember", -3, FastRead, Keys::ONE, members::smismember),
    Spec::new("scard", 2, FastRead, Keys::ONE, members::scard),
    Spec::new("smembers", 2, Read, Keys::ONE, members::smembers),
    Spec::new("spop", -2, Write, Keys::ONE, pick::spop),
    Spec::new("srandmember", -2, Read, Keys::ONE, pick::srandmember),
    Spec::new("sscan", -3, Read, Keys::ONE, pick::sscan),
    Spec::new("sinter", -2, Read, Keys::ALL, algebra::sinter),
    Spec::new("sintercard", -3, Read, Keys::NONE, algebra::sintercard),
    Spec::new("sunion", -2, Read, Keys::ALL, algebra::sunion),
    Spec::new("sdiff", -2, Read, Keys::ALL, algebra::sdiff),
    Spec::new("sinterstore", -3, Write, Keys::ALL, algebra::sinterstore),
    Spec::new("sunionstore", -3, Write, Keys::ALL, algebra::sunionstore),
    Spec::new("sdiffstore", -3, Write, Keys::ALL, algebra::sdiffstore),
];

#[cfg(test)]
mod tests;
