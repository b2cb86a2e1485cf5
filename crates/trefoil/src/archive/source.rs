//! Reading what an archive needs from an open namespace. Nobody waits for it, least of all the writer.

use std::sync::Arc;

use trefoil_core::{Result, Timestamp};
use trefoil_storage::Storage;

use super::piece::{ArchiveMark, ArchivePiece};
use super::redacting::have_same_commits;
use crate::Clock;
use crate::backup::{BackupSnapshot, TakeStep, read_commits, read_snapshot};
use crate::removal::{KnownRedaction, known_redactions};
use crate::state::StateStore;

/// A namespace that is archived.
#[derive(Debug)]
pub struct ArchiveSource {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) store: Arc<StateStore>,
    pub(crate) clock: Clock,
    pub(crate) created: Timestamp,
    pub(crate) generation: u64,
}

impl ArchiveSource {
    /// Returns when the namespace was made.
    pub fn created(&self) -> Timestamp {
        self.created
    }

    /// Returns how often all events were replaced, and so the log.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the number of the last commit.
    pub fn end(&self) -> u64 {
        self.storage.end().commit
    }

    /// Returns the commits after this one, as many as fit into a piece; `None` if there are none.
    pub fn next(&self, after: u64) -> Result<Option<ArchivePiece>> {
        let end = self.end();
        // The commits were made before this.
        let millis = self.clock.now().millis();
        match end <= after {
            true => Ok(None),
            false => self.read(after, end, millis).map(Some),
        }
    }

    /// Returns whether the log has the commits of a piece that was read earlier: the same events, unless
    /// they were redacted or dropped since, and the same changes unless they were dropped.
    pub fn has(&self, piece: &ArchivePiece) -> Result<bool> {
        let (mut after, last) = (piece.first - 1, piece.last());
        if self.end() < last {
            return Ok(false);
        }
        let (mut log, mut changes) = (Vec::new(), Some(Vec::new()));
        while after < last {
            let read = self.read(after, last, 0)?;
            after = read.last();
            log.extend(read.log);
            changes = changes.zip(read.changes).map(|(mut all, next)| {
                all.extend(next);
                all
            });
        }
        let is_different = |changes: &Vec<u8>| piece.changes.as_ref() != Some(changes);
        let has_other_changes =
            piece.changes.is_some() && changes.as_ref().is_some_and(is_different);
        Ok(!has_other_changes && have_same_commits(&log, &piece.log))
    }

    fn read(&self, after: u64, until: u64, millis: u64) -> Result<ArchivePiece> {
        let read = read_commits(self.storage.as_ref(), after, until)?;
        Ok(ArchivePiece {
            first: after + 1,
            position: read.position,
            edition: 0,
            marks: vec![ArchiveMark {
                commit: read.log.last,
                millis,
                was_last: read.log.last == until,
            }],
            log: read.log.bytes,
            changes: read.changes,
        })
    }

    /// Returns all redactions, in the order of their positions.
    pub fn redactions(&self) -> Result<Vec<KnownRedaction>> {
        known_redactions(&self.store)
    }

    /// Returns the snapshot of the state that the storage has, if it has one.
    pub fn snapshot(&self) -> Option<BackupSnapshot> {
        self.storage.snapshot().map(Into::into)
    }

    /// Hands the snapshot of this commit to `take`, in parts. Returns whether it was still that one.
    pub fn read_snapshot(&self, commit: u64, take: &mut TakeStep<'_>) -> Result<bool> {
        read_snapshot(self.storage.as_ref(), commit, take)
    }
}
