//! Reading a backup from a storage while it is written to.
//!
//! The backup is of the commit that is the last one when it begins. What commits changed of the state
//! after the snapshot is read first, and then the snapshot: a storage that is given another snapshot
//! meanwhile may drop those changes. If it has done so before they were read, the backup begins again,
//! with that snapshot. The log is read last. It only grows, so it does not matter how long that takes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use trefoil_core::{Error, NamespaceId, Result, take_varint};
use trefoil_storage::{Record, Snapshot, Storage};
use xxhash_rust::xxh3::xxh3_64;

use super::part::{
    BackupPart, PartKind, damaged_part, put_changes, put_commit, put_dropped, put_entry, put_event,
};
use crate::home::Home;
use crate::index::Manifest;
use crate::namespaces;
use crate::removal::log_edits;
use crate::state::{ReadCache, StateStore};
use crate::tools::open_storage;
use crate::write::indexed_changes;

/// A part is full when it has this many bytes.
const PART_BYTES: usize = 4 * 1024 * 1024;
/// A part of the state may end when it has this many, after a key whose hash says so: then a changed
/// entry changes one part, and those behind it stay what they were.
const STATE_PART_BYTES_MIN: usize = 512 * 1024;
/// One key in so many says so.
const STATE_KEYS_PER_PART: u64 = 512;
/// How often a backup begins again because there is another snapshot.
const ATTEMPTS_MAX: usize = 10;

/// What an earlier backup has, on which a new one can build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackupBase {
    /// As [`BackupHead::origin`].
    pub origin: Option<String>,
    /// The last commit of the log that it has.
    pub after: u64,
    /// The commit of the snapshot that it has.
    pub snapshot: Option<u64>,
    /// As [`BackupHead::edits`].
    pub edits: u64,
}

/// What a backup begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupHead {
    /// The entry of the registry.
    pub entry: String,
    /// What tells the namespace from others that had its name, if that is known.
    pub origin: Option<String>,
    /// How often the log was edited, because events were redacted or dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub edits: u64,
    /// The commit that the backup is of.
    pub commit: u64,
    /// The position of the last event.
    pub position: u64,
    /// The snapshot of the state, if there is one.
    pub snapshot: Option<BackupSnapshot>,
    /// The parts of the log begin after this commit: zero unless the base was of use.
    pub after: u64,
    /// Whether parts of the state follow: not if the base has this snapshot.
    pub has_state: bool,
}

/// What never was edited is written as it always was.
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The snapshot of the state that a backup has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupSnapshot {
    /// The commit as of which it is.
    pub commit: u64,
    /// How many entries it has.
    pub entries: u64,
    /// How many bytes their keys and values have.
    pub bytes: u64,
}

impl From<Snapshot> for BackupSnapshot {
    fn from(snapshot: Snapshot) -> Self {
        let Snapshot {
            commit,
            entries,
            bytes,
        } = snapshot;
        Self {
            commit,
            entries,
            bytes,
        }
    }
}

/// A step of a backup: the head comes first, then the parts of each kind in order. When another head
/// comes, all parts before are to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupStep {
    /// What it is.
    Head(BackupHead),
    /// What it holds.
    Part(BackupPart),
}

/// Takes the next step. It may wait; if it fails, the backup ends.
pub type TakeStep<'a> = dyn FnMut(BackupStep) -> Result<()> + 'a;

/// Makes a backup of a namespace that no server has open.
pub fn backup_namespace(
    home: &dyn Home,
    id: &NamespaceId,
    base: &BackupBase,
    take: &mut TakeStep<'_>,
) -> Result<()> {
    let entry = home.entry(id)?;
    let entry = entry.ok_or_else(|| Error::NamespaceNotFound(id.to_string()))?;
    let text = namespaces::entry_text(id, &entry)?;
    if !namespaces::is_made(id, &entry)? && !home.has_storage(id)? {
        return take(unused(text));
    }
    let claim = home.claim(id, entry.stamp.incarnation, true)?;
    let storage: Arc<dyn Storage> = open_storage(claim.as_ref())?;
    let edits = stored_edits(&storage)?;
    let read = ReadBackup {
        storage: storage.as_ref(),
        entry: &text,
        edits,
    };
    let done = read.run(base, &|| Ok(()), take);
    drop(storage);
    claim.release();
    done
}

/// Returns the whole backup of a namespace that was never used.
pub(crate) fn unused(entry: String) -> BackupStep {
    BackupStep::Head(BackupHead {
        entry,
        origin: None,
        edits: 0,
        commit: 0,
        position: 0,
        snapshot: None,
        after: 0,
        has_state: false,
    })
}

/// Returns how often a log was edited, as far as the maps know.
fn stored_edits(storage: &Arc<dyn Storage>) -> Result<u64> {
    let cache = Arc::new(ReadCache::new(0, crate::Clock::default()));
    let store = StateStore::open(Arc::clone(storage), Arc::default(), cache)?;
    log_edits(&store.read())
}

