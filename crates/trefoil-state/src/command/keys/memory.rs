//! How much room a key takes.

use bytes::Bytes;
use trefoil_core::Direction;

use crate::command::arguments::{integer, is_word, subcommand, wrong_arity};
use crate::error::{Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::layout::{self, FIELDS_EXPIRE, KEY_EXPIRES};
use crate::reply::Reply;

const HELP: [&str; 5] = [
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "USAGE <key> [SAMPLES <count>]",
    "    How many bytes the entries of the key take. All are counted, whatever <count> says.",
    "HELP",
    "    Answers this text.",
];

/// `MEMORY USAGE key [SAMPLES count]` or `MEMORY HELP`
pub(super) fn memory(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let name = subcommand("MEMORY", &arguments[1], &["help", "usage"])?;
    match (name, &arguments[2..]) {
        ("help", []) => Ok(Reply::Array(HELP.map(Reply::Simple).into())),
        ("usage", [key, options @ ..]) => {
            check_options(options)?;
            let bytes = bytes_of(keyspace, key)?;
            Ok(bytes.map_or(Reply::Nil, Reply::count))
        }
        _ => Err(wrong_arity(&format!("memory|{name}"))),
    }
}

/// Checks `SAMPLES count`, which need not be known: nothing is estimated.
fn check_options(options: &[Bytes]) -> Result<()> {
    for option in options.chunks(2) {
        match option {
            [word, count] if is_word(word, "SAMPLES") && integer(count)? >= 0 => {}
            _ => return Err(SYNTAX),
        }
    }
    Ok(())
}

/// Returns the names and values of all entries of a key, in bytes; `None` if it is not there.
fn bytes_of(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Option<usize>> {
    let Some(meta) = keyspace.find(key)? else {
        return Ok(None);
    };
    let epoch = keyspace.root.epoch;
    let name = layout::key(epoch, key);
    let value = keyspace.space.get(&name)?;
    let mut bytes = name.len() + value.map_or(0, |value| value.len());
    let first = keyspace.first_field_expiry(&meta.value)?;
    for (what, time) in [(KEY_EXPIRES, meta.expires), (FIELDS_EXPIRE, first)] {
        bytes += time.map_or(0, |time| layout::expiry(epoch, time, what, key).len());
    }
    if let Some(id) = meta.id() {
        let n_prefix = layout::collection(epoch, id).len();
        for element in keyspace.elements(id, b"", None, Direction::Forwards) {
            let (place, value) = element?;
            bytes += n_prefix + place.len() + value.len();
        }
    }
    Ok(Some(bytes))
}
