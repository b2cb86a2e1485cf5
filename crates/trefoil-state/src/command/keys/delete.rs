//! Removing keys.

use bytes::Bytes;

use crate::command::arguments::ArgumentReader;
use crate::command::string::StringComparison;
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `DEL key [key …]` and `UNLINK key [key …]`
pub(super) fn del(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let mut n = 0;
    for key in &arguments[1..] {
        n += usize::from(keyspace.delete(key)?);
    }
    Ok(Reply::count(n))
}

/// `DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]`
pub(super) fn delex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let key = &arguments[1];
    let mut rest = ArgumentReader::new(&arguments[2..]);
    let is_allowed = match rest.word() {
        None => true,
        Some(_) if arguments.len() != 4 => {
            return Err(CommandError::refused(
                "ERR wrong number of arguments for 'delex' command",
            ));
        }
        Some(word) => {
            let comparison = StringComparison::take(word, &mut rest)?.ok_or(SYNTAX)?;
            let text = keyspace.string(key)?;
            comparison.is_met(keyspace, text.as_ref())?
        }
    };
    Ok(Reply::flag(is_allowed && keyspace.delete(key)?))
}