/// What is read to make a backup.
pub(crate) struct ReadBackup<'a> {
    pub(crate) storage: &'a dyn Storage,
    /// The entry of the registry.
    pub(crate) entry: &'a str,
    /// As [`BackupHead::edits`], from before anything is read: what is edited meanwhile may be in it or not.
    pub(crate) edits: u64,
}

impl ReadBackup<'_> {
    /// Reads a backup. `check` is asked after each part was read, and says whether it may be told.
    pub(crate) fn run(
        &self,
        base: &BackupBase,
        check: &dyn Fn() -> Result<()>,
        take: &mut TakeStep<'_>,
    ) -> Result<()> {
        let storage = self.storage;
        let mut take = |step| {
            check()?;
            take(step)
        };
        let mut found = None;
        for _ in 0..ATTEMPTS_MAX {
            let head = self.head(base)?;
            take(BackupStep::Head(head.clone()))?;
            if read_state(storage, &head, &mut take)? {
                found = Some(head);
                break;
            }
        }
        let Some(BackupHead { commit, after, .. }) = found else {
            let text =
                "the state changes faster than it can be read: try again when less is written";
            return Err(Error::Overloaded(text.into()));
        };
        let mut done = after;
        while done < commit {
            let part = log_part(storage, done, commit)?;
            done = part.last;
            take(BackupStep::Part(part))?;
        }
        Ok(())
    }

    fn head(&self, base: &BackupBase) -> Result<BackupHead> {
        let storage = self.storage;
        // In this order: the snapshot is of a commit that is there.
        let snapshot = storage.snapshot();
        let end = storage.end();
        let origin = stored_origin(storage)?;
        let is_same = origin.is_some() && origin == base.origin;
        let is_based = is_same && base.edits == self.edits && base.after <= end.commit;
        let has_snapshot = is_based && base.snapshot == snapshot.map(|snapshot| snapshot.commit);
        Ok(BackupHead {
            entry: self.entry.to_owned(),
            origin,
            edits: self.edits,
            commit: end.commit,
            position: end.position,
            snapshot: snapshot.map(Into::into),
            after: if is_based { base.after } else { 0 },
            has_state: snapshot.is_some() && !has_snapshot,
        })
    }
}

/// Returns what tells a namespace from others that had its name, if that is known yet.
pub(crate) fn stored_origin(storage: &dyn Storage) -> Result<Option<String>> {
    Ok(Manifest::load(storage)?.map(|manifest| origin_of(manifest.id_seed)))
}

/// The index of each namespace has a seed of its own, which nobody else needs to know.
fn origin_of(id_seed: u64) -> String {
    hex::encode(&Sha256::digest(id_seed.to_le_bytes())[..16])
}

/// Reads the changes after the snapshot, and the snapshot unless the base has it. Returns whether they
/// belong together.
fn read_state(storage: &dyn Storage, head: &BackupHead, take: &mut TakeStep<'_>) -> Result<bool> {
    let snapshot = head.snapshot.map_or(0, |snapshot| snapshot.commit);
    let mut done = snapshot;
    while done < head.commit {
        match changes_part(storage, done, head.commit)? {
            None => return Ok(false),
            Some(part) => {
                done = part.last;
                take(BackupStep::Part(part))?;
            }
        }
    }
    match head.has_state {
        true => read_snapshot(storage, snapshot, take),
        false => Ok(true),
    }
}

/// What tells a replay that it has shown enough.
fn enough() -> Error {
    Error::Closed("enough was read".into())
}

/// Hands the records with commits after `after` up to `until` to `visit`, until it has enough.
fn replay(
    storage: &dyn Storage,
    (after, until): (u64, u64),
    visit: &mut dyn FnMut(&Record) -> Result<bool>,
) -> Result<()> {
    let mut is_over = false;
    let replayed = storage.replay(after, &mut |record| {
        is_over = record.first_commit > until || !visit(record)? || record.last_commit() >= until;
        match is_over {
            true => Err(enough()),
            false => Ok(()),
        }
    });
    match is_over {
        true => Ok(()),
        false => replayed,
    }
}

/// Reads what commits changed, from the one after `after` on; `None` if some of it was dropped.
fn changes_part(storage: &dyn Storage, after: u64, until: u64) -> Result<Option<BackupPart>> {
    let mut part = empty_part(PartKind::Changes, after);
    let mut is_dropped = false;
    replay(storage, (after, until), &mut |record| {
        is_dropped = record.changes_dropped;
        if is_dropped {
            return Ok(false);
        }
        let changes = indexed_changes(record, &mut |index, changes| {
            let commit = record.first_commit + index;
            if commit > after && commit <= until {
                put_changes(&mut part.bytes, commit, changes);
            }
            Some(())
        });
        changes.ok_or_else(|| unreadable(record))?;
        part.last = record.last_commit().min(until);
        Ok(part.bytes.len() < PART_BYTES)
    })?;
    match is_dropped {
        true => Ok(None),
        false => advanced(part, after).map(Some),
    }
}

