//! Elements in counted blocks: how lists, and the members of sorted sets in their order, lie in the
//! entries.
//!
//! The elements are packed into blocks of about 2 KiB, an entry each. Above them is a tree of blocks
//! that know of each block below how many elements are in it, and of sorted sets where it begins.
//! So an element is found by its index or by its order in as many steps as the tree has levels: 3 or 4
//! for a million members. What is added or removed changes one block of each level.

use crate::named::AFTER_NAMED;

mod block;
mod single;
mod tree;
mod walk;

#[cfg(test)]
mod tests;

/// What the places of blocks begin with: they lie after elements that have an entry each.
pub(crate) const BLOCKS: &[u8] = &[AFTER_NAMED[0] + 1];

pub(crate) use single::TAKEN_MAX;
pub(crate) use tree::{BlockTree, Sought};
