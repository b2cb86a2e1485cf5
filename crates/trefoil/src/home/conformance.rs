//! What every implementation of [`Home`] must do, as functions to be called from its tests.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::sync::Arc;

use trefoil_core::{Error, NamespaceId, Result};
use trefoil_storage::{Batch, BlockCache, Storage};

use super::{Claim, FIRST_GENERATION, Home, Stamp};

/// The namespace that [`check`] leaves behind for [`check_reopened`].
const KEPT: &str = "kept";

/// Checks the contract on `home`, which must be empty.
pub fn check(home: &dyn Home) {
    assert!(home.entries().unwrap().is_empty());
    entries_are_created_once(home);
    entries_are_replaced_if_unchanged(home);
    a_deleted_namespace_is_gone(home);
    a_recreated_namespace_is_another_one(home);
    a_namespace_has_one_claim(home);
    what_was_made_must_be_there(home);
    generations_take_over_at_once(home);
    due_times_are_kept(home);
    a_namespace_is_verified_and_rebuilt(home);
    the_audit_log_is_read_backwards(home);
    assert!(home.entries().unwrap().is_empty());
    leave_something(home);
}

/// Checks on the home that [`check`] was called on, closed and opened again, that everything is still
/// there.
pub fn check_reopened(home: &dyn Home) {
    let entries = home.entries().unwrap();
    let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [KEPT]);
    assert_eq!(home.append_audit("after").unwrap(), 6);
    let id = id(KEPT);
    let entry = home.entry(&id).unwrap().unwrap();
    assert_eq!(entry.bytes, "second text");
    assert_eq!(home.due_times().unwrap(), [(id.clone(), 77)]);
    let claim = home.claim(&id, entry.stamp.incarnation, true).unwrap();
    let facts = claim.facts().unwrap();
    assert_eq!((facts.generation, facts.due), (2, Some(77)));
    let storage = open(&claim, 2);
    assert_eq!(word(&storage).as_deref(), Some("kept"));
    drop(storage);
    claim.release();
    let replaced = home.replace(&id, entry.stamp, b"third text").unwrap();
    assert!(replaced.is_some());
    delete(home, KEPT);
}

fn id(name: &str) -> NamespaceId {
    NamespaceId::new(name).unwrap()
}

fn create(home: &dyn Home, name: &str) -> Stamp {
    home.create(&id(name), b"text").unwrap()
}

/// Deletes a namespace with everything in it.
fn delete(home: &dyn Home, name: &str) {
    let entry = home.entry(&id(name)).unwrap().unwrap();
    let erase = home.delete(&id(name), entry.stamp.incarnation).unwrap();
    erase().unwrap();
    assert!(home.entry(&id(name)).unwrap().is_none());
    assert!(!home.has_storage(&id(name)).unwrap());
}

fn claim(home: &dyn Home, name: &str, must_exist: bool) -> Result<Arc<dyn Claim>> {
    let entry = home.entry(&id(name))?;
    let entry = entry.ok_or_else(|| Error::NamespaceNotFound(name.to_owned()))?;
    home.claim(&id(name), entry.stamp.incarnation, must_exist)
}

fn little_cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(1 << 20))
}

fn open(claim: &Arc<dyn Claim>, generation: u64) -> Arc<dyn Storage> {
    let opened = claim.open(generation, &little_cache(), &|_| Ok(0)).unwrap();
    opened.storage
}

/// Writes a word to a generation, by which it is known again.
fn write_word(storage: &Arc<dyn Storage>, word: &str) {
    let mut batch = Batch::default();
    batch.put("words", "word", word);
    storage.write(&batch).unwrap();
}

fn word(storage: &Arc<dyn Storage>) -> Option<String> {
    let map = storage.map("words").unwrap()?;
    let found = map.get(b"word").unwrap()?;
    Some(String::from_utf8(found.to_vec()).unwrap())
}

fn is_not_found<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::NamespaceNotFound(_)))
}

fn entries_are_created_once(home: &dyn Home) {
    assert!(home.entry(&id("a")).unwrap().is_none());
    for name in ["b", "a", "c.d_e-f"] {
        let stamp = home.create(&id(name), name.as_bytes()).unwrap();
        let entry = home.entry(&id(name)).unwrap().unwrap();
        assert_eq!((entry.stamp, &*entry.bytes), (stamp, name.as_bytes()));
        assert!(!home.has_storage(&id(name)).unwrap());
    }
    let again = home.create(&id("a"), b"other");
    assert!(matches!(again, Err(Error::NamespaceExists(_))), "{again:?}");
    let mut names = Vec::new();
    for (name, entry) in home.entries().unwrap() {
        assert_eq!(entry.unwrap().bytes, name);
        names.push(name);
    }
    assert_eq!(names, ["a", "b", "c.d_e-f"]);
    for name in names {
        delete(home, &name);
    }
}

