//! What is replaced and dropped in a log for good.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::{Items, Record, StoredItem};

/// Items that are replaced, and positions whose items are dropped.
#[derive(Debug, Default)]
pub struct Edits<'a> {
    stubs: BTreeMap<u64, &'a StoredItem>,
    /// In ascending order and without overlap.
    dropped: Vec<Range<u64>>,
}

impl<'a> Edits<'a> {
    /// Returns edits that put stubs in the place of items.
    pub fn replacing(stubs: &'a [StoredItem]) -> Self {
        Self {
            stubs: stubs.iter().map(|stub| (stub.position, stub)).collect(),
            dropped: Vec::new(),
        }
    }

    /// Returns edits that drop the items at these positions.
    pub fn dropping(positions: &[Range<u64>]) -> Self {
        let mut sorted = positions.to_vec();
        sorted.retain(|range| !range.is_empty());
        sorted.sort_unstable_by_key(|range| range.start);
        let mut dropped: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match dropped.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => dropped.push(range),
            }
        }
        Self {
            stubs: BTreeMap::new(),
            dropped,
        }
    }

    /// Returns the positions of the stubs.
    pub fn replaced(&self) -> Vec<u64> {
        self.stubs.keys().copied().collect()
    }

    /// Returns the ranges whose items are dropped, in ascending order and without overlap.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.dropped
    }

    /// Returns whether they change something at these positions.
    pub fn touch(&self, positions: &Range<u64>) -> bool {
        let first = self
            .dropped
            .partition_point(|range| range.end <= positions.start);
        let drops = self.dropped.get(first);
        self.stubs.range(positions.clone()).next().is_some()
            || drops.is_some_and(|range| range.start < positions.end)
    }

    /// Returns whether the item at this position is dropped.
    pub fn drop(&self, position: u64) -> bool {
        self.touch(&(position..position + 1)) && !self.stubs.contains_key(&position)
    }

    /// Applies them to the items of a record.
    pub fn apply(&self, record: &mut Record) {
        if !self.touch(&(record.first_position..record.end_position())) {
            return;
        }
        let mut items = Items::default();
        for (position, item) in (record.first_position..).zip(record.items.iter()) {
            let stub = self.stubs.get(&position);
            match item.filter(|_| !self.drop(position)) {
                None => items.push_dropped(),
                Some((label, bytes)) => match stub {
                    Some(stub) => items.push(stub.label, &stub.bytes),
                    None => items.push(label, bytes),
                },
            }
        }
        record.items = items;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_put_in_order() {
        let edits = Edits::dropping(&[7..9, 1..3, 2..4, 5..5, 4..5]);
        assert_eq!(edits.dropped, [1..5, 7..9]);
        let dropped: Vec<u64> = (0..10).filter(|position| edits.drop(*position)).collect();
        assert_eq!(dropped, [1, 2, 3, 4, 7, 8]);
        assert!(edits.touch(&(5..8)) && !edits.touch(&(5..7)) && !edits.touch(&(9..20)));
    }
}
