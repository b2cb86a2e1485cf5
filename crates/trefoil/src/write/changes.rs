//! The changes of a record: the commit's index in the record, what sort of change it is, and the
//! change itself, up to the end. They are dropped once a snapshot has what they lead to.

use trefoil_core::{put_bytes, put_varint, take_bytes, take_varint};
use trefoil_storage::Record;

/// Changes of entries of the state.
const STATE: u64 = 1;

/// Appends the changes of state of the commit of this index.
pub(crate) fn put_state(out: &mut Vec<u8>, commit: u64, changes: &[u8]) {
    put_varint(out, commit);
    put_varint(out, STATE);
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
    visit: &mut dyn FnMut(&[u8]) -> Option<()>,
) -> Option<()> {
    indexed_changes(record, &mut |_, changes| visit(changes))
}

/// Appends the changes of state of the commit of this index to `out`; `None` if the record has none
/// that can be read.
pub(crate) fn changes_of_commit(record: &Record, commit: u64, out: &mut Vec<u8>) -> Option<()> {
    indexed_changes(record, &mut |index, changes| {
        if index == commit {
            out.extend_from_slice(changes);
        }
        Some(())
    })
}

/// Hands the changes of state of a record to `visit`, each with the index of its commit.
pub(crate) fn indexed_changes(
    record: &Record,
    visit: &mut dyn FnMut(u64, &[u8]) -> Option<()>,
) -> Option<()> {
    let mut rest = record.changes.as_slice();
    while !rest.is_empty() {
        let index = take_varint(&mut rest)?;
        let kind = take_varint(&mut rest)?;
        if kind != STATE || index >= u64::from(record.n_commits) {
            return None;
        }
        visit(index, take_bytes(&mut rest)?)?;
    }
    Some(())
}
