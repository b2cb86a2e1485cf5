//! Putting an archive together: which pieces and which base make up a namespace as of a point.

use std::collections::BTreeMap;

use trefoil_core::{Error, Result, Timestamp};
use trefoil_storage::LogEnd;

use super::piece::{ArchivePiece, PieceName};
use crate::backup::{
    BackedUpState, NamespaceBackup, PartReference, RestorePoint, last_commit_by, log_end,
};

/// What is archived of one log, by name. A namespace has another log when it was made anew, when its
/// events were replaced, or when it was restored to an earlier point.
#[derive(Debug, Clone, Default)]
pub struct ArchivedLine {
    /// The pieces, in any order. They may overlap.
    pub pieces: Vec<PieceName>,
    /// Snapshots of the state, in any order.
    pub bases: Vec<BackedUpState>,
}

/// Returns a piece, which it has found to be what was written.
pub type FetchPiece<'a> = dyn FnMut(&PieceName) -> Result<ArchivePiece> + 'a;

impl ArchivedLine {
    /// Returns the pieces that are the log from its first commit on as far as they reach, in order.
    pub fn chain(&self) -> Vec<PieceName> {
        let mut pieces = self.pieces.clone();
        // Of those that are the same, the one that has the changes, and was written last.
        pieces.sort_by_key(|piece| (piece.first, piece.last, piece.has_changes, piece.edition));
        // By the commits at which they end, those that a chain leads to.
        let mut reached: BTreeMap<u64, PieceName> = BTreeMap::new();
        for piece in pieces {
            if piece.first == 1 || reached.contains_key(&(piece.first - 1)) {
                // Of those that end at the same commit, the largest, if it has the changes.
                let is_better = |known: &PieceName| {
                    known.first == piece.first || (piece.has_changes && !known.has_changes)
                };
                if reached.get(&piece.last).is_none_or(is_better) {
                    reached.insert(piece.last, piece);
                }
            }
        }
        let mut chain = Vec::new();
        let mut next = reached.last_key_value().map(|(_, piece)| *piece);
        while let Some(piece) = next {
            chain.push(piece);
            next = reached.get(&(piece.first - 1)).copied();
        }
        chain.reverse();
        chain
    }

    /// Returns the namespace as of a point, or as it was last, as a backup of which the parts are where
    /// `place` says: a piece, and whether its changes are meant. The state is in the parts of its base.
    pub fn backup(
        &self,
        (namespace, entry): (&str, &str),
        point: Option<RestorePoint>,
        place: &dyn Fn(&PieceName, bool) -> String,
        fetch: &mut FetchPiece<'_>,
    ) -> Result<NamespaceBackup> {
        let chain = self.chain();
        let end = match point {
            None => chain.last().map_or(LogEnd::default(), end_of),
            Some(point) => find_end(&chain, point, fetch)?,
        };
        let used = chain.iter().filter(|piece| piece.first <= end.commit);
        let used: Vec<&PieceName> = used.collect();
        let state = self.base(&used, end.commit, point)?;
        let snapshot = state.map_or(0, |state| state.commit);
        let reference = |piece: &PieceName, of_changes, first| PartReference {
            hash: place(piece, of_changes),
            bytes: piece.bytes,
            first,
            last: piece.last,
        };
        let later = used.iter().filter(|piece| piece.last > snapshot);
        Ok(NamespaceBackup {
            namespace: namespace.to_owned(),
            entry: entry.to_owned(),
            origin: None,
            edits: 0,
            commit: end.commit,
            position: end.position,
            log: { used.iter() }
                .map(|piece| reference(piece, false, piece.first))
                .collect(),
            changes: later
                .map(|piece| reference(piece, true, piece.first.max(snapshot + 1)))
                .collect(),
            state: state.cloned(),
        })
    }

    /// Returns the newest base from which on all changes up to a commit are there; `None` is the
    /// beginning, when there was no state.
    fn base(
        &self,
        used: &[&PieceName],
        commit: u64,
        point: Option<RestorePoint>,
    ) -> Result<Option<&BackedUpState>> {
        let bare = used.iter().rev().find(|piece| !piece.has_changes);
        let bare = bare.map_or(0, |piece| piece.last);
        let bases = self.bases.iter().filter(|base| base.commit <= commit);
        let base = bases.max_by_key(|base| base.commit);
        match base.filter(|base| base.commit >= bare.min(commit)) {
            Some(base) => Ok(Some(base)),
            None if bare == 0 => Ok(None),
            None => Err(self.no_state(commit, point)),
        }
    }

