//! Checking a backup: restoring it into nothing.

use trefoil_core::Result;
use trefoil_storage::GroupLimits;

use super::assembly::{assemble_log, assemble_state};
use super::listing::NamespaceBackup;
use super::part::damaged_part;
use super::restore::FetchPart;
use crate::namespaces;
use crate::read::label;
use crate::state::Changes;
use crate::tools::{EventOrder, events_of};
use crate::write::state_changes;

/// What a sound backup of a namespace holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckedBackup {
    /// How many commits.
    pub commits: u64,
    /// How many events.
    pub events: u64,
    /// How many entries the snapshot of the state has.
    pub entries: u64,
    /// How many entries were changed after it, each change counted.
    pub changes: u64,
}

/// Does all that restoring does, except that nothing is written: fetches every part, checks its hash,
/// and reads every commit, event, entry and change. The error says what is wrong first.
pub fn check_backup(backup: &NamespaceBackup, fetch: &mut FetchPart<'_>) -> Result<CheckedBackup> {
    namespaces::check_entry(backup.entry.as_bytes())?;
    let mut checked = CheckedBackup::default();
    let mut order = EventOrder::default();
    assemble_log(backup, fetch, GroupLimits::default(), &mut |group| {
        for record in &group.records {
            let mut wrong = None;
            if record.items.has_dropped() {
                order.expect_gaps(record);
            }
            for (event, label) in events_of(record)? {
                order.check(&event, label::is_imported(label), &mut |what| {
                    wrong.get_or_insert(what);
                })?;
            }
            let read = state_changes(record, &mut |changes| {
                Changes::read(changes, &mut |_, _| {
                    checked.changes += 1;
                    Some(())
                })
            });
            if read.is_none() {
                let first = record.first_commit;
                wrong = Some(format!("unreadable changes of commits from {first} on"));
            }
            if let Some(wrong) = wrong {
                return Err(damaged_part("log", wrong));
            }
            checked.commits += u64::from(record.n_commits);
            checked.events += record.items().count() as u64;
        }
        Ok(())
    })?;
    assemble_state(backup, fetch, &mut |_, _| {
        checked.entries += 1;
        Ok(())
    })?;
    Ok(checked)
}
