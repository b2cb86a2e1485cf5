//! Backups: a namespace as of one commit, in parts that say by their hash what they hold.
//!
//! A backup has the entry of the registry, the log, and the state: a snapshot of it, and what commits
//! changed after that. Parts are cut the same way each time, so what did not change has the hash that
//! it had, and is neither read nor written again. This module reads parts from a namespace and makes a
//! namespace of them. Where they are kept is not its business.
//!
//! - [`Namespaces::backup`](crate::Namespaces::backup) and [`backup_namespace`] hand out a backup step
//!   by step ([`BackupStep`]). Nothing waits for them, least of all the writer.
//! - [`NamespaceBackup`] lists the parts. [`restore_namespace`] makes a namespace of them, and
//!   [`check_backup`] does the same with nothing to show for it. [`backup_until`] leaves out what came
//!   after a point.
//! - [`LogCutter`] cuts what is read again where it was cut before, so that parts that did not change are the same.
//! - [`frames`] is how steps travel from a server to its clients.

mod assembly;
mod check;
mod cutting;
pub mod frames;
mod kept;
mod listing;
mod part;
mod point;
mod restore;
mod source;
#[cfg(test)]
mod tests;

pub use check::{CheckedBackup, check_backup};
pub use cutting::LogCutter;
pub use listing::{BackedUpState, NamespaceBackup, PartReference};
pub use part::{BackupPart, PartKind, content_hash};
pub use point::{RestorePoint, backup_until};
pub use restore::{FetchPart, RestoreOrder, Restored, restore_namespace};
pub use source::{BackupBase, BackupHead, BackupSnapshot, BackupStep, TakeStep, backup_namespace};

pub(crate) use part::{
    LoggedCommit, put_commit, put_dropped, put_event, take_changes, take_commit,
};
pub(crate) use point::{last_commit_by, log_end};
pub(crate) use source::{ReadBackup, read_commits, read_snapshot, stored_origin, unused};
