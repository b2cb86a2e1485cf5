//! Redactions in an archive: a piece is written again with stubs in the place of events.

use std::collections::BTreeMap;

use bytes::Bytes;
use trefoil_core::{Error, Event, Result};
use trefoil_storage::Label;

use super::piece::ArchivePiece;
use crate::backup::{LoggedCommit, put_commit, put_dropped, put_event, take_changes, take_commit};
use crate::removal::{KnownRedaction, is_redaction};
use crate::state::Changes;

impl ArchivePiece {
    /// Returns the piece as it is after redactions, each by the position of its event; `None` if it has
    /// nothing that they remove.
    pub fn redacted(&self, redactions: &BTreeMap<u64, KnownRedaction>) -> Result<Option<Self>> {
        let mut log = Vec::with_capacity(self.log.len());
        let mut is_changed = false;
        let mut rest = self.log.as_slice();
        while !rest.is_empty() {
            let commit = take_commit(&mut rest).ok_or_else(|| unreadable(self))?;
            put_commit(&mut log, commit.first_position, commit.events.len() as u64);
            for (position, event) in (commit.first_position..).zip(&commit.events) {
                let Some((label, bytes)) = event else {
                    put_dropped(&mut log);
                    continue;
                };
                let redaction = redactions.get(&position);
                let event = redaction.and_then(|_| decoded(position, bytes));
                let stub = redaction
                    .zip(event)
                    .and_then(|(one, event)| one.stub(&event));
                is_changed |= stub.is_some();
                put_event(&mut log, *label, stub.as_deref().unwrap_or(bytes));
            }
        }
        Ok(is_changed.then(|| Self {
            edition: self.edition + 1,
            log,
            marks: self.marks.clone(),
            changes: self.changes.clone(),
            ..*self
        }))
    }

    /// Returns whether an event may have been redacted by these commits.
    pub fn may_tell_of_redactions(&self) -> bool {
        let Some(changes) = &self.changes else {
            return true;
        };
        let (mut rest, mut tells) = (changes.as_slice(), false);
        while !rest.is_empty() {
            let read = take_changes(&mut rest).and_then(|(_, changes)| {
                Changes::read(changes, &mut |key, _| {
                    tells |= is_redaction(key);
                    Some(())
                })
            });
            if read.is_none() {
                return true;
            }
        }
        tells
    }
}

fn decoded(position: u64, bytes: &[u8]) -> Option<Event> {
    Event::decode(position, Bytes::copy_from_slice(bytes))
}

fn unreadable(piece: &ArchivePiece) -> Error {
    Error::invalid(format!("the log of {} cannot be read", piece.name()))
}

/// Returns whether two contents of a log have the same commits. One of them may have been redacted since,
/// and may have dropped events.
pub(super) fn have_same_commits(one: &[u8], other: &[u8]) -> bool {
    let (mut one, mut other) = (one, other);
    while !one.is_empty() && !other.is_empty() {
        let commits = take_commit(&mut one).zip(take_commit(&mut other));
        if !commits.is_some_and(|(one, other)| is_same_commit(&one, &other)) {
            return false;
        }
    }
    one.is_empty() && other.is_empty()
}

fn is_same_commit(one: &LoggedCommit<'_>, other: &LoggedCommit<'_>) -> bool {
    let mut pairs = (one.first_position..).zip(one.events.iter().zip(&other.events));
    one.first_position == other.first_position
        && one.events.len() == other.events.len()
        && pairs.all(|(position, pair)| match pair {
            (Some(one), Some(other)) => is_same_event(position, *one, *other),
            _ => true,
        })
}

fn is_same_event(position: u64, one: (Label, &[u8]), other: (Label, &[u8])) -> bool {
    let decoded = |(_, bytes): (Label, &[u8])| decoded(position, bytes);
    let is_stub_of = |(one, other): (Event, Event)| {
        one.id() == other.id() && (one.is_redacted() || other.is_redacted())
    };
    one == other || decoded(one).zip(decoded(other)).is_some_and(is_stub_of)
}
