//! Removing what does not count, a bounded step at a time.
//!
//! What is written in several steps is declared garbage with the first of them, and the last one takes
//! the declaration back. So whatever a crash leaves behind is known when the store is opened again.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::{Direction, Result};
use trefoil_storage::LogEnd;

use super::errors::failed;
use super::facts::{GarbageFact, RunId};
use super::keys::{GenerationKeys, Tag, letter_of};
use super::store::{KeyChange, OpenStore};

/// How much one step looks at.
const STEP_BYTES: usize = 256 * 1024;
/// How many objects one step removes.
const STEP_OBJECTS: usize = 64;

/// What is to be removed, and nobody uses any more.
#[derive(Debug, Default)]
pub(super) struct GarbageQueue {
    waiting: Mutex<VecDeque<(u64, GarbageFact)>>,
}

impl GarbageQueue {
    /// Adds something that was declared under this number.
    pub(super) fn push(&self, number: u64, garbage: GarbageFact) {
        self.waiting.lock().push_back((number, garbage));
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Removes some of it. Returns whether there is more. One caller at a time.
    pub(super) fn step(&self, store: &OpenStore, end: LogEnd) -> Result<bool> {
        let Some((number, garbage)) = self.waiting.lock().front().cloned() else {
            return Ok(false);
        };
        if remove_some(store, number, &garbage, end)? {
            self.waiting.lock().retain(|(other, _)| *other != number);
        }
        Ok(self.len() > 0)
    }
}

/// Removes all of something that was declared garbage, and the declaration.
pub(super) fn remove_all(
    store: &OpenStore,
    number: u64,
    garbage: &GarbageFact,
    end: LogEnd,
) -> Result<()> {
    while !remove_some(store, number, garbage, end)? {}
    Ok(())
}

/// Removes some of it. Returns whether nothing is left, and the declaration is gone, too.
fn remove_some(store: &OpenStore, number: u64, garbage: &GarbageFact, end: LogEnd) -> Result<bool> {
    // Objects know no fence: whoever has lost the store leaves them alone.
    store.check()?;
    if let GarbageFact::Objects(run) = garbage {
        if !remove_objects(store, &objects_of(store, *run))? {
            return Ok(false);
        }
        store.commit(vec![store.retraction(number)])?;
        return Ok(true);
    }
    for range in ranges(&store.keys, garbage, end) {
        if !clear_some(store, range, STEP_BYTES)? {
            return Ok(false);
        }
    }
    store.commit(vec![store.retraction(number)])?;
    Ok(true)
}

/// Returns what the names of a map's objects begin with.
pub(super) fn objects_of(store: &OpenStore, run: RunId) -> String {
    format!("{}{}-{}-", store.objects, run.epoch, run.number)
}

/// Removes some objects. Returns whether none is left.
pub(super) fn remove_objects(store: &OpenStore, prefix: &str) -> Result<bool> {
    let removing = || failed("removing objects");
    let objects = store.engine.objects();
    let names = objects.list(prefix, "", STEP_OBJECTS);
    let names = names.map_err(removing())?;
    for name in &names {
        objects.delete(name).map_err(removing())?;
    }
    Ok(names.len() < STEP_OBJECTS)
}

fn ranges(keys: &GenerationKeys, garbage: &GarbageFact, end: LogEnd) -> Vec<(Bytes, Bytes)> {
    let beyond = |tag, number| (keys.after(tag, number), keys.after(tag, u64::MAX));
    let of = |tag, number| (keys.numbered(tag, number), keys.after(tag, number));
    let rests = |start, end| {
        (
            keys.numbered(Tag::Rest, start),
            keys.numbered(Tag::Rest, end),
        )
    };
    match garbage {
        GarbageFact::BeyondEnd(numbers) => vec![
            beyond(Tag::Record, end.commit),
            beyond(Tag::Changes, end.commit),
            beyond(Tag::Items, end.position),
            rests(numbers.start, numbers.end),
        ],
        GarbageFact::Rests(numbers) => vec![rests(numbers.start, numbers.end)],
        GarbageFact::Entries(number) => vec![of(Tag::Entry, *number)],
        GarbageFact::Snapshot(number) => vec![of(Tag::SnapshotBlock, *number)],
        GarbageFact::Redo(number) => vec![of(Tag::RedoPart, *number)],
        GarbageFact::Objects(_) => Vec::new(),
    }
}

/// Removes some keys of a range, and the parts of their values. Returns whether none is left.
pub(super) fn clear_some(
    store: &OpenStore,
    (from, to): (Bytes, Bytes),
    max_bytes: usize,
) -> Result<bool> {
    let page = store
        .kv
        .scan(&from, &to, Direction::Forwards, max_bytes, false);
    let page = page.map_err(failed("clearing the store"))?;
    let mut changes: Vec<KeyChange> = Vec::new();
    for (key, value) in page.entries {
        changes.extend(removals(store, key, &value));
    }
    for batch in store.cut(changes, &[]) {
        store.commit(batch)?;
    }
    Ok(!page.has_more)
}

/// Returns the changes that remove a key and the parts of its value. The key comes last: as long as it
/// is there, the parts are found.
pub(super) fn removals(store: &OpenStore, key: Bytes, value: &[u8]) -> Vec<KeyChange> {
    let rest = match letter_of(&key) == Tag::Rest as u8 {
        true => None,
        // What is damaged has no parts that anybody could find.
        false => store.cells.rest(&key, value).ok().flatten(),
    };
    let parts = rest.map(|rest| store.cells.part_keys(rest));
    let parts = parts.into_iter().flatten().map(|part| (part, None));
    parts.chain([(key, None)]).collect()
}
