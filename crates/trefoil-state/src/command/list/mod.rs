//! Lists: values in a row.

mod ends;
mod middle;
mod read;
mod row;

#[cfg(test)]
mod tests;

use super::Access::{FastRead, Read, Write};
use super::{Keys, Spec};

pub(super) use row::{End, ListRow};

/// The commands of this family.
pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("lpush", -3, Write, Keys::ONE, ends::lpush),
    Spec::new("rpush", -3, Write, Keys::ONE, ends::rpush),
    Spec::new("lpushx", -3, Write, Keys::ONE, ends::lpushx),
    Spec::new("rpushx", -3, Write, Keys::ONE, ends::rpushx),
    Spec::new("lpop", -2, Write, Keys::ONE, ends::lpop),
    Spec::new("rpop", -2, Write, Keys::ONE, ends::rpop),
    Spec::new("lmpop", -4, Write, Keys::NONE, ends::lmpop),
    Spec::new("lmove", 5, Write, Keys::TWO, ends::lmove),
    Spec::new("rpoplpush", 3, Write, Keys::TWO, ends::rpoplpush),
    Spec::new("llen", 2, FastRead, Keys::ONE, read::llen),
    Spec::new("lindex", 3, FastRead, Keys::ONE, read::lindex),
    Spec::new("lrange", 4, Read, Keys::ONE, read::lrange),
    Spec::new("lpos", -3, Read, Keys::ONE, read::lpos),
    Spec::new("lset", 4, Write, Keys::ONE, middle::lset),
    Spec::new("linsert", 5, Write, Keys::ONE, middle::linsert),
    Spec::new("lrem", 4, Write, Keys::ONE, middle::lrem),
    Spec::new("ltrim", 4, Write, Keys::ONE, middle::ltrim),
];
