//! Hashes: values under fields.
//!
//! ```text
//! read, write    fields and their values
//! number         fields that count
//! walk           all fields, step by step or at random
//! expiry         when fields expire
//! together       a field's value and when it expires, at once
//! field          a field as it is stored
//! fields         the fields of a hash, to read and to change
//! options        times and lists of fields among the arguments
//! ```

mod expiry;
mod field;
mod fields;
mod number;
mod options;
mod read;
mod together;
mod walk;
mod write;

pub(crate) use field::HashField;
pub(crate) use fields::{Hash, HashChange};

use super::CommandAccess::{FastRead, Read, Write};
use super::{CommandSpec, Keys};

pub(super) use read::value;

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("hset", -4, Write, Keys::ONE, write::hset),
    CommandSpec::new("hmset", -4, Write, Keys::ONE, write::hmset),
    CommandSpec::new("hsetnx", 4, Write, Keys::ONE, write::hsetnx),
    CommandSpec::new("hdel", -3, Write, Keys::ONE, write::hdel),
    CommandSpec::new("hincrby", 4, Write, Keys::ONE, number::hincrby),
    CommandSpec::new("hincrbyfloat", 4, Write, Keys::ONE, number::hincrbyfloat),
    CommandSpec::new("hget", 3, FastRead, Keys::ONE, read::hget),
    CommandSpec::new("hmget", -3, FastRead, Keys::ONE, read::hmget),
    CommandSpec::new("hexists", 3, FastRead, Keys::ONE, read::hexists),
    CommandSpec::new("hlen", 2, FastRead, Keys::ONE, read::hlen),
    CommandSpec::new("hstrlen", 3, FastRead, Keys::ONE, read::hstrlen),
    CommandSpec::new("hgetall", 2, Read, Keys::ONE, read::hgetall),
    CommandSpec::new("hkeys", 2, Read, Keys::ONE, read::hkeys),
    CommandSpec::new("hvals", 2, Read, Keys::ONE, read::hvals),
    CommandSpec::new("hscan", -3, Read, Keys::ONE, walk::hscan),
    CommandSpec::new("hrandfield", -2, Read, Keys::ONE, walk::hrandfield),
    CommandSpec::new("hexpire", -6, Write, Keys::ONE, expiry::hexpire),
    CommandSpec::new("hpexpire", -6, Write, Keys::ONE, expiry::hpexpire),
    CommandSpec::new("hexpireat", -6, Write, Keys::ONE, expiry::hexpireat),
    CommandSpec::new("hpexpireat", -6, Write, Keys::ONE, expiry::hpexpireat),
    CommandSpec::new("hpersist", -5, Write, Keys::ONE, expiry::hpersist),
    CommandSpec::new("httl", -5, FastRead, Keys::ONE, expiry::httl),
    CommandSpec::new("hpttl", -5, FastRead, Keys::ONE, expiry::hpttl),
    CommandSpec::new("hexpiretime", -5, FastRead, Keys::ONE, expiry::hexpiretime),
    CommandSpec::new(
        "hpexpiretime",
        -5,
        FastRead,
        Keys::ONE,
        expiry::hpexpiretime,
    ),
    CommandSpec::new("hgetdel", -5, Write, Keys::ONE, together::hgetdel),
    CommandSpec::new("hgetex", -5, Write, Keys::ONE, together::hgetex),
    CommandSpec::new("hsetex", -6, Write, Keys::ONE, together::hsetex),
];

#[cfg(test)]
mod expiry_tests;
#[cfg(test)]
mod tests;
