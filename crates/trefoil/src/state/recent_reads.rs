//! The last few entries that were read.
//!
//! A command that changes an entry reads it first, to see what is there, and again to tell what the
//! change is; often it reads another one in between.

use std::cell::{Cell, RefCell};

use bytes::Bytes;
use trefoil_core::Result;

/// How many entries are remembered: those that one command has to do with.
const ENTRIES: usize = 4;

/// The last few entries that were read from what does not change.
#[derive(Debug, Default)]
pub(super) struct RecentReads {
    entries: RefCell<[RecentEntry; ENTRIES]>,
    next: Cell<usize>,
}

/// A key and its value; without a key, nothing was read yet.
#[derive(Debug, Default)]
struct RecentEntry {
    key: Vec<u8>,
    value: Option<Bytes>,
}

impl RecentReads {
    /// Returns the value of an entry, from `read` unless it is remembered. No key is empty.
    pub(super) fn get(
        &self,
        key: &[u8],
        read: impl FnOnce() -> Result<Option<Bytes>>,
    ) -> Result<Option<Bytes>> {
        let mut entries = self.entries.borrow_mut();
        if let Some(entry) = entries.iter().find(|entry| entry.key == key) {
            return Ok(entry.value.clone());
        }
        let value = read()?;
        let entry = &mut entries[self.next.get()];
        self.next.set((self.next.get() + 1) % ENTRIES);
        entry.key.clear();
        entry.key.extend_from_slice(key);
        entry.value.clone_from(&value);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_once_while_it_is_remembered() {
        let (recent, reads) = (RecentReads::default(), Cell::new(0));
        let get = |key: &'static str| {
            let read = || {
                reads.set(reads.get() + 1);
                Ok((key != "none").then(|| Bytes::from(key)))
            };
            recent.get(key.as_bytes(), read).unwrap()
        };
        for key in ["a", "none", "a", "none", "a"] {
            assert_eq!(get(key), (key != "none").then(|| Bytes::from(key)));
        }
        assert_eq!(reads.get(), 2);
        for key in ["b", "c", "d", "a"] {
            assert_eq!(get(key), Some(Bytes::from(key)));
        }
        assert_eq!(reads.get(), 6);
    }
}
