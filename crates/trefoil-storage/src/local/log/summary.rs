//! What a segment holds, in numbers: kept in the sidecar of a plain segment and in the header of a
//! compressed one, so that opening reads neither.

use super::layout::{RecordHeader, u32_at, u64_at};

/// The length of a stored summary.
pub(crate) const SUMMARY_BYTES: usize = 64;

/// What a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// The number of the first commit; 0 if there is no record.
    pub(crate) first_commit: u64,
    /// The number of the last commit.
    pub(crate) last_commit: u64,
    /// The first position of the first record, whether or not it has items.
    pub(crate) first_position: u64,
    /// The lowest position the next record may have.
    pub(crate) next_position: u64,
    /// The position of the last item; 0 if there is none.
    pub(crate) last_position: u64,
    pub(crate) n_items: u32,
    pub(crate) n_records: u32,
    /// The bytes of the plain segment up to the end of its last record.
    pub(crate) used_bytes: u64,
    /// The bytes that dropping all changes saves: those of the changes, and all of records without
    /// items.
    pub(crate) droppable_bytes: u64,
}

/// The bytes that dropping the changes of a record saves, which is at `start..end` of its segment.
pub(crate) fn droppable(header: &RecordHeader, start: usize, end: usize) -> u64 {
    match header.n_items {
        0 => (end - start) as u64,
        _ => header.change_bytes.into(),
    }
}

impl Summary {
    /// Takes the next record in, which ends at offset `end`.
    pub(crate) fn add(&mut self, header: &RecordHeader, end: u64) {
        if self.n_records == 0 {
            self.first_commit = header.first_commit;
            self.first_position = header.first_position;
        }
        self.last_commit = header.last_commit();
        self.next_position = header.end_position();
        if header.n_items > 0 {
            self.last_position = header.end_position() - 1;
        }
        self.n_items += header.n_items;
        self.n_records += 1;
        self.droppable_bytes += droppable(header, self.used_bytes as usize, end as usize);
        self.used_bytes = end;
    }

    pub(crate) fn encode(&self) -> [u8; SUMMARY_BYTES] {
        let mut out = [0; SUMMARY_BYTES];
        out[..8].copy_from_slice(&self.first_commit.to_le_bytes());
        out[8..16].copy_from_slice(&self.last_commit.to_le_bytes());
        out[16..24].copy_from_slice(&self.first_position.to_le_bytes());
        out[24..32].copy_from_slice(&self.next_position.to_le_bytes());
        out[32..40].copy_from_slice(&self.last_position.to_le_bytes());
        out[40..44].copy_from_slice(&self.n_items.to_le_bytes());
        out[44..48].copy_from_slice(&self.n_records.to_le_bytes());
        out[48..56].copy_from_slice(&self.used_bytes.to_le_bytes());
        out[56..].copy_from_slice(&self.droppable_bytes.to_le_bytes());
        out
    }

    /// Reads a summary from the beginning of `bytes`, which are at least [`SUMMARY_BYTES`].
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        Self {
            first_commit: u64_at(bytes, 0),
            last_commit: u64_at(bytes, 8),
            first_position: u64_at(bytes, 16),
            next_position: u64_at(bytes, 24),
            last_position: u64_at(bytes, 32),
            n_items: u32_at(bytes, 40),
            n_records: u32_at(bytes, 44),
            used_bytes: u64_at(bytes, 48),
            droppable_bytes: u64_at(bytes, 56),
        }
    }
}
