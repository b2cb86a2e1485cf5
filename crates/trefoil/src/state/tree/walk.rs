//! A walk over entries of the tree, in either direction.

use trefoil_core::Direction;

use super::node::{TreeBranch, TreeLeaf, TreeNode};
use super::packed::{PackedEntry, SoughtName};

/// A walk over entries.
pub(super) struct TreeWalk<'t> {
    direction: Direction,
    /// Where it ends: before this name if it goes forwards, with it if it goes backwards.
    end: Option<Vec<u8>>,
    /// The branches above the leaf, and which of their nodes it is in.
    path: Vec<(&'t TreeBranch, usize)>,
    /// How many entries of the leaf come before the place it is at.
    leaf: Option<(&'t TreeLeaf, usize)>,
}

impl<'t> TreeWalk<'t> {
    /// Walks over the entries with `from <= name < to`; without `to`, to the end.
    pub(super) fn new(
        root: &'t TreeNode,
        from: &[u8],
        to: Option<&[u8]>,
        direction: Direction,
    ) -> Self {
        let (start, end) = match direction {
            Direction::Forwards => (Some(from), to.map(<[u8]>::to_vec)),
            Direction::Backwards => (to, Some(from.to_vec())),
        };
        let mut walk = Self {
            direction,
            end,
            path: Vec::new(),
            leaf: None,
        };
        walk.descend(root, start);
        walk
    }

    /// Goes down to the leaf where a name is or would be; without one, to the first or the last
    /// leaf.
    fn descend(&mut self, mut node: &'t TreeNode, name: Option<&[u8]>) {
        let sought = name.map(SoughtName::new);
        let side = |len: usize| match self.direction {
            Direction::Forwards => 0,
            Direction::Backwards => len,
        };
        loop {
            match node {
                TreeNode::Leaf(leaf) => {
                    let place = sought.map_or_else(|| side(leaf.len()), |name| leaf.rank(name));
                    self.leaf = Some((leaf, place));
                    return;
                }
                TreeNode::Branch(branch) => {
                    let last = branch.len() - 1;
                    let index = sought.map_or_else(|| side(last), |name| branch.index(name));
                    self.path.push((branch, index));
                    let Some(next) = branch.node(index) else {
                        return;
                    };
                    node = next;
                }
            }
        }
    }

    /// Goes on to the next leaf, if there is one.
    fn next_leaf(&mut self) {
        self.leaf = None;
        while let Some((branch, index)) = self.path.pop() {
            let next = match self.direction {
                Direction::Forwards => index.checked_add(1),
                Direction::Backwards => index.checked_sub(1),
            };
            if let Some(next) = next
                && let Some(node) = branch.node(next)
            {
                self.path.push((branch, next));
                return self.descend(node, None);
            }
        }
    }

    /// Returns the entry that comes next, wherever the walk ends.
    fn step(&mut self) -> Option<&'t PackedEntry> {
        loop {
            let (leaf, place) = self.leaf.as_mut()?;
            let index = match self.direction {
                Direction::Forwards => Some(*place),
                Direction::Backwards => place.checked_sub(1),
            };
            if let Some(index) = index
                && let Some(entry) = leaf.entry(index)
            {
                *place = match self.direction {
                    Direction::Forwards => index + 1,
                    Direction::Backwards => index,
                };
                return Some(entry);
            }
            self.next_leaf();
        }
    }
}

impl<'t> Iterator for TreeWalk<'t> {
    type Item = &'t PackedEntry;

    fn next(&mut self) -> Option<&'t PackedEntry> {
        let entry = self.step()?;
        let is_over = match (&self.end, self.direction) {
            (None, _) => false,
            (Some(end), Direction::Forwards) => entry.name() >= end.as_slice(),
            (Some(end), Direction::Backwards) => entry.name() < end.as_slice(),
        };
        if is_over {
            self.leaf = None;
            self.path.clear();
            return None;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use proptest::prelude::*;

    use super::super::EntryTree;
    use super::*;

    type Model = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    /// Names of which many begin with the same bytes, and some are the beginnings of others.
    fn name() -> impl Strategy<Value = Vec<u8>> {
        let bytes = proptest::collection::vec(0_u8..3, 0..4);
        let prefix = prop_oneof![
            Just(Vec::new()),
            Just(vec![7; 14]),
            Just(vec![0; 15]),
            Just(vec![7; 20]),
        ];
        (prefix, bytes, any::<u8>()).prop_map(|(prefix, bytes, last)| {
            let last = if last < 128 { vec![] } else { vec![last] };
            [prefix, bytes, last].concat()
        })
    }

    fn check(tree: &EntryTree, model: &Model, from: &[u8], to: &[u8]) {
        for direction in [Direction::Forwards, Direction::Backwards] {
            let range = (Bound::Included(from), Bound::Excluded(to));
            let mut expected: Vec<_> = match from < to {
                true => model.range::<[u8], _>(range).collect(),
                false => Vec::new(),
            };
            if direction == Direction::Backwards {
                expected.reverse();
            }
            let found = tree.range(from, to, direction);
            let found: Vec<_> = found
                .map(|entry| (entry.name().to_vec(), entry.value().map(<[u8]>::to_vec)))
                .collect();
            let found: Vec<_> = found.iter().map(|(name, value)| (name, value)).collect();
            assert_eq!(found, expected, "{direction:?}");
        }
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_map_of_which_copies_stay_as_they_are(
            puts in proptest::collection::vec((name(), any::<Option<u8>>()), 0..3000),
            (from, to) in (name(), name()),
            copied_at in 0_usize..3000,
        ) {
            let (mut tree, mut model) = (EntryTree::default(), Model::new());
            let mut copy = None;
            for (index, (name, value)) in puts.iter().enumerate() {
                if index == copied_at {
                    copy = Some((tree.clone(), model.clone()));
                }
                let value = value.map(|byte| vec![byte; usize::from(byte)]);
                let before = tree.put(PackedEntry::new(name, value.as_deref()));
                let before = before.map(|before| before.value().map(<[u8]>::to_vec));
                prop_assert_eq!(before, model.insert(name.clone(), value));
                prop_assert!(!tree.is_empty());
            }
            for (tree, model) in [(tree, model)].iter().chain(&copy) {
                check(tree, model, &from, &to);
                check(tree, model, &[], &[255; 30]);
                for (name, value) in model {
                    let entry = tree.get(name).unwrap();
                    let shared = entry.clone().into_value();
                    prop_assert_eq!(shared.as_deref(), value.as_deref());
                    let (name_again, value_again) = entry.shared();
                    prop_assert_eq!(name_again.as_ref(), name.as_slice());
                    prop_assert_eq!(value_again.as_deref(), value.as_deref());
                }
                prop_assert_eq!(tree.get(&from).is_some(), model.contains_key(&from));
            }
        }
    }

    #[test]
    fn names_that_come_in_order_fill_the_nodes() {
        let mut tree = EntryTree::default();
        for number in 0..10_000_u32 {
            tree.put(PackedEntry::new(&number.to_be_bytes(), Some(&[])));
        }
        let walk = tree.range(&[], &[255], Direction::Forwards);
        assert_eq!(walk.count(), 10_000);
        for number in 0..10_000_u32 {
            assert!(tree.get(&number.to_be_bytes()).is_some(), "{number}");
        }
    }
}
