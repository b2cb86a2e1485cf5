//! Opening a generation: the index and the state are brought from the last checkpoint to the end of
//! the log.

use bytes::Bytes;
use trefoil_core::{Damage, Error, Result, Timestamp};
use trefoil_storage::{Record, Storage, StoredItem};

use crate::database::engine::report;
use crate::database::options::ReplayListener;
use crate::index::{Index, IndexedEvent};
use crate::read::decode;
use crate::read::label;
use crate::state::{StateStore, snapshot_commit};
use crate::write::{Front, freeze, logged_bytes, state_changes};

/// Adds what the log holds after the last checkpoint to the index and the state. Returns where the
/// log ends and how many events were read.
pub(crate) fn replay(
    storage: &dyn Storage,
    index: &Index,
    store: &StateStore,
    listener: Option<&ReplayListener>,
) -> Result<(Front, u64)> {
    let end = storage.end();
    let (commit, clock) = index.checkpoint_end();
    let mut front = Front {
        commit: end.commit,
        position: end.position,
        clock,
    };
    if end.commit < commit {
        return Err(crate::index::beyond_log(commit, end.commit));
    }
    let snapshot = snapshot_commit(storage);
    if commit < snapshot {
        // The map was lost, or was being made again.
        store.restore(storage)?;
    }
    let mut n_events = 0;
    storage.replay(commit, &mut |record| {
        front.clock = front
            .clock
            .max(replay_record(index, store, record, snapshot)?);
        n_events += record.items.len() as u64;
        if let Some(ReplayListener(tell)) = listener {
            tell(record.last_commit(), end.commit);
        }
        let is_full = index.is_tail_full() || store.is_full();
        if is_full && freeze(index, store, record.last_commit(), front.clock) {
            // As when the database is open: what fails is tried again later.
            report("checkpoint", checkpoint(index, store, &|| Ok(())).map(drop));
            report("merge of the index", merge_all_due(index));
        }
        Ok(())
    })?;
    Ok((front, n_events))
}

fn merge_all_due(index: &Index) -> Result<()> {
    while index.merge(&|| Ok(()))?.is_some() {}
    Ok(())
}

/// Writes what is frozen of index and state, atomically, unless `go_on` fails, which is asked time and
/// again. Returns how many bytes that were; `None` if nothing is frozen.
pub(crate) fn checkpoint(
    index: &Index,
    store: &StateStore,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<Option<u64>> {
    index.checkpoint(|batch| store.fill(batch), || store.thaw(), go_on)
}

/// Takes over the changes of state of a record, unless the snapshot, which is of this commit, has
/// them.
pub(crate) fn replay_state(store: &StateStore, record: &Record, snapshot: u64) -> Result<()> {
    if record.last_commit() <= snapshot {
        return Ok(());
    }
    if record.changes_dropped {
        let (first, last) = (record.first_commit, record.last_commit());
        let what = format!("the changes of commits {first} to {last} are in no snapshot");
        return Err(damaged(record, what));
    }
    store.note_logged(logged_bytes(record));
    let mut failure = None;
    let read = state_changes(record, &mut |changes| match store.replay(changes) {
        Ok(replayed) => replayed,
        Err(error) => {
            failure = Some(error);
            None
        }
    });
    match failure {
        Some(error) => Err(error),
        None => read.ok_or_else(|| {
            let first = record.first_commit;
            damaged(
                record,
                format!("unreadable changes of commits from {first} on"),
            )
        }),
    }
}

/// Returns what says that a record, whose checksum was right, is not what was written.
fn damaged(record: &Record, what: String) -> Error {
    Error::Damaged(Box::new(Damage {
        file: "log".into(),
        offset: 0,
        position: record.first_position,
        what,
        help: "run `trefoil verify` to see all damage".into(),
    }))
}

/// Adds a record's events to the index. Returns the highest time the server gave to one of them.
fn replay_record(
    index: &Index,
    store: &StateStore,
    record: &Record,
    snapshot: u64,
) -> Result<Timestamp> {
    let mut clock = Timestamp::default();
    let mut events = Vec::with_capacity(record.items.len());
    for (position, label, bytes) in record.items() {
        let bytes = Bytes::copy_from_slice(bytes);
        let event = decode(StoredItem {
            position,
            label,
            bytes,
        })?;
        if !label::is_imported(label) {
            clock = clock.max(event.time());
        }
        events.push((label, event.correlation(), event));
    }
    let indexed = events
        .iter()
        .map(|(label, correlation, event)| IndexedEvent::of(event, *label, correlation.as_deref()));
    let prepared = index.prepare(&indexed.collect::<Vec<_>>(), |event| *event);
    index.add(&prepared, || {});
    replay_state(store, record, snapshot)?;
    Ok(clock)
}
