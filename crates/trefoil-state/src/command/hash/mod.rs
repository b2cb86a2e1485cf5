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

use super::Access::{FastRead, Read, Write};
use super::{Keys, Spec};

pub(super) use read::value;

/// The commands of this family.
pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("hset", -4, Write, Keys::ONE, write::hset),
    Spec::new("hmset", -4, Write, Keys::ONE, write::hmset),
    Spec::new("hsetnx", 4, Write, Keys::ONE, write::hsetnx),
    Spec::new("hdel", -3, Write, Keys::ONE, write::hdel),
    Spec::new("hincrby", 4, Write, Keys::ONE, number::hincrby),
    Spec::new("hincrbyfloat", 4, Write, Keys::ONE, number::hincrbyfloat),
    Spec::new("hget", 3, FastRead, Keys::ONE, read::hget),
    Spec::new("hmget", -3, FastRead, Keys::ONE, read::hmget),
    Spec::new("hexists", 3, FastRead, Keys::ONE, read::hexists),
    Spec::new("hlen", 2, FastRead, Keys::ONE, read::hlen),
    Spec::new("hstrlen", 3, FastRead, Keys::ONE, read::hstrlen),
    Spec::new("hgetall", 2, Read, Keys::ONE, read::hgetall),
    Spec::new("hkeys", 2, Read, Keys::ONE, read::hkeys),
    Spec::new("hvals", 2, Read, Keys::ONE, read::hvals),
    Spec::new("hscan", -3, Read, Keys::ONE, walk::hscan),
    Spec::new("hrandfield", -2, Read, Keys::ONE, walk::hrandfield),
    Spec::new("hexpire", -6, Write, Keys::ONE, expiry::hexpire),
    Spec::new("hpexpire", -6, Write, Keys::ONE, expiry::hpexpire),
    Spec::new("hexpireat", -6, Write, Keys::ONE, expiry::hexpireat),
    Spec::new("hpexpireat", -6, Write, Keys::ONE, expiry::hpexpireat),
    Spec::new("hpersist", -5, Write, Keys::ONE, expiry::hpersist),
    Spec::new("httl", -5, FastRead, Keys::ONE, expiry::httl),
    Spec::new("hpttl", -5, FastRead, Keys::ONE, expiry::hpttl),
    Spec::new("hexpiretime", -5, FastRead, Keys::ONE, expiry::hexpiretime),
    Spec::new(
        "hpexpiretime",
        -5,
        FastRead,
        Keys::ONE,
        expiry::hpexpiretime,
    ),
    Spec::new("hgetdel", -5, Write, Keys::ONE, together::hgetdel),
    Spec::new("hgetex", -5, Write, Keys::ONE, together::hgetex),
    Spec::new("hsetex", -6, Write, Keys::ONE, together::hsetex),
];

#[cfg(test)]
mod expiry_tests;
#[cfg(test)]
mod tests;