    fn no_state(&self, commit: u64, point: Option<RestorePoint>) -> Error {
        let later = self.bases.iter().map(|base| base.commit);
        let later = later.filter(|base| *base > commit).min();
        let point = point.map_or_else(|| format!("commit {commit}"), |point| point.to_string());
        let text = format!(
            "the archive has the events of {point}, but not the state: it was changed and the changes \
             were dropped before they were archived"
        );
        Error::invalid(match later {
            Some(later) => format!("{text}; it has the state from commit {later} on"),
            None => text,
        })
    }
}

fn end_of(piece: &PieceName) -> LogEnd {
    LogEnd {
        commit: piece.last,
        position: piece.position,
    }
}

/// Returns where the log ended at a point. The names say in which piece that is.
fn find_end(
    chain: &[PieceName],
    point: RestorePoint,
    fetch: &mut FetchPiece<'_>,
) -> Result<LogEnd> {
    let is_within = |piece: &PieceName| match point {
        RestorePoint::Commit(commit) => piece.last <= commit,
        RestorePoint::Position(position) => piece.position <= position,
        RestorePoint::Time(time) => piece.millis < time.millis(),
    };
    let n_within = chain.iter().take_while(|piece| is_within(piece)).count();
    let (within, beyond) = chain.split_at(n_within);
    let before = within.last().map_or(LogEnd::default(), end_of);
    let Some(first) = beyond.first() else {
        return match point {
            RestorePoint::Commit(commit) if commit == before.commit => Ok(before),
            RestorePoint::Position(position) if position == before.position => Ok(before),
            _ => Err(not_there(point, chain.last())),
        };
    };
    if let RestorePoint::Time(time) = point {
        return find_time(beyond, before, time, fetch);
    }
    let piece = fetch(first)?;
    // Without a commit before the point, it is where the piece before ended.
    let found = log_end(piece.first, &piece.log, point)?;
    Ok(found.unwrap_or(before))
}

/// Returns where the log ended at a time, which is in the first of these pieces, or in a later one if they
/// had been written long before they were read.
fn find_time(
    pieces: &[PieceName],
    before: LogEnd,
    time: Timestamp,
    fetch: &mut FetchPiece<'_>,
) -> Result<LogEnd> {
    let mut end = before;
    for name in pieces {
        let piece = fetch(name)?;
        end = last_by(&piece, time)?.unwrap_or(end);
        let until = log_end(piece.first, &piece.log, RestorePoint::Time(time))?;
        let has_later = until.is_none_or(|until| until.commit < piece.last());
        if has_later || piece.was_last() {
            break;
        }
    }
    Ok(end)
}

/// Returns the last commit that had been made by then: events say when that was, and marks say it of all
/// commits before them.
fn last_by(piece: &ArchivePiece, time: Timestamp) -> Result<Option<LogEnd>> {
    let mut marks = piece.marks.iter();
    let marked = marks.rfind(|mark| mark.millis < time.millis());
    let marked = marked.map_or(0, |mark| mark.commit);
    let told = last_commit_by(piece.first, &piece.log, time)?;
    match told.map_or(0, |end| end.commit) < marked {
        true => log_end(piece.first, &piece.log, RestorePoint::Commit(marked)),
        false => Ok(told),
    }
}

fn not_there(point: RestorePoint, last: Option<&PieceName>) -> Error {
    let Some(last) = last else {
        return Error::invalid(format!("{point} is not there: nothing is archived yet"));
    };
    let PieceName {
        last,
        position,
        millis,
        ..
    } = last;
    let nanos = i64::try_from(*millis)
        .unwrap_or(0)
        .saturating_mul(1_000_000);
    let time = Timestamp(nanos);
    Error::invalid(format!(
        "{point} is not there: the archive ends with commit {last}, position {position}, of {time}"
    ))
}
