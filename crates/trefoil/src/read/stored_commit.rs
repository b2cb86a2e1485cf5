//! Single things of the log: an event by its id or position, and a commit with what it changed.

use trefoil_core::{Damage, Error, Event, EventId, Result, located_position, take_varint};
use trefoil_storage::Record;

use super::{LogReader, fetch_all};
use crate::Database;
use crate::database::engine::Engine;
use crate::removal::HiddenEvents;
use crate::state::{ChangePage, change_page};
use crate::write::changes_of_commit;

/// A commit as the log keeps it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredCommit {
    /// Its number.
    pub commit: u64,
    /// The global position of its first event. Without events, where one would have been.
    pub first_position: u64,
    /// How many events it has. Their positions follow each other.
    pub events: u64,
    /// What it changed of the state; `None` if the log has dropped that, because a snapshot of the
    /// state has what it led to.
    pub changes: Option<ChangePage>,
}

fn find_event(engine: &Engine, log: LogReader<'_>, position: u64) -> Result<Option<Event>> {
    if !(1..=engine.writer.head()).contains(&position) {
        return Ok(None);
    }
    let event = fetch_all(log, &[position])?.pop();
    let hidden = HiddenEvents::new(&engine.store);
    match event {
        Some(event) if hidden.contain(&event)? => Ok(None),
        event => Ok(event.map(|event| hidden.shown(event))),
    }
}

impl Database {
    /// Returns the event at a global position, if there is one.
    pub fn event_at(&self, position: u64) -> Result<Option<Event>> {
        self.ask(|engine| find_event(engine, self.log_reader(engine), position))
    }

    /// Returns the event that has an id: the first one, if there are several.
    pub fn event_with_id(&self, id: &EventId) -> Result<Option<Event>> {
        self.ask(|engine| {
            let hash = engine.index.id_hash(id);
            let mut positions = engine.index.layers().positions_of_id(hash)?;
            // An id that was made here carries the position of its event.
            positions.extend(located_position(id));
            let head = engine.writer.head();
            positions.retain(|position| (1..=head).contains(position));
            positions.sort_unstable();
            let events = fetch_all(self.log_reader(engine), &positions)?;
            let hidden = HiddenEvents::new(&engine.store);
            for event in events {
                if event.id() == *id && !hidden.contain(&event)? {
                    return Ok(Some(hidden.shown(event)));
                }
            }
            Ok(None)
        })
    }

    fn log_reader<'a>(&'a self, engine: &'a Engine) -> LogReader<'a> {
        LogReader::new(engine.storage.as_ref(), self.shortage())
    }

    /// Returns a commit by its number, with at most `limit` of its changes of the state from the index
    /// `from` on; `None` if there is no such commit.
    pub fn stored_commit(
        &self,
        commit: u64,
        from: u64,
        limit: usize,
    ) -> Result<Option<StoredCommit>> {
        self.ask(|engine| {
            if !(1..=engine.writer.last_commit()).contains(&commit) {
                return Ok(None);
            }
            let mut found = None;
            let replayed = engine.storage.replay(commit - 1, &mut |record| {
                found = Some(read(record, commit, from, limit)?);
                // One record is enough.
                Err(Error::Closed("the commit was found".into()))
            });
            match found {
                Some(found) => Ok(Some(found)),
                None => replayed.map(|()| None),
            }
        })
    }
}

/// Reads a commit of a record.
fn read(record: &Record, commit: u64, from: u64, limit: usize) -> Result<StoredCommit> {
    let wrong = || {
        Error::Damaged(Box::new(Damage {
            file: "log".into(),
            offset: 0,
            position: record.first_position,
            what: format!("unreadable record of commit {commit}"),
            help: "run `trefoil verify` to see all damage".into(),
        }))
    };
    let index = commit.checked_sub(record.first_commit).ok_or_else(wrong)?;
    let (first_position, events) = events_of(record, index).ok_or_else(wrong)?;
    let changes = match record.changes_dropped {
        true => None,
        false => {
            let mut bytes = Vec::new();
            changes_of_commit(record, index, &mut bytes).ok_or_else(wrong)?;
            Some(change_page(&bytes, from, limit).ok_or_else(wrong)?)
        }
    };
    Ok(StoredCommit {
        commit,
        first_position,
        events,
        changes,
    })
}

/// Returns where the events of the commit of this index begin, and how many there are.
fn events_of(record: &Record, index: u64) -> Option<(u64, u64)> {
    let mut counts = record.commits.as_slice();
    let mut position = record.first_position;
    for _ in 0..index {
        position = position.checked_add(take_varint(&mut counts)?)?;
    }
    Some((position, take_varint(&mut counts)?))
}