/// Reads commits, from the one after `after` on.
fn log_part(storage: &dyn Storage, after: u64, until: u64) -> Result<BackupPart> {
    let mut part = empty_part(PartKind::Log, after);
    replay(storage, (after, until), &mut |record| {
        let commits = put_commits(&mut part, record, until);
        commits.ok_or_else(|| unreadable(record))?;
        Ok(part.bytes.len() < PART_BYTES)
    })?;
    advanced(part, after)
}

/// Commits with what they changed of the state.
#[derive(Debug)]
pub(crate) struct CommitsRead {
    pub(crate) log: BackupPart,
    /// As in a part; `None` if it was dropped.
    pub(crate) changes: Option<Vec<u8>>,
    /// The position of the last event up to the last commit.
    pub(crate) position: u64,
}

/// Reads commits with what they changed, from the one after `after` on: as many as fit into a part and
/// have their changes, or have lost them.
pub(crate) fn read_commits(storage: &dyn Storage, after: u64, until: u64) -> Result<CommitsRead> {
    let mut log = empty_part(PartKind::Log, after);
    let (mut changes, mut is_dropped, mut position) = (Vec::new(), None, 0);
    replay(storage, (after, until), &mut |record| {
        if *is_dropped.get_or_insert(record.changes_dropped) != record.changes_dropped {
            return Ok(false);
        }
        let before = log.last;
        let put = put_commits(&mut log, record, until);
        position = put.ok_or_else(|| unreadable(record))?;
        let read = indexed_changes(record, &mut |index, bytes| {
            let commit = record.first_commit + index;
            if commit > before && commit <= log.last {
                put_changes(&mut changes, commit, bytes);
            }
            Some(())
        });
        read.ok_or_else(|| unreadable(record))?;
        Ok(log.bytes.len() + changes.len() < PART_BYTES)
    })?;
    Ok(CommitsRead {
        log: advanced(log, after)?,
        changes: (is_dropped == Some(false)).then_some(changes),
        position,
    })
}

/// Adds the next commits of a record to a part until it is full, and returns the position of the last
/// event up to the last one; `None` if the record is unreadable.
fn put_commits(part: &mut BackupPart, record: &Record, until: u64) -> Option<u64> {
    let mut counts = record.commits.as_slice();
    let mut position = record.first_position;
    let mut last_position = 0;
    let mut items = record.items.iter();
    for commit in record.first_commit..=record.last_commit() {
        let n_events = take_varint(&mut counts)?;
        let is_wanted = commit > part.last && commit <= until && part.bytes.len() < PART_BYTES;
        if is_wanted {
            put_commit(&mut part.bytes, position, n_events);
            part.last = commit;
            last_position = (position + n_events).saturating_sub(1);
        }
        for _ in 0..n_events {
            match items.next()? {
                _ if !is_wanted => {}
                Some((label, bytes)) => put_event(&mut part.bytes, label, bytes),
                None => put_dropped(&mut part.bytes),
            }
        }
        position = position.checked_add(n_events)?;
    }
    Some(last_position)
}

fn empty_part(kind: PartKind, after: u64) -> BackupPart {
    BackupPart {
        kind,
        first: after + 1,
        last: after,
        bytes: Vec::new(),
    }
}

/// Returns the part, which must not be empty: the log has what was asked for.
fn advanced(part: BackupPart, after: u64) -> Result<BackupPart> {
    match part.last > after {
        true => Ok(part),
        false => Err(damaged_part(
            "log",
            format!("commit {} is missing", part.first),
        )),
    }
}

fn unreadable(record: &Record) -> Error {
    let (first, last) = (record.first_commit, record.last_commit());
    damaged_part(
        "log",
        format!("unreadable record of commits {first} to {last}"),
    )
}

/// Reads the entries of the snapshot of this commit. Returns whether it was that one.
pub(crate) fn read_snapshot(
    storage: &dyn Storage,
    commit: u64,
    take: &mut TakeStep<'_>,
) -> Result<bool> {
    let is_it = || storage.snapshot().is_some_and(|now| now.commit == commit);
    let mut part = empty_part(PartKind::State, 0);
    let mut is_another = false;
    let read = storage.read_snapshot(&mut |key, value| {
        // A storage keeps to the snapshot with which it began.
        if part.last == 0 && !is_it() {
            is_another = true;
            return Err(enough());
        }
        put_entry(&mut part.bytes, key, value);
        part.last += 1;
        if is_state_part_full(&part.bytes, key) {
            let next = BackupPart {
                bytes: Vec::new(),
                ..empty_part(PartKind::State, part.last)
            };
            return take(BackupStep::Part(std::mem::replace(&mut part, next)));
        }
        Ok(())
    });
    if is_another || (part.last == 0 && !is_it()) {
        return Ok(false);
    }
    read?;
    if !part.bytes.is_empty() {
        take(BackupStep::Part(part))?;
    }
    Ok(true)
}

fn is_state_part_full(bytes: &[u8], last_key: &[u8]) -> bool {
    bytes.len() >= PART_BYTES
        || (bytes.len() >= STATE_PART_BYTES_MIN
            && xxh3_64(last_key).is_multiple_of(STATE_KEYS_PER_PART))
}
