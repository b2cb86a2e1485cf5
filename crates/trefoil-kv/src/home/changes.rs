//! Which entries of the registry were changed, as numbered objects, so that other nodes need not read all
//! of them again and again.

use std::collections::VecDeque;

use parking_lot::Mutex;
use trefoil::home::EntryChanges;
use trefoil_core::{NamespaceId, Result};

use super::objects::{failed, list_all};
use super::{names, small};
use crate::contract::KvObjects;

/// How many changes are kept. A node that has missed more reads all entries.
const KEPT: u64 = 1000;
/// Once in so many times the changes are listed, which costs more than asking for the next one, to
/// notice if that was removed.
const LISTED_EVERY: u64 = 30;
/// After so many changes the oldest ones are removed.
const REMOVED_EVERY: u64 = 100;

/// What this node knows of the changes.
#[derive(Debug)]
pub(super) struct RegistryChanges {
    seen: Mutex<Seen>,
    /// Changes of this node that the others could not be told yet.
    untold: Mutex<VecDeque<NamespaceId>>,
}

#[derive(Debug)]
struct Seen {
    /// The last one that was read.
    last: u64,
    /// How often was asked for more.
    n_asked: u64,
}

impl RegistryChanges {
    /// Returns what was changed before now as known: entries are read after this.
    pub(super) fn open(objects: &dyn KvObjects) -> Result<Self> {
        let listed = list_all(objects, names::CHANGES)?;
        let last = listed.last().map_or(0, |name| number(name));
        Ok(Self {
            seen: Mutex::new(Seen { last, n_asked: 0 }),
            untold: Mutex::default(),
        })
    }

    /// Tells others that an entry was changed; later, if that is not possible now.
    pub(super) fn tell(&self, objects: &dyn KvObjects, id: &NamespaceId) {
        self.untold.lock().push_back(id.clone());
        self.tell_again(objects);
    }

    /// Tells others what they could not be told before.
    pub(super) fn tell_again(&self, objects: &dyn KvObjects) {
        loop {
            let Some(id) = self.untold.lock().pop_front() else {
                return;
            };
            if let Err(error) = self.append(objects, &id) {
                tracing::warn!(%error, "cannot tell others yet what was changed in the registry");
                return self.untold.lock().push_front(id);
            }
        }
    }

    fn append(&self, objects: &dyn KvObjects, id: &NamespaceId) -> Result<()> {
        let bytes = small::encode(&id.as_str(), b"")?;
        // Lower numbers may have been removed: who created one again would be heard by nobody.
        let listed = list_all(objects, names::CHANGES)?;
        let mut next = 1 + listed.last().map_or(0, |name| number(name));
        loop {
            let created = objects.create(&names::change(next), bytes.clone());
            if created.map_err(failed("noting a change"))?.is_some() {
                break;
            }
            next += 1;
        }
        if next.is_multiple_of(REMOVED_EVERY) {
            remove_below(objects, next.saturating_sub(KEPT));
        }
        Ok(())
    }

    /// Returns what was changed since the last time.
    pub(super) fn read(&self, objects: &dyn KvObjects) -> Result<EntryChanges> {
        let mut seen = self.seen.lock();
        seen.n_asked += 1;
        if seen.n_asked.is_multiple_of(LISTED_EVERY) {
            let listed = list_all(objects, names::CHANGES)?;
            let (first, last) = (listed.first(), listed.last());
            if first.is_some_and(|first| number(first) > seen.last + 1) {
                seen.last = last.map_or(seen.last, |last| number(last));
                return Ok(EntryChanges::All);
            }
        }
        let mut ids: Vec<NamespaceId> = Vec::new();
        // What was read counts only if all of it was.
        let mut next = seen.last + 1;
        loop {
            let name = names::change(next);
            let found = objects.get(&name).map_err(failed("reading a change"))?;
            let Some((bytes, _)) = found else {
                break;
            };
            let (id, _): (String, _) = small::decode(&name, &bytes)?;
            ids.push(NamespaceId::new(&id)?);
            next += 1;
        }
        seen.last = next - 1;
        ids.sort();
        ids.dedup();
        Ok(EntryChanges::Some(ids))
    }
}

fn number(name: &str) -> u64 {
    let number = names::last_number(name).and_then(|number| u64::try_from(number).ok());
    number.unwrap_or(0)
}

/// Removes old changes. Those that stay are removed with the next ones.
fn remove_below(objects: &dyn KvObjects, end: u64) {
    let end = names::change(end);
    let listed = list_all(objects, names::CHANGES).unwrap_or_default();
    for name in listed.iter().take_while(|name| **name < end) {
        if objects.delete(name).is_err() {
            return;
        }
    }
}
