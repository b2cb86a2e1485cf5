//! Names of entries that compare fast.
//!
//! Looking for an entry compares a dozen and a half names, each of which lies somewhere else in
//! memory. Nearly all of them differ in their first bytes, so those are kept in the tree itself.

use std::cmp::Ordering;

use bytes::Bytes;
use equivalent::{Comparable, Equivalent};

/// How many bytes are kept in the tree: the hashes of keys, fields and members are among them.
const HEAD_BYTES: usize = size_of::<u128>();

/// The name of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryName {
    head: u128,
    pub(super) bytes: Bytes,
}

impl EntryName {
    pub(super) fn new(bytes: Bytes) -> Self {
        let head = head(&bytes);
        Self { head, bytes }
    }
}

impl Ord for EntryName {
    fn cmp(&self, other: &Self) -> Ordering {
        let heads = self.head.cmp(&other.head);
        heads.then_with(|| self.bytes.cmp(&other.bytes))
    }
}

impl PartialOrd for EntryName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A name that is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct SoughtName<'a> {
    head: u128,
    bytes: &'a [u8],
}

impl<'a> SoughtName<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let head = head(bytes);
        Self { head, bytes }
    }
}

impl Equivalent<EntryName> for SoughtName<'_> {
    fn equivalent(&self, name: &EntryName) -> bool {
        self.head == name.head && self.bytes == name.bytes
    }
}

impl Comparable<EntryName> for SoughtName<'_> {
    fn compare(&self, name: &EntryName) -> Ordering {
        let heads = self.head.cmp(&name.head);
        heads.then_with(|| self.bytes.cmp(&name.bytes))
    }
}

/// Returns the first bytes, which are in the same order as the whole names as far as they differ.
fn head(bytes: &[u8]) -> u128 {
    let mut head = [0; HEAD_BYTES];
    let length = bytes.len().min(HEAD_BYTES);
    head[..length].copy_from_slice(&bytes[..length]);
    u128::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_bytes() {
        let long = |last: u8| [&[7; HEAD_BYTES][..], &[last]].concat();
        let names = [
            vec![],
            vec![0],
            vec![0, 0],
            vec![1],
            vec![0; 40],
            long(0),
            long(1),
            vec![255],
        ];
        for one in &names {
            for other in &names {
                let (first, second) = (
                    EntryName::new(one.clone().into()),
                    EntryName::new(other.clone().into()),
                );
                let sought = SoughtName::new(one);
                assert_eq!(first.cmp(&second), one.cmp(other), "{one:?} {other:?}");
                assert_eq!(sought.compare(&second), one.cmp(other), "{one:?} {other:?}");
                assert_eq!(
                    sought.equivalent(&second),
                    one == other,
                    "{one:?} {other:?}"
                );
            }
        }
    }
}
