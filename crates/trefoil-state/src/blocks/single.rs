//! Elements that have an entry each: version 0.1.0 wrote lists and the order of sorted sets so at
//! first.
//!
//! They come after those that are in blocks. Whatever changes such a list or sorted set takes some of
//! them into blocks, in order, until all are. So no command has to move more than a few hundred, and
//! what is never changed stays as it is.

use bytes::Bytes;
use trefoil_core::Direction;

use super::{BLOCKS, BlockTree, Sought};
use crate::error::Result;
use crate::keyspace::{Element, Keyspace};
use crate::named::AFTER_NAMED;

/// How many elements a command takes into blocks that has nothing to do with them itself.
pub(crate) const TAKEN_MAX: u64 = 256;

/// How many are taken in one step.
const STEP: u64 = 1024;

impl Keyspace<'_> {
    /// Takes up to `n_max` of the elements that have an entry each into blocks, the first ones first.
    /// `element_of` makes an element of such an entry. Returns how many there were.
    pub(crate) fn take_into_blocks(
        &mut self,
        tree: &mut BlockTree,
        n_max: u64,
        element_of: fn(&Element) -> Bytes,
    ) -> Result<u64> {
        let mut n_taken = 0;
        while n_taken < n_max {
            let n_step = STEP.min(n_max - n_taken);
            let entries = self.elements(tree.id, AFTER_NAMED, Some(BLOCKS), Direction::Forwards);
            let entries = entries.take(n_step as usize);
            let entries: Vec<Element> = entries.collect::<Result<_>>()?;
            if entries.is_empty() {
                break;
            }
            n_taken += entries.len() as u64;
            let elements: Vec<Bytes> = entries.iter().map(element_of).collect();
            let end = tree.find(self, Sought::Index(tree.len))?;
            tree.insert(self, end, elements.iter().map(AsRef::as_ref))?;
            for (place, _) in entries {
                self.set_element(tree.id, &place, None)?;
            }
        }
        Ok(n_taken)
    }
}
