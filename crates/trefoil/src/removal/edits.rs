//! How often the log was edited: removed events were dropped from it, or stubs put into it. A backup builds on
//! an earlier one only if that has the log as it is now, so that what was removed leaves the repository with
//! the backups from before.

use bytes::Bytes;
use trefoil_core::{Result, put_varint, take_varint};

use super::entries::{REMOVAL, read};
use crate::state::{StoreReader, View};

/// The entry that counts.
const EDITS: &[u8] = &[REMOVAL, b'e'];

/// Returns how often the log was edited.
pub(crate) fn log_edits(entries: &StoreReader) -> Result<u64> {
    decode(entries.get(EDITS)?.as_deref())
}

fn decode(value: Option<&[u8]>) -> Result<u64> {
    let edits = read(value, "the log", |mut value| take_varint(&mut value))?;
    Ok(edits.unwrap_or(0))
}

impl View {
    /// Counts that the log was edited.
    pub(crate) fn count_log_edit(&mut self) -> Result<()> {
        let edits = decode(self.get(EDITS)?.as_deref())?;
        let mut value = Vec::new();
        put_varint(&mut value, edits + 1);
        self.put(Bytes::from_static(EDITS), value.into())
    }
}