fn entries_are_replaced_if_unchanged(home: &dyn Home) {
    let id = id("a");
    let first = create(home, "a");
    let second = home.replace(&id, first, b"second").unwrap().unwrap();
    assert_eq!(second.incarnation, first.incarnation);
    assert_ne!(second.version, first.version);
    assert!(home.replace(&id, first, b"late").unwrap().is_none());
    assert_eq!(home.entry(&id).unwrap().unwrap().bytes, "second");
    let third = home.replace(&id, second, b"third").unwrap().unwrap();
    assert_eq!(home.entry(&id).unwrap().unwrap().stamp, third);
    delete(home, "a");
    assert!(home.replace(&id, third, b"too late").unwrap().is_none());
    assert!(home.entry(&id).unwrap().is_none());
}

fn a_deleted_namespace_is_gone(home: &dyn Home) {
    let stamp = create(home, "a");
    let held = home.claim(&id("a"), stamp.incarnation, false).unwrap();
    write_word(&open(&held, FIRST_GENERATION), "old");
    held.set_due(Some(5)).unwrap();
    held.release();
    assert!(home.has_storage(&id("a")).unwrap());
    let erase = home.delete(&id("a"), stamp.incarnation).unwrap();
    let again = home.delete(&id("a"), stamp.incarnation).map(drop);
    assert!(is_not_found(&again), "{again:?}");
    assert!(home.due_times().unwrap().is_empty());
    // The id is free before everything has been erased.
    create(home, "a");
    assert!(!home.has_storage(&id("a")).unwrap());
    erase().unwrap();
    let new = claim(home, "a", false).unwrap();
    assert_eq!(new.facts().unwrap().due, None);
    assert_eq!(word(&open(&new, FIRST_GENERATION)), None);
    new.release();
    delete(home, "a");
}

fn a_recreated_namespace_is_another_one(home: &dyn Home) {
    let old = create(home, "a");
    delete(home, "a");
    let new = create(home, "a");
    assert_ne!(old.incarnation, new.incarnation);
    let claimed = home.claim(&id("a"), old.incarnation, false).map(drop);
    assert!(is_not_found(&claimed), "{claimed:?}");
    let deleted = home.delete(&id("a"), old.incarnation).map(drop);
    assert!(is_not_found(&deleted), "{deleted:?}");
    assert!(home.replace(&id("a"), old, b"old").unwrap().is_none());
    assert_eq!(home.entry(&id("a")).unwrap().unwrap().stamp, new);
    delete(home, "a");
}

fn a_namespace_has_one_claim(home: &dyn Home) {
    create(home, "a");
    let first = claim(home, "a", false).unwrap();
    let second = claim(home, "a", false);
    assert!(matches!(second, Err(Error::Locked { .. })), "{second:?}");
    first.release();
    first.release();
    let second = claim(home, "a", false).unwrap();
    let late = [
        first.facts().map(drop),
        first.set_due(Some(1)),
        first.switch(2),
        first.remove_others(),
        first.open(1, &little_cache(), &|_| Ok(0)).map(drop),
    ];
    for late in late {
        assert!(matches!(late, Err(Error::Closed(_))), "{late:?}");
    }
    assert_eq!(second.facts().unwrap().generation, FIRST_GENERATION);
    drop(second);
    claim(home, "a", false).unwrap().release();
    delete(home, "a");
}

fn what_was_made_must_be_there(home: &dyn Home) {
    create(home, "a");
    let missing = claim(home, "a", true);
    assert!(matches!(missing, Err(Error::Damaged(_))), "{missing:?}");
    let held = claim(home, "a", false).unwrap();
    drop(open(&held, FIRST_GENERATION));
    held.release();
    claim(home, "a", true).unwrap().release();
    delete(home, "a");
}

