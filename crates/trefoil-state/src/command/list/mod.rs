//! Lists: values in a row.

mod ends;
mod middle;
mod read;
mod row;

#[cfg(test)]
mod tests;

use super::CommandAccess::{FastRead, Read, Write};
use super::{CommandSpec, Keys};

pub(super) use row::{End, ListRow};

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("lpush", -3, Write, Keys::ONE, ends::lpush),
    CommandSpec::new("rpush", -3, Write, Keys::ONE, ends::rpush),
    CommandSpec::new("lpushx", -3, Write, Keys::ONE, ends::lpushx),
    CommandSpec::new("rpushx", -3, Write, Keys::ONE, ends::rpushx),
    CommandSpec::new("lpop", -2, Write, Keys::ONE, ends::lpop),
    CommandSpec::new("rpop", -2, Write, Keys::ONE, ends::rpop),
    CommandSpec::new("lmpop", -4, Write, Keys::NONE, ends::lmpop),
    CommandSpec::new("lmove", 5, Write, Keys::TWO, ends::lmove),
    CommandSpec::new("rpoplpush", 3, Write, Keys::TWO, ends::rpoplpush),
    CommandSpec::new("llen", 2, FastRead, Keys::ONE, read::llen),
    CommandSpec::new("lindex", 3, FastRead, Keys::ONE, read::lindex),
    CommandSpec::new("lrange", 4, Read, Keys::ONE, read::lrange),
    CommandSpec::new("lpos", -3, Read, Keys::ONE, read::lpos),
    CommandSpec::new("lset", 4, Write, Keys::ONE, middle::lset),
    CommandSpec::new("linsert", 5, Write, Keys::ONE, middle::linsert),
    CommandSpec::new("lrem", 4, Write, Keys::ONE, middle::lrem),
    CommandSpec::new("ltrim", 4, Write, Keys::ONE, middle::ltrim),
];
