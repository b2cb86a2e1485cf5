//! The changes of a record: the commit's index in the record, what sort of change it is, and the
//! change itself, up to the end. They are dropped once a snapshot has what they lead to.

use trefoil_core::{put_bytes, put_varint, take_bytes, take_varint};
use trefoil_storage::Record;

use crate::state::ChangeCoding;

/// Changes of entries of the state, as older versions wrote them.
const PATCHED_STATE: u64 = 1;
/// Changes of entries of the state.
const EDITED_STATE: u64 = 2;

/// Appends the changes of state of the commit of this index.
pub(super) fn put_state(out: &mut Vec<u8>, commit: u64, changes: &[u8]) {
    put_varint(out, commit);
    put_varint(out, EDITED_STATE);
    put_bytes(out, changes);
}

/// About what a record takes in the log besides what it holds.
const RECORD_BYTES: u64 = 64;

/// About how many bytes of the log the changes of a record take.
pub(crate) fn logged_bytes(record: &Record) -> u64 {
    match record.changes.len() as u64 {
        0 => 0,
        bytes => bytes + RECORD_BYTES,
    }
}

/// Hands the changes of state of a record to `visit`, in order; `None` if they are none or
/// `visit` says so.
pub(crate) fn state_changes(
    record: &Record,
    visit: &mut dyn FnMut(ChangeCoding, &[u8]) -> Option<()>,
) -> Option<()> {
    let mut rest = record.changes.as_slice();
    while !rest.is_empty() {
        let index = take_varint(&mut rest)?;
        let coding = match take_varint(&mut rest)? {
            PATCHED_STATE => ChangeCoding::Patches,
            EDITED_STATE => ChangeCoding::Edits,
            _ => return None,
        };
        if index >= u64::from(record.n_commits) {
            return None;
        }
        visit(coding, take_bytes(&mut rest)?)?;
    }
    Some(())
}