fn generations_take_over_at_once(home: &dyn Home) {
    create(home, "a");
    let held = claim(home, "a", false).unwrap();
    let generation = || held.facts().unwrap().generation;
    assert_eq!(generation(), 1);
    let first = open(&held, 1);
    write_word(&first, "first");
    let abandoned = open(&held, 2);
    write_word(&abandoned, "abandoned");
    assert_eq!(generation(), 1, "the next one does not count yet");
    drop(abandoned);
    held.remove_others().unwrap();
    let second = open(&held, 2);
    assert_eq!(word(&second), None, "what was abandoned is gone");
    write_word(&second, "second");
    held.switch(2).unwrap();
    assert_eq!(generation(), 2);
    assert_eq!(word(&first).as_deref(), Some("first"));
    drop((first, second));
    held.remove_others().unwrap();
    held.release();
    let held = claim(home, "a", true).unwrap();
    assert_eq!(held.facts().unwrap().generation, 2);
    assert_eq!(word(&open(&held, 2)).as_deref(), Some("second"));
    held.release();
    delete(home, "a");
}

fn due_times_are_kept(home: &dyn Home) {
    for name in ["a", "b"] {
        create(home, name);
    }
    assert!(home.due_times().unwrap().is_empty());
    let held = claim(home, "a", false).unwrap();
    assert_eq!(held.facts().unwrap().due, None);
    for due in [0, 1_763_000_000_123, u64::MAX - 1] {
        held.set_due(Some(due)).unwrap();
        assert_eq!(held.facts().unwrap().due, Some(due));
        assert_eq!(home.due_times().unwrap(), [(id("a"), due)]);
    }
    held.set_due(None).unwrap();
    held.set_due(None).unwrap();
    assert_eq!(held.facts().unwrap().due, None);
    assert!(home.due_times().unwrap().is_empty());
    held.release();
    for name in ["a", "b"] {
        delete(home, name);
    }
}

fn a_namespace_is_verified_and_rebuilt(home: &dyn Home) {
    create(home, "a");
    let held = claim(home, "a", false).unwrap();
    write_word(&open(&held, FIRST_GENERATION), "derived");
    let verified = held.verify(&mut |_| {}).unwrap();
    assert_eq!((verified.log.commits, verified.log.findings), (0, vec![]));
    assert!(verified.beside.is_empty());
    assert_eq!(
        word(&open(&held, FIRST_GENERATION)).as_deref(),
        Some("derived"),
        "verifying changes nothing"
    );
    held.remove_derived(&|_| Ok(0)).unwrap();
    assert_eq!(word(&open(&held, FIRST_GENERATION)), None);
    held.release();
    delete(home, "a");
}

fn the_audit_log_is_read_backwards(home: &dyn Home) {
    assert!(home.read_audit(u64::MAX, 10).unwrap().is_empty());
    for number in 1..=5 {
        let record = format!("record {number} \u{e9}\"\\");
        assert_eq!(home.append_audit(&record).unwrap(), number);
    }
    let numbers = |before: u64, limit: usize| {
        let found = home.read_audit(before, limit).unwrap().into_iter();
        let found = found.map(|(number, record)| {
            assert_eq!(record, format!("record {number} \u{e9}\"\\"));
            number
        });
        found.collect::<Vec<u64>>()
    };
    assert_eq!(numbers(u64::MAX, 10), [5, 4, 3, 2, 1]);
    assert_eq!(numbers(u64::MAX, 2), [5, 4]);
    assert_eq!(numbers(4, 2), [3, 2]);
    assert!(numbers(1, 10).is_empty() && numbers(9, 0).is_empty());
}

fn leave_something(home: &dyn Home) {
    let stamp = create(home, KEPT);
    let replaced = home.replace(&id(KEPT), stamp, b"second text").unwrap();
    assert!(replaced.is_some());
    let held = claim(home, KEPT, false).unwrap();
    drop(open(&held, FIRST_GENERATION));
    write_word(&open(&held, 2), "kept");
    held.switch(2).unwrap();
    held.remove_others().unwrap();
    held.set_due(Some(77)).unwrap();
    held.release();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::{LocalHome, MemoryHome};

    #[test]
    fn memory_keeps_the_contract() {
        let home = MemoryHome::new();
        check(&home);
        check_reopened(&home);
    }

    #[test]
    fn a_directory_keeps_the_contract() {
        let data = tempfile::tempdir().unwrap();
        let open = || LocalHome::open(data.path(), Default::default());
        let home = open().unwrap();
        check(&home);
        assert!(matches!(open(), Err(Error::Locked { .. })));
        home.close().unwrap();
        check_reopened(&open().unwrap());
    }
}
