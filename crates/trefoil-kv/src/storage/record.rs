//! A record without its items and changes.

use trefoil_core::{put_bytes, put_varint, take_bytes, take_varint};
use trefoil_storage::Record;

/// Where the changes of a record are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangesPlace {
    /// It never had any.
    Nowhere,
    /// Under a key of their own, unless they were dropped.
    Beside,
    /// They were dropped.
    Dropped,
}

/// What is stored of a record under its first commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredRecord {
    pub(super) first_commit: u64,
    pub(super) n_commits: u32,
    pub(super) first_position: u64,
    pub(super) n_items: u64,
    pub(super) changes: ChangesPlace,
    pub(super) commits: Vec<u8>,
}

impl StoredRecord {
    pub(super) fn of(record: &Record) -> Self {
        Self {
            first_commit: record.first_commit,
            n_commits: record.n_commits,
            first_position: record.first_position,
            n_items: record.items.len() as u64,
            changes: match record.changes.is_empty() {
                true => ChangesPlace::Nowhere,
                false => ChangesPlace::Beside,
            },
            commits: record.commits.clone(),
        }
    }

    pub(super) fn last_commit(&self) -> u64 {
        self.first_commit + u64::from(self.n_commits) - 1
    }

    pub(super) fn end_position(&self) -> u64 {
        self.first_position + self.n_items
    }

    /// Takes in the next record, if neither has items, and no changes are left of either. Returns
    /// whether it did.
    pub(super) fn absorb(&mut self, next: &Self) -> bool {
        let n_commits = self.n_commits.checked_add(next.n_commits);
        let is_empty = self.n_items == 0 && next.n_items == 0;
        let is_same = next.first_position == self.first_position;
        match n_commits.filter(|_| is_empty && is_same) {
            Some(n_commits) => {
                self.n_commits = n_commits;
                self.commits.extend_from_slice(&next.commits);
                self.changes = ChangesPlace::Dropped;
                true
            }
            None => false,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.commits.len() + 40);
        put_varint(&mut out, u64::from(self.n_commits));
        put_varint(&mut out, self.first_position);
        put_varint(&mut out, self.n_items);
        put_varint(
            &mut out,
            match self.changes {
                ChangesPlace::Nowhere => 0,
                ChangesPlace::Beside => 1,
                ChangesPlace::Dropped => 2,
            },
        );
        put_bytes(&mut out, &self.commits);
        out
    }

    pub(super) fn decode(first_commit: u64, mut content: &[u8]) -> Option<Self> {
        let input = &mut content;
        let n_commits = u32::try_from(take_varint(input)?).ok()?;
        let first_position = take_varint(input)?;
        let n_items = take_varint(input)?;
        let changes = match take_varint(input)? {
            0 => ChangesPlace::Nowhere,
            1 => ChangesPlace::Beside,
            2 => ChangesPlace::Dropped,
            _ => return None,
        };
        let commits = take_bytes(input)?.to_vec();
        first_commit.checked_add(u64::from(n_commits))?;
        first_position.checked_add(n_items)?;
        (n_commits > 0 && input.is_empty()).then_some(Self {
            first_commit,
            n_commits,
            first_position,
            n_items,
            changes,
            commits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back() {
        let mut stored = StoredRecord {
            first_commit: 7,
            n_commits: 3,
            first_position: 300,
            n_items: 0,
            changes: ChangesPlace::Beside,
            commits: b"what".to_vec(),
        };
        assert_eq!(
            StoredRecord::decode(7, &stored.encode()),
            Some(stored.clone())
        );
        let next = StoredRecord {
            first_commit: 10,
            n_commits: 1,
            ..stored.clone()
        };
        assert!(stored.absorb(&next));
        assert_eq!((stored.last_commit(), stored.n_commits), (10, 4));
        assert_eq!(stored.commits, b"whatwhat");
        let with_items = StoredRecord { n_items: 1, ..next };
        assert!(!stored.absorb(&with_items));
        assert_eq!(StoredRecord::decode(7, b"\x00\x01\x01\x00\x00"), None);
    }
}
