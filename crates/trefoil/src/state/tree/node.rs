//! The nodes of the tree: leaves hold entries, branches hold nodes.
//!
//! A node that somebody else refers to is copied before it is changed.

use std::sync::Arc;

use super::packed::{PackedEntry, SoughtName};

/// How many entries a leaf holds: so many that it takes a kibibyte.
const LEAF_ENTRIES: usize = 31;

/// How many nodes a branch holds.
const BRANCH_NODES: usize = 32;

#[derive(Debug, Clone)]
pub(super) enum TreeNode {
    Leaf(Arc<TreeLeaf>),
    Branch(Arc<TreeBranch>),
}

/// Entries in the order of their names.
#[derive(Debug, Clone, Default)]
pub(super) struct TreeLeaf {
    len: usize,
    heads: [u128; LEAF_ENTRIES],
    entries: [Option<PackedEntry>; LEAF_ENTRIES],
}

/// Nodes in the order of the names in them. All names in a node are at or after its bound, and before
/// that of the next one; the bound of the first does not count.
#[derive(Debug, Clone, Default)]
pub(super) struct TreeBranch {
    len: usize,
    heads: [u128; BRANCH_NODES],
    bounds: [Option<Arc<[u8]>>; BRANCH_NODES],
    nodes: [Option<TreeNode>; BRANCH_NODES],
}

/// What became of a node when an entry was put into it.
pub(super) enum TreePut {
    /// The entry replaced this one.
    Replaced(PackedEntry),
    Added,
    /// The same, and the second half of the node is now this one.
    Split(SplitNode),
}

/// A node that comes after another one.
pub(super) struct SplitNode {
    head: u128,
    bound: Arc<[u8]>,
    node: TreeNode,
}

impl TreeNode {
    pub(super) fn put(&mut self, sought: SoughtName<'_>, entry: PackedEntry) -> TreePut {
        match self {
            Self::Leaf(leaf) => Arc::make_mut(leaf).put(sought, entry),
            Self::Branch(branch) => Arc::make_mut(branch).put(sought, entry),
        }
    }
}

impl TreeLeaf {
    /// Returns how many entries come before a name.
    pub(super) fn rank(&self, sought: SoughtName<'_>) -> usize {
        sought.rank(&self.heads[..self.len], |index| self.name(index))
    }

    pub(super) fn entry(&self, index: usize) -> Option<&PackedEntry> {
        self.entries.get(index)?.as_ref()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn name(&self, index: usize) -> &[u8] {
        self.entry(index).map_or(&[], PackedEntry::name)
    }

    pub(super) fn find(&self, sought: SoughtName<'_>) -> Option<&PackedEntry> {
        let rank = self.rank(sought);
        let entry = self.entry(rank)?;
        (self.heads[rank] == sought.head && entry.name() == sought.bytes).then_some(entry)
    }

    fn put(&mut self, sought: SoughtName<'_>, entry: PackedEntry) -> TreePut {
        let rank = self.rank(sought);
        if self.heads.get(rank) == Some(&sought.head)
            && self.name(rank) == sought.bytes
            && let Some(before) = self.entries.get_mut(rank).and_then(Option::as_mut)
        {
            return TreePut::Replaced(std::mem::replace(before, entry));
        }
        if self.len < LEAF_ENTRIES {
            self.insert(rank, sought.head, entry);
            return TreePut::Added;
        }
        let n_kept = n_kept(rank, LEAF_ENTRIES);
        let mut second = self.split_off(n_kept);
        match rank.checked_sub(n_kept) {
            Some(rank) => second.insert(rank, sought.head, entry),
            None => self.insert(rank, sought.head, entry),
        }
        TreePut::Split(SplitNode {
            head: second.heads[0],
            bound: second.name(0).into(),
            node: TreeNode::Leaf(Arc::new(second)),
        })
    }

    fn insert(&mut self, rank: usize, head: u128, entry: PackedEntry) {
        insert(&mut self.heads[..=self.len], rank, head);
        insert(&mut self.entries[..=self.len], rank, Some(entry));
        self.len += 1;
    }

    fn split_off(&mut self, n_kept: usize) -> Self {
        let mut second = Self {
            len: self.len - n_kept,
            ..Self::default()
        };
        let moved = n_kept..self.len;
        second.heads[..moved.len()].copy_from_slice(&self.heads[moved.clone()]);
        second.entries[..moved.len()].swap_with_slice(&mut self.entries[moved]);
        self.len = n_kept;
        second
    }
}

impl TreeBranch {
    /// Returns a branch of two nodes.
    pub(super) fn new(first: TreeNode, second: SplitNode) -> Self {
        let mut branch = Self {
            len: 1,
            ..Self::default()
        };
        branch.nodes[0] = Some(first);
        branch.insert(1, second);
        branch
    }

    /// Returns the index of the node that holds a name if it is there.
    pub(super) fn index(&self, sought: SoughtName<'_>) -> usize {
        let heads = &self.heads[..self.len];
        let rank = sought.rank(&heads[1..], |index| self.bound(index + 1));
        let next = rank + 1;
        match heads.get(next) {
            Some(head) if *head == sought.head && self.bound(next) == sought.bytes => next,
            _ => rank,
        }
    }

    pub(super) fn node(&self, index: usize) -> Option<&TreeNode> {
        self.nodes.get(index)?.as_ref()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn bound(&self, index: usize) -> &[u8] {
        self.bounds[index].as_deref().unwrap_or_default()
    }

    fn put(&mut self, sought: SoughtName<'_>, entry: PackedEntry) -> TreePut {
        let index = self.index(sought);
        let Some(node) = &mut self.nodes[index] else {
            return TreePut::Added;
        };
        let new = match node.put(sought, entry) {
            TreePut::Split(new) => new,
            put => return put,
        };
        let rank = index + 1;
        if self.len < BRANCH_NODES {
            self.insert(rank, new);
            return TreePut::Added;
        }
        let n_kept = n_kept(rank, BRANCH_NODES);
        let mut second = self.split_off(n_kept);
        match rank.checked_sub(n_kept) {
            Some(rank) => second.insert(rank, new),
            None => self.insert(rank, new),
        }
        TreePut::Split(SplitNode {
            head: second.heads[0],
            bound: second.bounds[0].take().unwrap_or_default(),
            node: TreeNode::Branch(Arc::new(second)),
        })
    }

    fn insert(&mut self, rank: usize, new: SplitNode) {
        insert(&mut self.heads[..=self.len], rank, new.head);
        insert(&mut self.bounds[..=self.len], rank, Some(new.bound));
        insert(&mut self.nodes[..=self.len], rank, Some(new.node));
        self.len += 1;
    }

    fn split_off(&mut self, n_kept: usize) -> Self {
        let mut second = Self {
            len: self.len - n_kept,
            ..Self::default()
        };
        let moved = n_kept..self.len;
        second.heads[..moved.len()].copy_from_slice(&self.heads[moved.clone()]);
        second.bounds[..moved.len()].swap_with_slice(&mut self.bounds[moved.clone()]);
        second.nodes[..moved.len()].swap_with_slice(&mut self.nodes[moved]);
        self.len = n_kept;
        second
    }
}

/// Returns how many of a full node stay in it when it is split to take one more at this rank: half of
/// them, or all if names come in order.
fn n_kept(rank: usize, n_full: usize) -> usize {
    if rank == n_full { n_full } else { n_full / 2 }
}

/// Puts something in its place among the others; the last place is free.
fn insert<T>(places: &mut [T], rank: usize, new: T) {
    places[rank..].rotate_right(1);
    places[rank] = new;
}
