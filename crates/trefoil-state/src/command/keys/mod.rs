//! Keys, whatever is under them.

mod delete;
mod memory;
mod object;
mod rename;
mod walk;

use bytes::Bytes;

use super::arguments::is_word;
use super::{CommandAccess, CommandSpec, Keys};
use crate::error::{Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("del", -2, CommandAccess::Write, Keys::ALL, delete::del),
    CommandSpec::new("unlink", -2, CommandAccess::Write, Keys::ALL, delete::del),
    CommandSpec::new("delex", -2, CommandAccess::Write, Keys::ONE, delete::delex),
    CommandSpec::new("exists", -2, CommandAccess::FastRead, Keys::ALL, exists),
    CommandSpec::new("touch", -2, CommandAccess::FastRead, Keys::ALL, exists),
    CommandSpec::new("type", 2, CommandAccess::FastRead, Keys::ONE, kind),
    CommandSpec::new("rename", 3, CommandAccess::Write, Keys::TWO, rename::rename),
    CommandSpec::new(
        "renamenx",
        3,
        CommandAccess::Write,
        Keys::TWO,
        rename::renamenx,
    ),
    CommandSpec::new("copy", -3, CommandAccess::Write, Keys::TWO, rename::copy),
    CommandSpec::new(
        "randomkey",
        1,
        CommandAccess::FastRead,
        Keys::NONE,
        walk::randomkey,
    ),
    CommandSpec::new("keys", 2, CommandAccess::Read, Keys::NONE, walk::keys),
    CommandSpec::new("scan", -2, CommandAccess::Read, Keys::NONE, walk::scan),
    CommandSpec::new("dbsize", 1, CommandAccess::FastRead, Keys::NONE, dbsize),
    CommandSpec::new("flushdb", -1, CommandAccess::Write, Keys::NONE, flush),
    CommandSpec::new("flushall", -1, CommandAccess::Write, Keys::NONE, flush),
    CommandSpec::new(
        "object",
        -2,
        CommandAccess::Read,
        Keys::at(2, 2, 1),
        object::object,
    ),
    CommandSpec::new(
        "memory",
        -2,
        CommandAccess::Read,
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
