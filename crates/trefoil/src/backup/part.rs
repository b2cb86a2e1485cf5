//! Parts: what they hold, byte by byte.
//!
//! | kind | what follows each other in it |
//! |---|---|
//! | log | commits: position of the first event, number of events, and each event with its label, or that it was dropped |
//! | changes | what a commit changed of the state: its number, and the changes |
//! | state | entries: key and value |
//!
//! A part of the log has the same bytes however the storage has cut the log into records, and whether
//! or not it has dropped the changes of the commits. What is added to a part that is not full goes to
//! its end.

use sha2::{Digest as _, Sha256};
use trefoil_core::{Damage, Error, put_bytes, put_varint, take_bytes, take_varint};
use trefoil_storage::Label;

/// What parts hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// Commits with their events.
    Log,
    /// What commits changed of the state.
    Changes,
    /// Entries of the state.
    State,
}

impl PartKind {
    /// Every kind.
    pub const EVERY: [Self; 3] = [Self::Log, Self::Changes, Self::State];
}

/// A part of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupPart {
    /// What it holds.
    pub kind: PartKind,
    /// The number of its first commit or entry, from 1.
    pub first: u64,
    /// The number of its last one.
    pub last: u64,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Returns the SHA-256 of the content of a part, in hexadecimal digits.
pub fn content_hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A commit of a part of the log.
#[derive(Debug)]
pub(crate) struct LoggedCommit<'a> {
    pub(crate) first_position: u64,
    /// `None` is one that was dropped.
    pub(crate) events: Vec<Option<(Label, &'a [u8])>>,
}

/// Begins a commit: its events follow.
pub(crate) fn put_commit(out: &mut Vec<u8>, first_position: u64, n_events: u64) {
    put_varint(out, first_position);
    put_varint(out, n_events);
}

/// What stands for an event that was dropped.
const DROPPED: u64 = 0;
/// What stands before an event that is there.
const PRESENT: u64 = 1;

pub(crate) fn put_dropped(out: &mut Vec<u8>) {
    put_varint(out, DROPPED);
}

pub(crate) fn put_event(out: &mut Vec<u8>, label: Label, bytes: &[u8]) {
    put_varint(out, PRESENT);
    put_varint(out, u64::from(label.flags));
    put_varint(out, label.word);
    put_bytes(out, bytes);
}

/// Takes the next commit; `None` if it is not whole.
pub(crate) fn take_commit<'a>(bytes: &mut &'a [u8]) -> Option<LoggedCommit<'a>> {
    let first_position = take_varint(bytes)?;
    let n_events = take_varint(bytes)?;
    let mut events = Vec::new();
    for _ in 0..n_events {
        events.push(match take_varint(bytes)? {
            DROPPED => None,
            PRESENT => {
                let flags = u8::try_from(take_varint(bytes)?).ok()?;
                let word = take_varint(bytes)?;
                Some((Label { flags, word }, take_bytes(bytes)?))
            }
            _ => return None,
        });
    }
    Some(LoggedCommit {
        first_position,
        events,
    })
}

pub(super) fn put_changes(out: &mut Vec<u8>, commit: u64, changes: &[u8]) {
    put_varint(out, commit);
    put_bytes(out, changes);
}

pub(crate) fn take_changes<'a>(bytes: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    Some((take_varint(bytes)?, take_bytes(bytes)?))
}

pub(super) fn put_entry(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    put_bytes(out, key);
    put_bytes(out, value);
}

pub(super) fn take_entry<'a>(bytes: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    Some((take_bytes(bytes)?, take_bytes(bytes)?))
}

/// Returns what says that a part, or the list of the parts, is not what was written.
pub(super) fn damaged_part(hash: &str, what: impl Into<String>) -> Error {
    Error::Damaged(Box::new(Damage {
        file: hash.into(),
        offset: 0,
        position: 0,
        what: what.into(),
        help: "this backup cannot be restored; use another one".into(),
    }))
}
