//! The list of the parts of a namespace's backup, as it is kept with them.

use serde::{Deserialize, Serialize};
use trefoil_core::Result;

use super::part::{BackupPart, PartKind, content_hash, damaged_part};
use super::source::{BackupBase, BackupHead, is_zero};

/// A part of a backup, by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartReference {
    /// The SHA-256 of its content, or the name of what has it in an archive.
    pub hash: String,
    /// How many bytes of content it has.
    pub bytes: u64,
    /// As [`BackupPart::first`].
    pub first: u64,
    /// As [`BackupPart::last`].
    pub last: u64,
}

impl PartReference {
    fn of(part: &BackupPart) -> Self {
        Self {
            hash: content_hash(&part.bytes),
            bytes: part.bytes.len() as u64,
            first: part.first,
            last: part.last,
        }
    }

    /// Returns the content if it is what the hash says.
    pub fn check(&self, content: Vec<u8>) -> Result<Vec<u8>> {
        let what = "the content is not what its hash says";
        match content_hash(&content) == self.hash {
            true => Ok(content),
            false => Err(damaged_part(&self.hash, what)),
        }
    }
}

/// The snapshot of the state in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackedUpState {
    /// The commit as of which it is.
    pub commit: u64,
    /// How many entries it has.
    pub entries: u64,
    /// Its parts, in order.
    pub parts: Vec<PartReference>,
}

/// A backup of a namespace: what it was like at one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamespaceBackup {
    /// The name that it had.
    pub namespace: String,
    /// Its entry in the registry: description, settings, and the hash of its token.
    pub entry: String,
    /// What tells it from others that had its name, if that is known.
    pub origin: Option<String>,
    /// How often the log had been edited before it was read: another backup builds on this one only if that is
    /// still so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub edits: u64,
    /// The last commit.
    pub commit: u64,
    /// The position of the last event.
    pub position: u64,
    /// The log up to that commit.
    pub log: Vec<PartReference>,
    /// The snapshot of the state, if there was one.
    pub state: Option<BackedUpState>,
    /// What the commits after the snapshot changed of the state.
    pub changes: Vec<PartReference>,
}

impl NamespaceBackup {
    /// Begins the list of a backup that has this head, with what it takes over from the one `before` on
    /// which it builds; `None` if the head does not say so of that one.
    pub fn begin(namespace: &str, head: &BackupHead, before: Option<&Self>) -> Option<Self> {
        let base = before.map(Self::base).unwrap_or_default();
        let is_based = head.after == base.after;
        if !is_based && head.after != 0 {
            return None;
        }
        let before = before.filter(|_| is_based && head.origin.is_some());
        let log = before.map_or(&[][..], |before| &before.log);
        let log = log.iter().filter(|part| part.last <= head.after);
        let state = match (&head.snapshot, head.has_state) {
            (None, _) => None,
            (Some(snapshot), true) => Some(BackedUpState {
                commit: snapshot.commit,
                entries: snapshot.entries,
                parts: Vec::new(),
            }),
            (Some(snapshot), false) => {
                let same = before?.state.as_ref();
                Some(same.filter(|same| same.commit == snapshot.commit)?.clone())
            }
        };
        Some(Self {
            namespace: namespace.to_owned(),
            entry: head.entry.clone(),
            origin: head.origin.clone(),
            edits: head.edits,
            commit: head.commit,
            position: head.position,
            log: log.cloned().collect(),
            state,
            changes: Vec::new(),
        })
    }

    /// Returns what the next backup can build on. The last part of the log may not be full, so it is
    /// read again.
    pub fn base(&self) -> BackupBase {
        BackupBase {
            origin: self.origin.clone(),
            after: self
                .log
                .last()
                .map_or(0, |part| part.first.saturating_sub(1)),
            snapshot: self.state.as_ref().map(|state| state.commit),
            edits: self.edits,
        }
    }

    /// Adds the next part and returns its reference; `None` if another one should follow.
    pub fn add(&mut self, part: &BackupPart) -> Option<PartReference> {
        let after = match part.kind {
            PartKind::Log => self.log.last().map_or(0, |last| last.last),
            PartKind::Changes => self.changes_end(),
            PartKind::State => {
                let parts = &self.state.as_ref()?.parts;
                parts.last().map_or(0, |last| last.last)
            }
        };
        if part.first != after + 1 || part.last < part.first {
            return None;
        }
        let reference = PartReference::of(part);
        let list = match (part.kind, &mut self.state) {
            (PartKind::Log, _) => &mut self.log,
            (PartKind::State, Some(state)) => &mut state.parts,
            _ => &mut self.changes,
        };
        list.push(reference.clone());
        Some(reference)
    }

    /// Returns whether all parts of the log and of the state are there.
    pub fn is_whole(&self) -> bool {
        let log = self.log.last().map_or(0, |last| last.last);
        log == self.commit && self.changes_end() == self.commit && self.is_state_whole()
    }

    /// Returns whether all parts of the snapshot are there.
    fn is_state_whole(&self) -> bool {
        let n_entries = |parts: &[PartReference]| parts.last().map_or(0, |last| last.last);
        let state = self.state.as_ref();
        state.is_none_or(|state| n_entries(&state.parts) == state.entries)
    }

    /// Returns what another backup can build on, of one that was cut off: a part of a snapshot is none.
    #[must_use]
    pub fn usable(mut self) -> Self {
        if !self.is_state_whole() {
            self.state = None;
        }
        self
    }

    /// Returns the commit up to which the state and its changes are there.
    fn changes_end(&self) -> u64 {
        let snapshot = self.state.as_ref().map_or(0, |state| state.commit);
        self.changes.last().map_or(snapshot, |last| last.last)
    }

    /// Returns whether `part` continues what `before` has of the log there: a part that was not full has
    /// the same bytes and more.
    pub fn continues(before: &PartReference, part: &BackupPart) -> bool {
        let bytes = usize::try_from(before.bytes).ok();
        let same = bytes.and_then(|bytes| part.bytes.get(..bytes));
        before.first == part.first && same.is_some_and(|same| content_hash(same) == before.hash)
    }

    /// Returns all parts, in the order in which they are restored.
    pub fn parts(&self) -> impl Iterator<Item = (PartKind, &PartReference)> {
        let state = self.state.iter().flat_map(|state| &state.parts);
        let changes = self.changes.iter();
        { self.log.iter().map(|part| (PartKind::Log, part)) }
            .chain(changes.map(|part| (PartKind::Changes, part)))
            .chain(state.map(|part| (PartKind::State, part)))
    }

    /// Returns how many bytes of content the parts have.
    pub fn content_bytes(&self) -> u64 {
        self.parts().map(|(_, part)| part.bytes).sum()
    }
}
