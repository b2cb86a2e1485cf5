//! Strings: reading and replacing them, parts of them, counting with them.

mod compare;
mod counter;
mod get;
mod lcs;
mod many;
mod part;
mod set;

pub(super) use compare::StringComparison;
pub use part::string_range;

use super::{CommandAccess, CommandSpec, Keys};

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("get", 2, CommandAccess::FastRead, Keys::ONE, get::get),
    CommandSpec::new("set", -3, CommandAccess::Write, Keys::ONE, set::set),
    CommandSpec::new("setnx", 3, CommandAccess::Write, Keys::ONE, set::setnx),
    CommandSpec::new("setex", 4, CommandAccess::Write, Keys::ONE, set::setex),
    CommandSpec::new("psetex", 4, CommandAccess::Write, Keys::ONE, set::psetex),
    CommandSpec::new("getset", 3, CommandAccess::Write, Keys::ONE, set::getset),
    CommandSpec::new("getdel", 2, CommandAccess::Write, Keys::ONE, get::getdel),
    CommandSpec::new("getex", -2, CommandAccess::Write, Keys::ONE, get::getex),
    CommandSpec::new("mget", -2, CommandAccess::Read, Keys::ALL, many::mget),
    CommandSpec::new(
        "mset",
        -3,
        CommandAccess::Write,
        Keys::at(1, -1, 2),
        many::mset,
    ),
    CommandSpec::new(
        "msetnx",
        -3,
        CommandAccess::Write,
        Keys::at(1, -1, 2),
        many::msetnx,
    ),
    CommandSpec::new("msetex", -4, CommandAccess::Write, Keys::NONE, many::msetex),
    CommandSpec::new("strlen", 2, CommandAccess::FastRead, Keys::ONE, get::strlen),
    CommandSpec::new(
        "digest",
        2,
        CommandAccess::Read,
        Keys::ONE,
        compare::digest_command,
    ),
    CommandSpec::new("append", 3, CommandAccess::Write, Keys::ONE, part::append),
    CommandSpec::new(
        "getrange",
        4,
        CommandAccess::Read,
        Keys::ONE,
        part::getrange,
    ),
    CommandSpec::new("substr", 4, CommandAccess::Read, Keys::ONE, part::getrange),
    CommandSpec::new(
        "setrange",
        4,
        CommandAccess::Write,
        Keys::ONE,
        part::setrange,
    ),
    CommandSpec::new("incr", 2, CommandAccess::Write, Keys::ONE, counter::incr),
    CommandSpec::new("decr", 2, CommandAccess::Write, Keys::ONE, counter::decr),
    CommandSpec::new(
        "incrby",
        3,
        CommandAccess::Write,
        Keys::ONE,
        counter::incrby,
    ),
    CommandSpec::new(
        "decrby",
        3,
        CommandAccess::Write,
        Keys::ONE,
        counter::decrby,
    ),
    CommandSpec::new(
        "incrbyfloat",
        3,
        CommandAccess::Write,
        Keys::ONE,
        counter::incrbyfloat,
    ),
    CommandSpec::new("lcs", -3, CommandAccess::Read, Keys::TWO, lcs::lcs),
];

#[cfg(test)]
mod tests;
