//! What is under a key, as an operator sees it.

use bytes::Bytes;

use crate::command::arguments::{subcommand, wrong_arity};
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::meta::{Collection, Meta, StoredValue, ValueKind};
use crate::number::parse_integer;
use crate::pack::Pack;
use crate::reply::Reply;
use crate::string::StoredString;

/// The longest string that Redis keeps together with its key.
const EMBEDDED_BYTES_MAX: usize = 44;

/// Of how many elements Redis makes a listpack, at most.
const LISTPACK_MAX: u64 = 128;

/// Of how long elements Redis makes a listpack, at most.
const LISTPACK_BYTES_MAX: usize = 64;

/// Of how many integers Redis makes an integer set, at most.
const INTEGER_SET_MAX: u64 = 512;

const HELP: [&str; 11] = [
    "OBJECT <subcommand> [<key>]. Subcommands are:",
    "ENCODING <key>",
    "    How Redis would represent a value of this type and size.",
    "REFCOUNT <key>",
    "    How many references to the value there are, which is 1.",
    "IDLETIME <key>",
    "    Refused: when a key was used last is not tracked.",
    "FREQ <key>",
    "    Refused: how often a key is used is not tracked.",
    "HELP",
    "    Answers this text.",
];

/// `OBJECT ENCODING key`, `OBJECT REFCOUNT key`, `OBJECT IDLETIME key`, `OBJECT FREQ key` or
/// `OBJECT HELP`
pub(super) fn object(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    const SUBCOMMANDS: [&str; 5] = ["encoding", "freq", "help", "idletime", "refcount"];
    let name = subcommand("OBJECT", &arguments[1], &SUBCOMMANDS)?;
    let n_arguments = if name == "help" { 2 } else { 3 };
    if arguments.len() != n_arguments {
        return Err(wrong_arity(&format!("object|{name}")));
    }
    if name == "help" {
        return Ok(Reply::Array(HELP.map(Reply::Simple).into()));
    }
    let Some(meta) = keyspace.find(&arguments[2])? else {
        return Ok(Reply::Nil);
    };
    match name {
        "encoding" => Ok(Reply::bulk(encoding(keyspace, meta)?)),
        "refcount" => Ok(Reply::Integer(1)),
        "idletime" => Err(CommandError::refused(
            "ERR the time of the last access is not tracked",
        )),
        _ => Err(CommandError::refused(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
             note that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        )),
    }
}

/// Returns the name of the encoding that Redis would choose for a value of this size.
fn encoding(keyspace: &Keyspace<'_>, meta: Meta) -> Result<&'static str> {
    match meta.value {
        StoredValue::SmallHash(pack) => encoding_of_pack(&pack),
        StoredValue::Collection(collection) => encoding_of_elements(keyspace, &collection),
        _ => encoding_of_string(keyspace, &StoredString::of(meta)?),
    }
}

fn encoding_of_string(keyspace: &Keyspace<'_>, text: &StoredString) -> Result<&'static str> {
    if text.len() > EMBEDDED_BYTES_MAX as u64 {
        return Ok("raw");
    }
    let is_integer = parse_integer(&keyspace.read(text)?).is_some();
    Ok(if is_integer { "int" } else { "embstr" })
}

fn encoding_of_pack(pack: &Pack) -> Result<&'static str> {
    for field in pack.all() {
        let (name, value) = field?;
        if name.len().max(value.len()) > LISTPACK_BYTES_MAX {
            return Ok("hashtable");
        }
    }
    Ok("listpack")
}

fn encoding_of_elements(keyspace: &Keyspace<'_>, collection: &Collection) -> Result<&'static str> {
    let Collection { kind, id, len, .. } = *collection;
    // Reads no more elements than the smaller encodings have.
    let all = |is_small: fn(&[u8], &[u8]) -> bool| {
        for element in keyspace.all_named(id) {
            let (name, value) = element?;
            if !is_small(&name, &value) {
                return Ok(false);
            }
        }
        Ok::<_, CommandError>(true)
    };
    let is_short = |name: &[u8], stored: &[u8]| {
        // A stored field has a byte before its value.
        name.len() <= LISTPACK_BYTES_MAX && stored.len() <= 1 + LISTPACK_BYTES_MAX
    };
    let is_integer = |name: &[u8], _: &[u8]| parse_integer(name).is_some();
    Ok(match kind {
        ValueKind::Hash | ValueKind::SortedSet if len <= LISTPACK_MAX && all(is_short)? => {
            "listpack"
        }
        ValueKind::Set if len <= INTEGER_SET_MAX && all(is_integer)? => "intset",
        ValueKind::Hash | ValueKind::Set => "hashtable",
        ValueKind::SortedSet => "skiplist",
        ValueKind::List | ValueKind::String => "quicklist",
    })
}
