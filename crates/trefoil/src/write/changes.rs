//! The commit part of a record: how many events each commit has, and what else it changes.
//!
//! First the numbers of events, one per commit; then, up to the end, changes: the commit's index in
//! the record, what sort of change it is, and the change itself.

use trefoil_core::{put_bytes, put_varint, take_bytes, take_varint};
use trefoil_storage::Record;

/// Changes of entries of the state.
const STATE: u64 = 1;

/// Appends the changes of state of the commit of this index.
pub(super) fn put_state(out: &mut Vec<u8>, commit: u64, changes: &[u8]) {
    put_varint(out, commit);
    put_varint(out, STATE);
    put_bytes(out, changes);
}

/// Hands the changes of state of a record to `visit`, in order; `None` if its commit part is not one
/// or `visit` says so.
pub(crate) fn state_changes(
    record: &Record,
    visit: &mut dyn FnMut(&[u8]) -> Option<()>,
) -> Option<()> {
    let mut rest = record.commits.as_slice();
    for _ in 0..record.n_commits {
        take_varint(&mut rest)?;
    }
    while !rest.is_empty() {
        let index = take_varint(&mut rest)?;
        let kind = take_varint(&mut rest)?;
        if kind != STATE || index >= u64::from(record.n_commits) {
            return None;
        }
        visit(take_bytes(&mut rest)?)?;
    }
    Some(())
}
