//! Finding keys.

use bytes::Bytes;

use crate::command::arguments::is_word;
use crate::command::scan::{self, ScanOptions};
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::layout::hash;
use crate::matches_glob;
use crate::meter::Weighed as _;
use crate::named::WalkPart;
use crate::reply::Reply;

/// Among this many keys or fewer, a random one is found by counting.
const COUNTED_MAX: usize = 128;

/// `RANDOMKEY`
pub(super) fn randomkey(keyspace: &mut Keyspace<'_>, _: &[Bytes]) -> Result<Reply> {
    let random = keyspace.random();
    let keys = |hash: u32, n: usize| {
        let keys = keyspace.keys_from(hash).take(n);
        keys.map(|key| Ok(key?.0)).collect::<Result<Vec<Bytes>>>()
    };
    let is_large = keyspace.n_keys() > COUNTED_MAX as u64;
    if is_large && let Some(key) = keys(random as u32, 1)?.pop() {
        return Ok(Reply::Bulk(key));
    }
    let mut first = keys(0, COUNTED_MAX)?;
    let index = random % first.len().max(1) as u64;
    Ok(match first.is_empty() {
        true => Reply::Nil,
        false => Reply::Bulk(first.swap_remove(index as usize)),
    })
}

/// `KEYS pattern`
pub(super) fn keys(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let mut found = Vec::new();
    for key in keyspace.keys_from(0) {
        let (key, _) = key?;
        if matches_glob(&arguments[1], &key) {
            keyspace.hold(key.weight())?;
            found.push(Reply::Bulk(key));
        }
    }
    Ok(Reply::Array(found))
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
pub(super) fn scan(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let options = ScanOptions::parse(&arguments[1..], "TYPE")?;
    let walk = keyspace.keys_from(options.cursor);
    let part = WalkPart::take(walk, options.count, |(key, _)| hash(key))?;
    let found = part.found.into_iter().filter(|(key, meta)| {
        let kind = options.kind.as_ref();
        kind.is_none_or(|kind| is_word(kind, meta.kind().name())) && options.selects(key)
    });
    let found = found.map(|(key, _)| Reply::Bulk(key)).collect();
    Ok(scan::reply(part.next, found))
}
