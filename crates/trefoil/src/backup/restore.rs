//! Making a namespace of a backup.

use trefoil_core::{NamespaceId, Result, Token};
use trefoil_storage::{Group, Storage};

use super::assembly::{assemble_log, assemble_state};
use super::kept::{forget_redactions, keep_redactions, kept_redactions};
use super::listing::{NamespaceBackup, PartReference};
use crate::home::Home;
use crate::namespaces;
use crate::tools::{Gaps, make_namespace};
use crate::{KnownRedaction, Options};

/// Returns the content of a part, which it has found to be what was written; see
/// [`PartReference::check`].
pub type FetchPart<'a> = dyn FnMut(&PartReference) -> Result<Vec<u8>> + 'a;

/// What restoring a namespace did.
#[derive(Debug)]
#[non_exhaustive]
pub struct Restored {
    /// The token that it got, if that is another one.
    pub token: Option<Token>,
    /// How many events were redacted again.
    pub redacted: u64,
    /// How many events are missing that were there at this point: they were removed later, and dropped before
    /// the backup was made.
    pub missing: u64,
}

/// How a namespace is restored.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreOrder<'a> {
    /// Redactions that others than the backup know.
    pub redactions: &'a [KnownRedaction],
    /// Whether it gets another token also if its name stays.
    pub with_new_token: bool,
    /// Whether a namespace of this id is deleted for it.
    pub replaces: bool,
}

/// Makes the namespace `id` of a backup. There must be none of this id, unless it is to be replaced; what an
/// earlier attempt left is removed. Its token is the one that it had when the backup was made, unless it
/// gets another one: if it is ordered so, or the namespace gets another name. Events that the backup knows
/// to be redacted, and those that others know, are redacted before the namespace is one. If that is cut
/// short after another one was deleted for it, the next attempt knows of them, too.
pub fn restore_namespace(
    to: &dyn Home,
    id: &NamespaceId,
    backup: &NamespaceBackup,
    order: RestoreOrder<'_>,
    options: &Options,
    fetch: &mut FetchPart<'_>,
) -> Result<Restored> {
    let text = backup.entry.as_bytes();
    let (entry, token) = namespaces::restored_entry(id, text, order.with_new_token)?;
    let now = options.clock.now();
    let (commit, from) = (backup.commit, backup.namespace.as_str());
    let details = format!("{{\"commit\":{commit},\"from\":\"{from}\"}}");
    namespaces::audit::note_command(to, now, "backup.restore", id, Some(details))?;
    let mut redactions = kept_redactions(to, id)?;
    redactions.extend(order.redactions);
    if order.replaces
        && let Some(replaced) = to.entry(id)?
    {
        keep_redactions(to, id, &redactions)?;
        to.delete(id, replaced.stamp.incarnation)?()?;
    }
    let mut n_dropped = 0;
    let mut fill = |storage: &dyn Storage| {
        let mut gaps = Gaps::default();
        assemble_log(backup, fetch, storage.group_limits(), &mut |group| {
            let records = group.records.iter().map(|record| gaps.fill(record));
            let records = records.collect();
            storage.append(&Group { records }).wait()
        })?;
        n_dropped = gaps.len();
        gaps.drop_from(storage)?;
        if let Some(state) = &backup.state {
            storage.write_snapshot(state.commit, &mut |sink| {
                assemble_state(backup, fetch, &mut |key, value| {
                    sink(key.to_vec(), value.to_vec())
                })
            })?;
        }
        // Nobody knows when something of the state is due, so it is looked at soon.
        let has_state = backup.state.is_some() || !backup.changes.is_empty();
        Ok(has_state.then_some(0))
    };
    let (mut redacted, mut n_expected) = (0, 0);
    make_namespace(to, id, &entry, options, &mut fill, &mut |database| {
        redacted = database.redact_again(&redactions)?;
        n_expected = database.drop_again()?;
        Ok(())
    })?;
    forget_redactions(to, id)?;
    Ok(Restored {
        token,
        redacted,
        missing: n_dropped.saturating_sub(n_expected),
    })
}
