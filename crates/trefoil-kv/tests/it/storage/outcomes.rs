//! What an append says when the engine fails, and what is there afterwards.

use trefoil_core::Error;
use trefoil_kv::memory::{CutOff, Fate, MemoryOptions};
use trefoil_storage::{Group, Storage as _};

use super::{Place, append, open, record, replayed};

/// Appends a group whose last batch has a fate, on a connection of its own. Returns what the append
/// said.
fn append_with(place: &Place, fate: Fate) -> trefoil_core::Result<()> {
    let node = place.engine.connect(MemoryOptions::default());
    let (kv, epoch) = place.take_over(&node);
    let storage = open(&node, kv, epoch, place.directory.path()).unwrap();
    append(&storage, vec![record(1, 1, &[b"before"], b"")]).unwrap();
    node.set_fates(Some(Box::new(CutOff::after(0, fate))));
    let appended = append(&storage, vec![record(2, 2, &[b"a"], b"changes")]);
    node.set_fates(None);
    // The storage is of no more use, even if the engine is.
    if matches!(appended, Err(Error::Unknown { .. })) {
        let again = append(&storage, vec![record(2, 2, &[b"b"], b"")]);
        assert!(matches!(again, Err(Error::Closed(_))), "{again:?}");
        let read = storage.replay(0, &mut |_| Ok(()));
        assert!(matches!(read, Err(Error::Closed(_))), "{read:?}");
    }
    appended
}

#[test]
fn a_group_that_certainly_failed_is_not_there() {
    let place = Place::new();
    let appended = append_with(&place, Fate::FailsBefore);
    assert!(matches!(appended, Err(Error::Io { .. })), "{appended:?}");
    let storage = place.open();
    assert_eq!((storage.end().commit, replayed(&storage).len()), (1, 1));
}

#[test]
fn a_group_of_which_nobody_knows_is_there_whole() {
    let place = Place::new();
    let appended = append_with(&place, Fate::FailsAfter);
    assert!(
        matches!(appended, Err(Error::Unknown { .. })),
        "{appended:?}"
    );
    let storage = place.open();
    assert_eq!(storage.end().commit, 2);
    let expected = [
        record(1, 1, &[b"before"], b""),
        record(2, 2, &[b"a"], b"changes"),
    ];
    assert_eq!(replayed(&storage), expected);
}

#[test]
fn a_group_that_was_on_its_way_when_another_node_took_over_is_unknown() {
    for fate in [Fate::Held, Fate::Late] {
        let place = Place::new();
        let node = place.engine.connect(MemoryOptions::default());
        let (kv, epoch) = place.take_over(&node);
        let old = open(&node, kv, epoch, place.directory.path()).unwrap();
        node.set_fates(Some(Box::new(CutOff::after(0, fate))));
        let records = vec![record(1, 1, &[b"a"], b"")];
        let completion = old.append(&Group { records });
        let cache = tempfile::tempdir().unwrap();
        let new = place.open_in(cache.path()).unwrap();
        let is_there = u64::from(fate == Fate::Late);
        assert_eq!(new.end().commit, is_there);
        place.engine.let_go();
        let appended = completion.wait();
        match fate {
            // It was done in time, and the answer comes late. What reads next is refused.
            Fate::Late => appended.unwrap(),
            _ => assert!(
                matches!(appended, Err(Error::Unknown { .. })),
                "{appended:?}"
            ),
        }
        assert_eq!(new.end().commit, is_there);
        append(&new, vec![record(is_there + 1, is_there + 1, &[b"b"], b"")]).unwrap();
        let fenced = append(&old, vec![record(2, 2, &[b"c"], b"")]);
        assert!(matches!(fenced, Err(Error::Closed(_))), "{fenced:?}");
        assert!(
            old.read(&[1], &mut |_| std::ops::ControlFlow::Continue(()))
                .is_err()
        );
        assert!(old.map_names().is_err());
        let last = replayed(&new).pop().unwrap();
        assert_eq!(last.items().next().unwrap().2, b"b");
    }
}

#[test]
fn a_batch_of_maps_of_which_nobody_knows_ends_the_storage() {
    let place = Place::new();
    let node = place.engine.connect(MemoryOptions::default());
    let (kv, epoch) = place.take_over(&node);
    let storage = open(&node, kv, epoch, place.directory.path()).unwrap();
    let mut batch = trefoil_storage::Batch::default();
    batch.put("map", "key", "value");
    node.set_fates(Some(Box::new(CutOff::after(0, Fate::FailsAfter))));
    let written = storage.write(&batch);
    assert!(matches!(written, Err(Error::Unknown { .. })), "{written:?}");
    node.set_fates(None);
    assert!(matches!(storage.write(&batch), Err(Error::Closed(_))));
    let map = place.open().map("map").unwrap().unwrap();
    assert_eq!(map.get(b"key").unwrap().unwrap(), "value");
}

#[test]
fn an_engine_that_is_away_for_a_moment_is_asked_again() {
    let place = Place::new();
    let storage = place.open();
    let mut batch = trefoil_storage::Batch::default();
    batch.put("map", "key", "value");
    let fail_once = || {
        let cut = Box::new(CutOff::after(0, Fate::FailsBefore));
        place.engine.set_fates(Some(cut));
    };
    fail_once();
    assert!(matches!(storage.write(&batch), Err(Error::Io { .. })));
    assert!(storage.load("run", &mut |_| Ok(())).is_err());
    place.engine.set_fates(None);
    storage.write(&batch).unwrap();
    storage.load("run", &mut |_| Ok(())).unwrap();
    assert_eq!(storage.map_names().unwrap(), ["map", "run"]);
}
