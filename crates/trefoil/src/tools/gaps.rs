//! Copying logs of which items were dropped: a log takes no record that lacks some, so others stand in for
//! them, and are dropped again.

use std::ops::Range;

use trefoil_core::Result;
use trefoil_storage::{Items, Label, Record, Storage};

/// What stands in for an item that was dropped.
const STAND_IN: &[u8] = b"dropped";

/// The positions of items that were dropped.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    ranges: Vec<Range<u64>>,
}

impl Gaps {
    /// Returns a record as it can be appended. Changes that were dropped are in the snapshot, which is copied
    /// too.
    pub(crate) fn fill(&mut self, record: &Record) -> Record {
        let mut filled = record.clone();
        filled.changes_dropped = false;
        if record.items.has_dropped() {
            let mut items = Items::default();
            for (position, item) in (record.first_position..).zip(record.items.iter()) {
                if item.is_none() {
                    self.note(position);
                }
                let (label, bytes) = item.unwrap_or((Label::default(), STAND_IN));
                items.push(label, bytes);
            }
            filled.items = items;
        }
        filled
    }

    fn note(&mut self, position: u64) {
        match self.ranges.last_mut() {
            Some(last) if last.end == position => last.end += 1,
            _ => self.ranges.push(position..position + 1),
        }
    }

    /// Returns how many items were dropped.
    pub(crate) fn len(&self) -> u64 {
        self.ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }

    /// Drops what stood in for others.
    pub(crate) fn drop_from(self, storage: &dyn Storage) -> Result<()> {
        match self.ranges.is_empty() {
            true => Ok(()),
            false => storage.drop_items(&self.ranges),
        }
    }
}
