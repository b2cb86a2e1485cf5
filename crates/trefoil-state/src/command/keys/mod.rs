//! Keys, whatever is under them.

mod delete;
mod memory;
mod object;
mod rename;
mod walk;

use bytes::Bytes;

use super::arguments::is_word;
use super::{Access, Keys, Spec};
use crate::failure::{Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// The commands of this family.
pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("del", -2, Access::Write, Keys::ALL, delete::del),
    Spec::new("unlink", -2, Access::Write, Keys::ALL, delete::del),
    Spec::new("delex", -2, Access::Write, Keys::ONE, delete::delex),
    Spec::new("exists", -2, Access::FastRead, Keys::ALL, exists),
    Spec::new("touch", -2, Access::FastRead, Keys::ALL, exists),
    Spec::new("type", 2, Access::FastRead, Keys::ONE, kind),
    Spec::new("rename", 3, Access::Write, Keys::TWO, rename::rename),
    Spec::new("renamenx", 3, Access::Write, Keys::TWO, rename::renamenx),
    Spec::new("copy", -3, Access::Write, Keys::TWO, rename::copy),
    Spec::new(
        "randomkey",
        1,
        Access::FastRead,
        Keys::NONE,
        walk::randomkey,
    ),
    Spec::new("keys", 2, Access::Read, Keys::NONE, walk::keys),
    Spec::new("scan", -2, Access::Read, Keys::NONE, walk::scan),
    Spec::new("dbsize", 1, Access::FastRead, Keys::NONE, dbsize),
    Spec::new("flushdb", -1, Access::Write, Keys::NONE, flush),
    Spec::new("flushall", -1, Access::Write, Keys::NONE, flush),
    Spec::new(
        "object",
        -2,
        Access::Read,
        Keys::at(2, 2, 1),
        object::object,
    ),
    Spec::new(
        "memory",
        -2,
        Access::Read,
        Keys::at(2, 2, 1),
        memory::memory,
    ),
];

/// `EXISTS key [key …]`, and `TOUCH key [key …]`: nothing here remembers when a key was used.
fn exists(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let mut n = 0;
    for key in &arguments[1..] {
        n += usize::from(keyspace.find(key)?.is_some());
    }
    Ok(Reply::count(n))
}

/// `TYPE key`
fn kind(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let meta = keyspace.find(&arguments[1])?;
    Ok(Reply::Simple(
        meta.map_or("none", |meta| meta.kind().name()),
    ))
}

/// `DBSIZE`
fn dbsize(keyspace: &mut Keyspace<'_>, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::Integer(keyspace.n_keys() as i64))
}

/// `FLUSHDB [ASYNC | SYNC]` and `FLUSHALL [ASYNC | SYNC]`: either takes one step, so that there is
/// nothing to wait for.
fn flush(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    match &arguments[1..] {
        [] => {}
        [word] if is_word(word, "ASYNC") || is_word(word, "SYNC") => {}
        _ => return Err(SYNTAX),
    }
    keyspace.flush()?;
    Ok(Reply::OK)
}

#[cfg(test)]
mod tests;
