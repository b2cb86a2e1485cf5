//! Entries in the order of their names: a tree of which a copy costs nothing.
//!
//! A copy shares all nodes with the tree it is made of. Whoever changes one of the two copies the nodes
//! on the way to the change, as far as they are shared, so that the other stays as it is: readers
//! have a copy and never wait.

mod node;
mod packed;
mod walk;

use std::sync::Arc;

use trefoil_core::Direction;

use self::node::{TreeBranch, TreeNode, TreePut};
use self::packed::SoughtName;
use self::walk::TreeWalk;

pub(super) use self::packed::PackedEntry;

/// About how much memory an entry takes besides the bytes of its name and its value: its part of a
/// leaf of which two thirds are used, and what the allocator adds.
pub(super) const ENTRY_BYTES: usize = 80;

/// Entries that changed, in the order of their names.
#[derive(Debug, Clone)]
pub(super) struct EntryTree {
    root: TreeNode,
}

impl Default for EntryTree {
    fn default() -> Self {
        let root = TreeNode::Leaf(Arc::default());
        Self { root }
    }
}

impl EntryTree {
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.root, TreeNode::Leaf(leaf) if leaf.len() == 0)
    }

    /// Puts an entry in. Returns the one that had its name.
    pub(super) fn put(&mut self, entry: PackedEntry) -> Option<PackedEntry> {
        let name = entry.clone();
        match self.root.put(SoughtName::new(name.name()), entry) {
            TreePut::Replaced(before) => Some(before),
            TreePut::Added => None,
            TreePut::Split(second) => {
                let first = std::mem::take(self).root;
                self.root = TreeNode::Branch(Arc::new(TreeBranch::new(first, second)));
                None
            }
        }
    }

    /// Puts in all entries of another tree.
    pub(super) fn put_all(&mut self, other: &Self) {
        let all = TreeWalk::new(&other.root, b"", None, Direction::Forwards);
        for entry in all {
            self.put(entry.clone());
        }
    }

    /// Returns the entry of a name.
    pub(super) fn get(&self, name: &[u8]) -> Option<&PackedEntry> {
        let sought = SoughtName::new(name);
        let mut node = &self.root;
        loop {
            match node {
                TreeNode::Leaf(leaf) => return leaf.find(sought),
                TreeNode::Branch(branch) => node = branch.node(branch.index(sought))?,
            }
        }
    }

    /// Returns the entries with `from <= name < to`, in either direction.
    pub(super) fn range<'t>(
        &'t self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
    ) -> impl Iterator<Item = &'t PackedEntry> + use<'t> {
        TreeWalk::new(&self.root, from, Some(to), direction)
    }
}
