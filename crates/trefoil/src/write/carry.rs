//! Carrying the state over into a log that is empty: all its entries as changes of first commits.

use trefoil_core::{Direction, Result, put_varint};
use trefoil_storage::{Group, Record, Storage};

use super::changes::put_state;
use crate::state::{Changes, StateStore, View, is_carried};

/// How many bytes of entries one commit carries.
const COMMIT_BYTES: usize = 4 * 1024 * 1024;

/// Writes the entries of `from` to the log of `to`, which is empty. They do not change meanwhile.
pub(crate) fn carry_over(from: &StateStore, to: &dyn Storage) -> Result<()> {
    let view = View::new(from);
    let mut changes = Changes::default();
    for entry in view.scan(&[], &[0xff], Direction::Forwards) {
        let (key, value) = entry?;
        if is_carried(&key) {
            changes.put(&key, None, Some(&value));
        }
        if changes.bytes.len() >= COMMIT_BYTES {
            append(to, &std::mem::take(&mut changes))?;
        }
    }
    match changes.bytes.is_empty() {
        true => Ok(()),
        false => append(to, &changes),
    }
}

fn append(to: &dyn Storage, changes: &Changes) -> Result<()> {
    let end = to.end();
    let mut record = Record {
        first_commit: end.commit + 1,
        n_commits: 1,
        first_position: end.position + 1,
        ..Record::default()
    };
    let n_events = 0;
    put_varint(&mut record.commits, n_events);
    put_state(&mut record.changes, 0, &changes.bytes);
    to.append(&Group {
        records: vec![record],
    })
    .wait()
}
