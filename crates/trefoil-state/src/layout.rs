//! The names of all entries of the state.
//!
//! ```text
//! r                        the root: epoch, number of keys, last id, when a timer is due next
//! s E k H key              what is remembered of a key (H: a hash, so that keys lie in no order)
//! s E c id place           an element of the collection with this id
//! s E e time what key      this key expires at this time (what = 0), or fields of it do (1), or
//!                          a timer of an application is due (2 and higher: the kind of timer)
//! g prefix                 garbage: all entries under this prefix are to be removed
//! ```
//!
//! `E` is the epoch: emptying the whole state begins a new one and leaves the old one as garbage.
//! Numbers in names are written so that their order as bytes is their order as numbers.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

/// The longest key, field or member, in bytes: names of entries have room for 65,535.
pub const KEY_BYTES_MAX: usize = 65_000;

/// The longest string value, in bytes.
pub const STRING_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The entry of the root, which every command reads.
pub const ROOT: &[u8] = b"r";

/// What the names of garbage entries begin with.
pub(crate) const GARBAGE: u8 = b'g';

const SPACE: u8 = b's';
const KEY: u8 = b'k';
const ELEMENT: u8 = b'c';
const EXPIRY: u8 = b'e';

/// Bytes of the hash by which keys, fields and members are ordered.
pub(crate) const HASH_BYTES: usize = 4;

/// Returns the hash by which keys, fields and members are ordered: what is picked at a random place
/// is picked evenly, and a walk is described by one number.
pub(crate) fn hash(name: &[u8]) -> u32 {
    xxh3_64(name) as u32
}

/// Appends a number: how many bytes it takes, then those, most significant first.
pub(crate) fn put_ordered(out: &mut BytesMut, number: u64) {
    let bytes = number.to_be_bytes();
    let skipped = (number.leading_zeros() / 8) as usize;
    out.put_u8((bytes.len() - skipped) as u8);
    out.put_slice(&bytes[skipped..]);
}

/// Reads what [`put_ordered`] wrote.
fn take_ordered(rest: &mut &[u8]) -> Option<u64> {
    let length = usize::from(*rest.split_off_first()?);
    let digits = rest.split_off(..length)?;
    let mut bytes = [0; size_of::<u64>()];
    let skipped = bytes.len().checked_sub(length)?;
    bytes[skipped..].copy_from_slice(digits);
    Some(u64::from_be_bytes(bytes))
}

/// Returns the id of the collection that an entry is an element of.
pub(crate) fn collection_of(mut name: &[u8]) -> Option<u64> {
    if *name.split_off_first()? != SPACE {
        return None;
    }
    take_ordered(&mut name)?;
    if *name.split_off_first()? != ELEMENT {
        return None;
    }
    take_ordered(&mut name)
}

fn begin(epoch: u64, part: u8, room: usize) -> BytesMut {
    let mut name = BytesMut::with_capacity(room + 11);
    name.put_u8(SPACE);
    put_ordered(&mut name, epoch);
    name.put_u8(part);
    name
}

/// Returns what the names of all entries of an epoch begin with.
pub(crate) fn epoch_prefix(epoch: u64) -> Bytes {
    let mut name = BytesMut::with_capacity(10);
    name.put_u8(SPACE);
    put_ordered(&mut name, epoch);
    name.freeze()
}

/// Returns the entry of a key.
pub(crate) fn key(epoch: u64, key: &[u8]) -> Bytes {
    let mut name = begin(epoch, KEY, HASH_BYTES + key.len());
    name.put_u32(hash(key));
    name.put_slice(key);
    name.freeze()
}

/// Returns what the names of all keys begin with.
pub(crate) fn key_prefix(epoch: u64) -> Bytes {
    begin(epoch, KEY, 0).freeze()
}

/// Returns the place among the keys at which those of this hash begin.
pub(crate) fn key_place(epoch: u64, hash: u32) -> Bytes {
    let mut name = begin(epoch, KEY, HASH_BYTES);
    name.put_u32(hash);
    name.freeze()
}

/// Returns what the names of the elements of a collection begin with.
pub(crate) fn collection(epoch: u64, id: u64) -> Bytes {
    let mut name = begin(epoch, ELEMENT, 9);
    put_ordered(&mut name, id);
    name.freeze()
}

/// Returns the entry of an element.
pub(crate) fn element(epoch: u64, id: u64, place: &[u8]) -> Bytes {
    let mut name = begin(epoch, ELEMENT, 9 + place.len());
    put_ordered(&mut name, id);
    name.put_slice(place);
    name.freeze()
}

/// What expires: a key, or fields of the hash under it. All that is higher is a kind of timer.
pub(crate) const KEY_EXPIRES: u8 = 0;
pub(crate) const FIELDS_EXPIRE: u8 = 1;

/// Returns the entry that says that a key or fields of it expire at this time, or that a timer is
/// due.
pub(crate) fn expiry(epoch: u64, time: u64, what: u8, key: &[u8]) -> Bytes {
    let mut name = begin(epoch, EXPIRY, 9 + key.len());
    name.put_u64(time);
    name.put_u8(what);
    name.put_slice(key);
    name.freeze()
}

/// Returns the time, what expires, and the key, of an entry of [`expiry`].
pub(crate) fn read_expiry(epoch: u64, name: &Bytes) -> Option<(u64, u8, Bytes)> {
    let mut rest = name.slice(expiry_prefix(epoch).len()..);
    let time = rest.try_get_u64().ok()?;
    let what = rest.try_get_u8().ok()?;
    Some((time, what, rest))
}

/// Returns the first name after this one.
pub(crate) fn after(name: &[u8]) -> Bytes {
    let mut next = BytesMut::with_capacity(name.len() + 1);
    next.put_slice(name);
    next.put_u8(0);
    next.freeze()
}

/// Returns what a garbage entry says is garbage.
pub(crate) fn read_garbage(name: &Bytes) -> Bytes {
    name.slice(1..)
}

/// Returns what the names of all expiries begin with.
pub(crate) fn expiry_prefix(epoch: u64) -> Bytes {
    begin(epoch, EXPIRY, 0).freeze()
}

/// Returns the entry that says that everything under a prefix is garbage.
pub(crate) fn garbage(prefix: &[u8]) -> Bytes {
    let mut name = BytesMut::with_capacity(1 + prefix.len());
    name.put_u8(GARBAGE);
    name.put_slice(prefix);
    name.freeze()
}

/// Returns the first name after all that begin with `prefix`, which has a byte that is not 255.
pub(crate) fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}
