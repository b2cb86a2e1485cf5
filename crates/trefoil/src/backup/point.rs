//! Restoring to a point: the commit that a position or a time stands for, and a backup that ends there.
//!
//! A commit is restored as a whole or not at all. One that only changes the state has no time of its
//! own: it counts to the events before it.

use bytes::Bytes;
use trefoil_core::{Error, Event, Result, Timestamp};
use trefoil_storage::LogEnd;

use super::listing::{NamespaceBackup, PartReference};
use super::part::{LoggedCommit, damaged_part, take_commit};
use super::restore::FetchPart;
use crate::read::label;

/// Up to where a namespace is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestorePoint {
    /// Up to this commit.
    Commit(u64),
    /// All commits before the first one with an event after this position.
    Position(u64),
    /// All commits before the first one with an event after this time. Events that were imported
    /// brought their times along, so they do not count.
    Time(Timestamp),
}

impl RestorePoint {
    /// Returns whether a commit lies beyond the point; `None` if it does not tell.
    fn is_before(self, number: u64, commit: &LoggedCommit<'_>) -> Option<bool> {
        match self {
            Self::Commit(last) => Some(last < number),
            Self::Position(_) if commit.events.is_empty() => None,
            Self::Position(last) => Some(last < commit.last_position()),
            Self::Time(last) => Some(last < commit.time()?),
        }
    }
}

impl std::fmt::Display for RestorePoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Commit(commit) => write!(formatter, "commit {commit}"),
            Self::Position(position) => write!(formatter, "position {position}"),
            Self::Time(time) => write!(formatter, "{time}"),
        }
    }
}

impl LoggedCommit<'_> {
    /// Returns the position of the last event, or of the last one before if it has none.
    fn last_position(&self) -> u64 {
        (self.first_position + self.events.len() as u64).saturating_sub(1)
    }

    /// Returns when it was made, if one of its events says so.
    fn time(&self) -> Option<Timestamp> {
        let events = (self.first_position..).zip(&self.events);
        let times = events.filter_map(|(position, event)| {
            let (label, bytes) = (*event)?;
            let event = Event::decode(position, Bytes::copy_from_slice(bytes))?;
            (!label::is_imported(label)).then(|| event.time())
        });
        times.max()
    }
}

/// Returns the backup as it would be if it had been made at an earlier point. It lacks what happened
/// later, and the state is that of its last commit.
///
/// The backup must reach up to the point. What its snapshot of the state was taken after cannot be
/// restored from it: that is [`Error::Invalid`], which says from where on it can.
pub fn backup_until(
    backup: &NamespaceBackup,
    point: RestorePoint,
    fetch: &mut FetchPart<'_>,
) -> Result<NamespaceBackup> {
    let is_there = match point {
        RestorePoint::Commit(commit) => commit <= backup.commit,
        RestorePoint::Position(position) => position <= backup.position,
        RestorePoint::Time(_) => true,
    };
    if !is_there {
        let (commit, position) = (backup.commit, backup.position);
        return Err(Error::invalid(format!(
            "{point} is not there: it ends with commit {commit}, position {position}"
        )));
    }
    let end = find_end(backup, point, fetch)?;
    let snapshot = backup.state.as_ref().map_or(0, |state| state.commit);
    if end.commit < snapshot {
        let first = find_end(backup, RestorePoint::Commit(snapshot), fetch)?;
        let (commit, position) = (first.commit, first.position);
        return Err(Error::invalid(format!(
            "the state of {point} is not there: its oldest snapshot is of commit {commit}, position \
             {position}, so what is before cannot be restored from it"
        )));
    }
    let until = |parts: &[PartReference]| -> Vec<PartReference> {
        let parts = parts.iter().filter(|part| part.first <= end.commit);
        parts.cloned().collect()
    };
    Ok(NamespaceBackup {
        commit: end.commit,
        position: end.position,
        log: until(&backup.log),
        changes: until(&backup.changes),
        ..backup.clone()
    })
}

/// Returns the last commit before the first one beyond the point. Positions ascend, and so do the times
/// that count, so only a few parts are read.
fn find_end(
    backup: &NamespaceBackup,
    point: RestorePoint,
    fetch: &mut FetchPart<'_>,
) -> Result<LogEnd> {
    let parts = backup.log.as_slice();
    let (mut low, mut high) = (0, parts.len());
    while low < high {
        let middle = low + (high - low) / 2;
        // Parts that tell nothing are beyond: then it is looked before them, and they are read.
        match first_is_beyond(&parts[middle..], point, fetch)? {
            Some(false) => low = middle + 1,
            _ => high = middle,
        }
    }
    let mut end = LogEnd::default();
    for part in parts.iter().skip(low.saturating_sub(1)) {
        let content = fetch(part)?;
        let found = log_end(part.first, &content, point)?;
        end = found.unwrap_or(end);
        if end.commit < part.last {
            break;
        }
    }
    Ok(end)
}

/// Returns whether the first commit that tells lies beyond the point.
fn first_is_beyond(
    parts: &[PartReference],
    point: RestorePoint,
    fetch: &mut FetchPart<'_>,
) -> Result<Option<bool>> {
    for part in parts {
        let mut told = None;
        visit_commits(part.first, &fetch(part)?, &mut |number, commit| {
            told = point.is_before(number, commit);
            told.is_none()
        })?;
        if told.is_some() {
            return Ok(told);
        }
    }
    Ok(None)
}

/// Returns the last commit before the first one beyond the point, of a part of the log; `None` if the
/// first one is.
pub(crate) fn log_end(first: u64, content: &[u8], point: RestorePoint) -> Result<Option<LogEnd>> {
    let mut end = None;
    visit_commits(first, content, &mut |number, commit| {
        let is_within = point.is_before(number, commit) != Some(true);
        if is_within {
            end = Some(end_of(number, commit));
        }
        is_within
    })?;
    Ok(end)
}

/// Returns the last commit of a part of the log whose events say that it had been made by then; `None` if
/// none does.
pub(crate) fn last_commit_by(
    first: u64,
    content: &[u8],
    time: Timestamp,
) -> Result<Option<LogEnd>> {
    let mut end = None;
    visit_commits(first, content, &mut |number, commit| {
        let is_before = RestorePoint::Time(time).is_before(number, commit);
        if is_before == Some(false) {
            end = Some(end_of(number, commit));
        }
        is_before != Some(true)
    })?;
    Ok(end)
}

fn end_of(number: u64, commit: &LoggedCommit<'_>) -> LogEnd {
    LogEnd {
        commit: number,
        position: commit.last_position(),
    }
}

/// Hands the commits of a part of the log to `visit`, each with its number, until it has seen enough.
fn visit_commits(
    first: u64,
    content: &[u8],
    visit: &mut dyn FnMut(u64, &LoggedCommit<'_>) -> bool,
) -> Result<()> {
    let mut rest = content;
    for number in first.. {
        if rest.is_empty() {
            break;
        }
        let commit = take_commit(&mut rest);
        let wrong = || damaged_part("log", format!("commit {number} cannot be read"));
        if !visit(number, &commit.ok_or_else(wrong)?) {
            break;
        }
    }
    Ok(())
}
