//! An entry in one piece of memory: its name and its value.

use std::iter::repeat_n;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};

/// What comes before the name: its length, and whether there is a value.
const HEADER_BYTES: usize = size_of::<u32>();

/// The bit of the header that says that the entry is gone. Names are much shorter than that.
const IS_GONE: u32 = 1 << 31;

/// An entry that changed: its name, and its value unless it is gone.
///
/// Whoever reads the value has just compared the name, and counts how many refer to both: all three
/// lie side by side, so that memory is waited for once.
#[derive(Debug, Clone)]
pub(in crate::state) struct PackedEntry(Arc<[u8]>);

impl PackedEntry {
    pub(in crate::state) fn new(name: &[u8], value: Option<&[u8]>) -> Self {
        let gone = if value.is_some() { 0 } else { IS_GONE };
        let header = name.len() as u32 | gone;
        let value = value.unwrap_or_default();
        let name_end = HEADER_BYTES + name.len();
        // Of a known length, so the bytes are written where they stay.
        let mut bytes: Arc<[u8]> = repeat_n(0, name_end + value.len()).collect();
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            bytes[..HEADER_BYTES].copy_from_slice(&header.to_ne_bytes());
            bytes[HEADER_BYTES..name_end].copy_from_slice(name);
            bytes[name_end..].copy_from_slice(value);
        }
        Self(bytes)
    }

    fn header(&self) -> u32 {
        let header = self.0.first_chunk().copied().unwrap_or_default();
        u32::from_ne_bytes(header)
    }

    fn is_gone(&self) -> bool {
        self.header() & IS_GONE != 0
    }

    /// Where the value begins.
    fn value_start(&self) -> usize {
        HEADER_BYTES + (self.header() & !IS_GONE) as usize
    }

    pub(in crate::state) fn name(&self) -> &[u8] {
        &self.0[HEADER_BYTES..self.value_start()]
    }

    /// Returns the value; `None` if the entry is gone.
    pub(in crate::state) fn value(&self) -> Option<&[u8]> {
        (!self.is_gone()).then(|| &self.0[self.value_start()..])
    }

    /// Returns the value without copying it.
    pub(in crate::state) fn into_value(self) -> Option<Bytes> {
        if self.is_gone() {
            return None;
        }
        let start = self.value_start();
        let mut bytes = Bytes::from_owner(self);
        bytes.advance(start);
        Some(bytes)
    }

    /// Returns the name and the value without copying them.
    pub(in crate::state) fn shared(&self) -> (Bytes, Option<Bytes>) {
        let mut name = Bytes::from_owner(self.clone());
        let value = name.split_off(self.value_start());
        name.advance(HEADER_BYTES);
        (name, (!self.is_gone()).then_some(value))
    }
}

impl AsRef<[u8]> for PackedEntry {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// How many of the first bytes of a name are kept in the nodes: the hashes of keys, fields and
/// members are among them.
pub(super) const HEAD_BYTES: usize = size_of::<u128>();

/// A name that is looked for, and its first bytes. Nearly all names differ in those, so that the names
/// themselves, each of which lies somewhere else in memory, are rarely looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct SoughtName<'a> {
    pub(super) head: u128,
    pub(super) bytes: &'a [u8],
}

impl<'a> SoughtName<'a> {
    /// The first bytes are in the same order as the whole names, as far as they differ.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut head = [0; HEAD_BYTES];
        let length = bytes.len().min(HEAD_BYTES);
        head[..length].copy_from_slice(&bytes[..length]);
        let head = u128::from_be_bytes(head);
        Self { head, bytes }
    }

    /// Returns how many of these names, which are in order, come before it; `name` returns one of
    /// them. All heads are counted, which takes less time than to guess where it might be.
    pub(super) fn rank<'n>(&self, heads: &[u128], name: impl Fn(usize) -> &'n [u8]) -> usize {
        let mut rank: usize = heads
            .iter()
            .map(|head| usize::from(*head < self.head))
            .sum();
        while heads.get(rank) == Some(&self.head) && name(rank) < self.bytes {
            rank += 1;
        }
        rank
    }
}
