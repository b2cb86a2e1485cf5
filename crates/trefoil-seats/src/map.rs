//! The states of all seats of a section: a string of two bits per seat, from the highest down.

use bytes::Bytes;
use trefoil_state::{Keyspace, StoredString, StringDraft};

use super::names::SectionNames;
use super::seat::SeatState;
use crate::Result;

/// How many seats share a byte.
const SEATS_PER_BYTE: usize = 4;

/// The map of a section, to read and to change; a change is complete with [`Self::save`].
#[derive(Debug)]
pub(super) struct SeatMap {
    key: Bytes,
    text: StoredString,
    draft: StringDraft,
}

impl SeatMap {
    /// Returns the map of a section. One that is not there, or too short, has available seats.
    pub(super) fn load(keyspace: &Keyspace<'_>, names: &SectionNames) -> Result<Self> {
        let key = names.map_key();
        let text = keyspace.string(&key)?.unwrap_or(StoredString::EMPTY);
        let draft = StringDraft::new(Some(text.clone()));
        Ok(Self { key, text, draft })
    }

    /// Returns the bytes as they were when the map was loaded.
    pub(super) fn bytes(&self, keyspace: &Keyspace<'_>) -> Result<Bytes> {
        keyspace.read(&self.text)
    }

    /// Returns the state of the seat at an index.
    pub(super) fn state(&mut self, keyspace: &Keyspace<'_>, index: usize) -> Result<SeatState> {
        let mut byte = [0];
        let at = (index / SEATS_PER_BYTE) as u64;
        self.draft.read(keyspace, at, &mut byte)?;
        Ok(SeatState::of_bits(byte[0] >> shift(index)))
    }

    /// Sets the state of the seat at an index.
    pub(super) fn set(
        &mut self,
        keyspace: &Keyspace<'_>,
        index: usize,
        state: SeatState,
    ) -> Result<()> {
        let mut byte = [0];
        let at = (index / SEATS_PER_BYTE) as u64;
        self.draft.read(keyspace, at, &mut byte)?;
        let kept = byte[0] & !(3 << shift(index));
        self.draft
            .write(keyspace, at, &[kept | (state as u8) << shift(index)])
    }

    /// Returns whether no bit is set.
    pub(super) fn is_clear(&self, keyspace: &Keyspace<'_>) -> Result<bool> {
        Ok(self.bytes(keyspace)?.iter().all(|byte| *byte == 0))
    }

    /// Makes it as long as this many seats need.
    pub(super) fn grow(&mut self, n_seats: usize) -> Result<()> {
        self.draft.grow(n_seats.div_ceil(SEATS_PER_BYTE) as u64)
    }

    /// Completes the change.
    pub(super) fn save(self, keyspace: &mut Keyspace<'_>) -> Result<()> {
        self.draft.save(keyspace, &self.key)
    }

    /// Replaces the map with one of this many available seats.
    pub(super) fn clear(self, keyspace: &mut Keyspace<'_>, n_seats: usize) -> Result<()> {
        let zeros = vec![0; n_seats.div_ceil(SEATS_PER_BYTE)];
        keyspace.put_string(&self.key, &zeros, None)
    }
}

/// Returns how far the bits of a seat are from the lowest ones of its byte.
fn shift(index: usize) -> usize {
    6 - index % SEATS_PER_BYTE * 2
}
