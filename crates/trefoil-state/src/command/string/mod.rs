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

use super::{Access, Keys, Spec};

/// The commands of this family.
pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("get", 2, Access::FastRead, Keys::ONE, get::get),
    Spec::new("set", -3, Access::Write, Keys::ONE, set::set),
    Spec::new("setnx", 3, Access::Write, Keys::ONE, set::setnx),
    Spec::new("setex", 4, Access::Write, Keys::ONE, set::setex),
    Spec::new("psetex", 4, Access::Write, Keys::ONE, set::psetex),
    Spec::new("getset", 3, Access::Write, Keys::ONE, set::getset),
    Spec::new("getdel", 2, Access::Write, Keys::ONE, get::getdel),
    Spec::new("getex", -2, Access::Write, Keys::ONE, get::getex),
    Spec::new("mget", -2, Access::Read, Keys::ALL, many::mget),
    Spec::new("mset", -3, Access::Write, Keys::at(1, -1, 2), many::mset),
    Spec::new(
        "msetnx",
        -3,
        Access::Write,
        Keys::at(1, -1, 2),
        many::msetnx,
    ),
    Spec::new("msetex", -4, Access::Write, Keys::NONE, many::msetex),
    Spec::new("strlen", 2, Access::FastRead, Keys::ONE, get::strlen),
    Spec::new(
        "digest",
        2,
        Access::Read,
        Keys::ONE,
        compare::digest_command,
    ),
    Spec::new("append", 3, Access::Write, Keys::ONE, part::append),
    Spec::new("getrange", 4, Access::Read, Keys::ONE, part::getrange),
    Spec::new("substr", 4, Access::Read, Keys::ONE, part::getrange),
    Spec::new("setrange", 4, Access::Write, Keys::ONE, part::setrange),
    Spec::new("incr", 2, Access::Write, Keys::ONE, counter::incr),
    Spec::new("decr", 2, Access::Write, Keys::ONE, counter::decr),
    Spec::new("incrby", 3, Access::Write, Keys::ONE, counter::incrby),
    Spec::new("decrby", 3, Access::Write, Keys::ONE, counter::decrby),
    Spec::new(
        "incrbyfloat",
        3,
        Access::Write,
        Keys::ONE,
        counter::incrbyfloat,
    ),
    Spec::new("lcs", -3, Access::Read, Keys::TWO, lcs::lcs),
];

#[cfg(test)]
mod tests;
