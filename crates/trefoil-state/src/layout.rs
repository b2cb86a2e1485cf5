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
use smallvec::SmallVec;
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

/// A name that is being made, or looked for and not kept: most need no memory of their own.
pub(crate) type MadeName = SmallVec<[u8; 64]>;

/// Returns a name to keep.
pub(crate) fn kept(name: &MadeName) -> Bytes {
    Bytes::copy_from_slice(name)
}

/// Appends a number: how many bytes it takes, then those, most significant first.
pub(crate) fn put_ordered(out: &mut MadeName, number: u64) {
    let bytes = number.to_be_bytes();
    let skipped = (number.leading_zeros() / 8) as usize;
    out.push((bytes.len() - skipped) as u8);
    out.extend_from_slice(&bytes[skipped..]);
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

/// What the name of an entry is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameParts<'a> {
    Root,
    /// A key.
    Key(&'a [u8]),
    /// A collection, and the place of an element in it.
    Element(u64, &'a [u8]),
    /// When something expires, what does, and the key.
    Expiry(u64, u8, &'a [u8]),
    /// What the names of all that is garbage begin with.
    Garbage(&'a [u8]),
}

/// Takes a name apart; `None` if it is none of these.
pub(crate) fn read(name: &[u8]) -> Option<NameParts<'_>> {
    if name == ROOT {
        return Some(NameParts::Root);
    }
    let mut rest = name;
    match *rest.split_off_first()? {
        GARBAGE => return Some(NameParts::Garbage(rest)),
        SPACE => take_ordered(&mut rest)?,
        _ => return None,
    };
    match *rest.split_off_first()? {
        KEY => Some(NameParts::Key(rest.get(HASH_BYTES..)?)),
        ELEMENT => Some(NameParts::Element(take_ordered(&mut rest)?, rest)),
        EXPIRY => {
            let (time, rest) = rest.split_first_chunk()?;
            let (what, key) = rest.split_first()?;
            Some(NameParts::Expiry(u64::from_be_bytes(*time), *what, key))
        }
        _ => None,
    }
}

/// Returns the id of the collection that an entry is an element of.
pub(crate) fn collection_of(name: &[u8]) -> Option<u64> {
    match read(name)? {
        NameParts::Element(id, _) => Some(id),
        _ => None,
    }
}

fn begin(epoch: u64, part: u8) -> MadeName {
    let mut name = MadeName::new();
    name.push(SPACE);
    put_ordered(&mut name, epoch);
    name.push(part);
    name
}

/// Returns what the names of all entries of an epoch begin with.
pub(crate) fn epoch_prefix(epoch: u64) -> Bytes {
    let mut name = MadeName::new();
    name.push(SPACE);
    put_ordered(&mut name, epoch);
    kept(&name)
}

/// Returns the entry of a key, to look for it.
pub(crate) fn sought_key(epoch: u64, key: &[u8]) -> MadeName {
    let mut name = begin(epoch, KEY);
    name.extend_from_slice(&hash(key).to_be_bytes());
    name.extend_from_slice(key);
    name
}

/// Returns the entry of a key.
pub(crate) fn key(epoch: u64, key: &[u8]) -> Bytes {
    kept(&sought_key(epoch, key))
}

/// Returns what the names of all keys begin with.
pub(crate) fn key_prefix(epoch: u64) -> Bytes {
    kept(&begin(epoch, KEY))
}

/// Returns the place among the keys at which those of this hash begin.
pub(crate) fn key_place(epoch: u64, hash: u32) -> Bytes {
    let mut name = begin(epoch, KEY);
    name.extend_from_slice(&hash.to_be_bytes());
    kept(&name)
}

/// Returns what the names of the elements of a collection begin with.
pub(crate) fn collection(epoch: u64, id: u64) -> Bytes {
    kept(&sought_element(epoch, id, &[]))
}

/// Returns the entry of an element, to look for it.
pub(crate) fn sought_element(epoch: u64, id: u64, place: &[u8]) -> MadeName {
    let mut name = begin(epoch, ELEMENT);
    put_ordered(&mut name, id);
    name.extend_from_slice(place);
    name
}

/// Returns the entry of an element.
pub(crate) fn element(epoch: u64, id: u64, place: &[u8]) -> Bytes {
    kept(&sought_element(epoch, id, place))
}

/// What expires: a key, or fields of the hash under it. All that is higher is a kind of timer.
pub(crate) const KEY_EXPIRES: u8 = 0;
pub(crate) const FIELDS_EXPIRE: u8 = 1;

/// Returns the entry that says that a key or fields of it expire at this time, or that a timer is
/// due.
pub(crate) fn expiry(epoch: u64, time: u64, what: u8, key: &[u8]) -> Bytes {
    let mut name = begin(epoch, EXPIRY);
    name.extend_from_slice(&time.to_be_bytes());
    name.push(what);
    name.extend_from_slice(key);
    kept(&name)
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
    kept(&begin(epoch, EXPIRY))
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
