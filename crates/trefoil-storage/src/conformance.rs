//! What every implementation of [`Storage`] must do, as one function to be called from its tests.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Batch, Group, Items, KEY_BYTES_MAX, Label, Map, Record, Snapshot, Storage, StoredItem, Upkeep,
};
use trefoil_core::{Direction, Error};

/// Checks the contract on `storage`, which must be empty.
pub fn check(storage: &dyn Storage) {
    log_holds_what_was_appended(storage);
    maps_are_ordered(storage);
    a_scan_sees_one_moment(storage);
    what_cannot_be_a_key_is_not_there(storage);
    a_moment_of_a_map_does_not_change(storage);
    a_snapshot_stands_for_changes(storage);
    items_are_replaced_and_dropped(storage);
}

/// Checks on the storage that [`check`] was called on, closed and opened again, that everything is
/// still there and that the log goes on.
pub fn check_reopened(storage: &dyn Storage) {
    assert_eq!((storage.end().commit, storage.end().position), (8, 11));
    let records = replayed(storage, 0);
    assert_eq!(
        records.iter().map(|record| record.n_commits).sum::<u32>(),
        8
    );
    assert!(
        records
            .iter()
            .all(|record| record.last_commit() > 7 || record.n_commits < 5)
    );
    check_edited(storage);
    assert_eq!(storage.snapshot(), Some(SECOND));
    assert_eq!(snapshot_entries(storage), entries(SECOND));
    assert_eq!(storage.map_names().unwrap(), ["m", "n"]);
    let map = storage.map("m").unwrap().unwrap();
    assert_eq!(map.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(map.get(b"c").unwrap(), None);
    let records = vec![record(9, 12, &["after"])];
    storage.append(&Group { records }).wait().unwrap();
    assert_eq!(
        bodies(storage, &[12, 1]),
        [(12, "after".into()), (1, "a".into())]
    );
}

fn record(first_commit: u64, first_position: u64, bodies: &[&str]) -> Record {
    let mut items = Items::default();
    for (index, body) in bodies.iter().enumerate() {
        items.push(
            Label {
                flags: index as u8,
                word: body.len() as u64,
            },
            body.as_bytes(),
        );
    }
    let commits = format!("commit {first_commit}").into_bytes();
    Record {
        first_commit,
        n_commits: 1,
        first_position,
        items,
        commits,
        ..Record::default()
    }
}

fn log_holds_what_was_appended(storage: &dyn Storage) {
    assert_eq!((storage.end().commit, storage.end().position), (0, 0));
    let records = [
        record(1, 1, &["a", "bb"]),
        record(2, 3, &[]),
        record(3, 10, &["ccc"]),
    ];
    storage
        .append(&Group {
            records: records[..1].to_vec(),
        })
        .wait()
        .unwrap();
    storage
        .append(&Group {
            records: records[1..].to_vec(),
        })
        .wait()
        .unwrap();
    assert_eq!((storage.end().commit, storage.end().position), (3, 10));

    let expected = [(2, "bb".into()), (10, "ccc".into()), (1, "a".into())];
    assert_eq!(bodies(storage, &[2, 10, 1]), expected);
    assert_eq!(bodies(storage, &[5, 2, 0, 10, 7, 1, 99]), expected);
    let mut n_seen = 0;
    let mut first_two = |_| {
        n_seen += 1;
        match n_seen {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    storage.read(&[1, 5, 2, 10], &mut first_two).unwrap();
    assert_eq!(n_seen, 2, "whoever reads stops when it has seen enough");
    let label = |flags, word| Label { flags, word };
    let expected = [(2, label(1, 2)), (10, label(0, 3))];
    assert_eq!(labels(storage, &[2, 5, 10]), expected);

    for (after, expected) in [(0, &records[..]), (1, &records[1..]), (3, &[])] {
        assert_eq!(replayed(storage, after), expected);
    }

    let failing = storage.replay(0, &mut |_| Err(Error::invalid("enough")));
    assert!(failing.is_err());
    // A record without items moves the commit and not the position.
    let records = vec![record(4, 11, &[])];
    storage.append(&Group { records }).wait().unwrap();
    assert_eq!((storage.end().commit, storage.end().position), (4, 10));
    for position in [0, 3, 9, 11] {
        assert_eq!(bodies(storage, &[position]), []);
        assert_eq!(labels(storage, &[position]), []);
    }
}

/// The positions and bytes of the items that are read at these positions.
fn bodies(storage: &dyn Storage, positions: &[u64]) -> Vec<(u64, Bytes)> {
    let mut seen = Vec::new();
    let mut visit = |item: StoredItem| {
        seen.push((item.position, item.bytes));
        ControlFlow::Continue(())
    };
    storage.read(positions, &mut visit).unwrap();
    seen
}

/// The positions and labels of the items at these positions.
fn labels(storage: &dyn Storage, positions: &[u64]) -> Vec<(u64, Label)> {
    let mut seen = Vec::new();
    let mut visit = |position, label| seen.push((position, label));
    storage.read_labels(positions, &mut visit).unwrap();
    seen
}

const STUB: Label = Label {
    flags: 128,
    word: u64::MAX,
};

fn items_are_replaced_and_dropped(storage: &dyn Storage) {
    let stub = |position| StoredItem {
        position,
        label: STUB,
        bytes: "gone".into(),
    };
    let end = storage.end();
    assert!(storage.replace_items(&[stub(2), stub(5)]).is_err());
    assert_eq!(bodies(storage, &[2]), [(2, "bb".into())]);
    // Each may be repeated.
    for _ in 0..2 {
        storage.replace_items(&[stub(2)]).unwrap();
        storage.drop_items(&[8..11, 4..6]).unwrap();
        check_edited(storage);
        assert_eq!(storage.end(), end);
    }
    assert!(storage.replace_items(&[stub(10)]).is_err());
    let mut lacking = record(9, 12, &["x"]);
    lacking.items.push_dropped();
    let records = vec![lacking];
    assert!(storage.append(&Group { records }).wait().is_err());
}

/// Checks that one item is replaced, another dropped, and that nothing else is changed.
fn check_edited(storage: &dyn Storage) {
    let all: Vec<u64> = (0..=11).collect();
    let expected: [(u64, Bytes); 3] = [
        (1, "a".into()),
        (2, "gone".into()),
        (11, "with changes".into()),
    ];
    assert_eq!(bodies(storage, &all), expected);
    assert_eq!(labels(storage, &[2, 10]), [(2, STUB)]);
    let records = replayed(storage, 0);
    let replayed = records.iter().flat_map(Record::items);
    let replayed: Vec<_> = replayed
        .map(|(position, _, bytes)| (position, Bytes::copy_from_slice(bytes)))
        .collect();
    assert_eq!(replayed, expected);
    let lacking = records.iter().filter(|record| record.items.has_dropped());
    let lacking: Vec<_> = lacking
        .map(|record| (record.first_position, record.items.len()))
        .collect();
    assert_eq!(lacking, [(10, 1)]);
}

fn maps_are_ordered(storage: &dyn Storage) {
    assert!(storage.map("m").unwrap().is_none());
    let mut batch = Batch::default();
    batch.put("m", "b", "2");
    batch.put("m", "a", "1");
    batch.put("m", "c", "3");
    batch.put("n", "x", "9");
    storage.write(&batch).unwrap();
    let mut batch = Batch::default();
    batch.remove("m", "c");
    storage.write(&batch).unwrap();

    let map = storage.map("m").unwrap().unwrap();
    assert_eq!(map.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(map.get(b"c").unwrap(), None);
    let keys = |from: &str, to: &str, direction| -> Vec<String> {
        map.scan(from.as_bytes(), to.as_bytes(), direction)
            .map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap())
            .collect()
    };
    assert_eq!(keys("", "", Direction::Forwards), ["a", "b"]);
    assert_eq!(keys("", "", Direction::Backwards), ["b", "a"]);
    assert_eq!(keys("a", "b", Direction::Forwards), ["a"]);
    assert_eq!(keys("b", "a", Direction::Forwards), [""; 0]);

    storage
        .load("run", &mut |sink| {
            (0..1000u32).try_for_each(|n| sink(n.to_be_bytes().to_vec(), vec![n as u8; 50]))
        })
        .unwrap();
    assert_eq!(storage.map_names().unwrap(), ["m", "n", "run"]);
    let run = storage.map("run").unwrap().unwrap();
    assert_eq!(run.scan(&[], &[], Direction::Forwards).count(), 1000);
    assert_eq!(run.get(&999u32.to_be_bytes()).unwrap().unwrap().len(), 50);
    let backwards = run
        .scan(&[], &700u32.to_be_bytes(), Direction::Backwards)
        .next();
    assert_eq!(backwards.unwrap().unwrap().0.as_ref(), 699u32.to_be_bytes());

    let again = storage.load("run", &mut |_| Ok(()));
    assert!(again.is_err(), "the map exists");
    assert_eq!(run.get(&5u32.to_be_bytes()).unwrap().unwrap().len(), 50);
    storage.drop_map("missing").unwrap();
    storage.drop_map("run").unwrap();
    assert!(storage.map("run").unwrap().is_none());
    assert_eq!(storage.map_names().unwrap(), ["m", "n"]);
    assert_eq!(run.get(&1u32.to_be_bytes()).unwrap().unwrap().len(), 50);
}

fn replayed(storage: &dyn Storage, after: u64) -> Vec<Record> {
    let mut records = Vec::new();
    storage
        .replay(after, &mut |record| {
            records.push(record.clone());
            Ok(())
        })
        .unwrap();
    records
}

fn a_moment_of_a_map_does_not_change(storage: &dyn Storage) {
    let write = |key: &str, value: Option<&str>| {
        let mut batch = Batch::default();
        match value {
            Some(value) => batch.put("n", key, value),
            None => batch.remove("n", key),
        }
        storage.write(&batch).unwrap();
    };
    write("moment", Some("1"));
    write("other", Some("1"));
    let map = storage.map("n").unwrap().unwrap();
    let moment = map.clone().moment().unwrap();
    write("moment", Some("2"));
    write("other", None);
    write("third", Some("1"));
    let value = |map: &Arc<dyn Map>, key: &str| map.get(key.as_bytes()).unwrap();
    for moment in [moment.clone(), moment.moment().unwrap()] {
        assert_eq!(value(&moment, "moment").unwrap(), "1");
        assert_eq!(value(&moment, "other").unwrap(), "1");
        assert_eq!(value(&moment, "third"), None);
        let keys = moment.scan(b"moment", b"n", Direction::Forwards);
        let values: Vec<_> = keys.map(|entry| entry.unwrap().1).collect();
        assert_eq!(values, ["1"]);
    }
    assert_eq!(value(&map, "moment").unwrap(), "2");
    for key in ["moment", "other", "third"] {
        write(key, None);
    }
}

fn a_scan_sees_one_moment(storage: &dyn Storage) {
    let mut batch = Batch::default();
    for number in 0..2000u32 {
        batch.put("n", number.to_be_bytes(), "before");
    }
    storage.write(&batch).unwrap();
    let map = storage.map("n").unwrap().unwrap();
    let scan = map.scan(&[], b"x", Direction::Forwards);
    let mut batch = Batch::default();
    for number in 0..2000u32 {
        batch.put("n", number.to_be_bytes(), "after");
    }
    batch.remove("n", 5u32.to_be_bytes());
    storage.write(&batch).unwrap();
    let mut n = 0;
    for entry in scan {
        assert_eq!(entry.unwrap().1, "before");
        n += 1;
    }
    assert_eq!(n, 2000);
    let now = map.scan(&[], b"x", Direction::Forwards);
    assert_eq!(
        now.filter(|entry| entry.as_ref().unwrap().1 == "after")
            .count(),
        1999
    );
}

fn what_cannot_be_a_key_is_not_there(storage: &dyn Storage) {
    let longest = vec![b'k'; KEY_BYTES_MAX];
    let longer = |last: &[u8]| [&longest[..], last].concat();
    let mut batch = Batch::default();
    batch.put("m", longest.clone(), "longest");
    batch.put("m", "l", "after it");
    storage.write(&batch).unwrap();
    storage
        .load("run", &mut |sink| {
            sink(b"a".to_vec(), b"1".to_vec())?;
            sink(longest.clone(), b"longest".to_vec())?;
            sink(b"l".to_vec(), b"after it".to_vec())
        })
        .unwrap();
    for name in ["m", "run"] {
        let map = storage.map(name).unwrap().unwrap();
        assert!(map.get(&longest).unwrap().is_some());
        for key in [vec![], longer(b"a"), longer(&[b'a'; 5000])] {
            assert_eq!(map.get(&key).unwrap(), None, "{name}");
        }
        let values = |from: &[u8], to: &[u8]| values(map.as_ref(), from, to);
        assert_eq!(values(&longest, b""), ["longest", "after it"], "{name}");
        assert_eq!(values(&longer(b"a"), b""), ["after it"], "{name}");
        assert_eq!(values(b"k", &longest), [""; 0], "{name}");
        assert_eq!(values(b"k", &longer(b"a")), ["longest"], "{name}");
        assert_eq!(values(&longest, &longer(b"a")), ["longest"], "{name}");
        assert_eq!(values(&longer(b"a"), &longer(b"b")), [""; 0], "{name}");
        assert_eq!(values(&longer(b"a"), &longest), [""; 0], "{name}");
    }
    for key in [vec![], longer(b"a")] {
        let (mut put, mut remove) = (Batch::default(), Batch::default());
        put.put("m", "before", "the key");
        put.put("m", key.clone(), "value");
        remove.remove("m", key.clone());
        assert!(storage.write(&put).is_err());
        assert!(storage.write(&remove).is_err());
        let loaded = storage.load("other", &mut |sink| sink(key.clone(), Vec::new()));
        assert!(loaded.is_err());
    }
    storage.drop_map("run").unwrap();
    let map = storage.map("m").unwrap().unwrap();
    assert_eq!(map.get(b"before").unwrap(), None, "refused whole");
    assert_eq!(storage.map_names().unwrap(), ["m", "n"]);
}

/// The values of the entries with `from <= key < to`, the same in both directions.
fn values(map: &dyn Map, from: &[u8], to: &[u8]) -> Vec<String> {
    let walk = |direction| -> Vec<String> {
        map.scan(from, to, direction)
            .map(|entry| String::from_utf8(entry.unwrap().1.to_vec()).unwrap())
            .collect()
    };
    let forwards = walk(Direction::Forwards);
    let mut backwards = walk(Direction::Backwards);
    backwards.reverse();
    assert_eq!(forwards, backwards);
    forwards
}

const FIRST: Snapshot = Snapshot {
    commit: 7,
    entries: 3000,
    bytes: 3000 * 404,
};
const SECOND: Snapshot = Snapshot {
    commit: 8,
    entries: 1,
    bytes: 404,
};

/// The entries that these tests write to a snapshot.
fn entries(snapshot: Snapshot) -> Vec<(Vec<u8>, Vec<u8>)> {
    let numbers = 0..snapshot.entries as u32;
    let entry = |number: u32| {
        (
            number.to_be_bytes().to_vec(),
            number.to_le_bytes().repeat(100),
        )
    };
    numbers.map(entry).collect()
}

fn snapshot_entries(storage: &dyn Storage) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    storage
        .read_snapshot(&mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(())
        })
        .unwrap();
    found
}

fn write_snapshot(storage: &dyn Storage, snapshot: Snapshot) -> trefoil_core::Result<()> {
    storage.write_snapshot(snapshot.commit, &mut |sink| {
        let mut entries = entries(snapshot).into_iter();
        entries.try_for_each(|(key, value)| sink(key, value))
    })
}

/// Checks that replaying gives these records, but for changes that the snapshot has.
fn check_changes(storage: &dyn Storage, expected: &[Record]) {
    let last = storage.snapshot().map_or(0, |snapshot| snapshot.commit);
    let mut found: Vec<Record> = Vec::new();
    for mut record in replayed(storage, 4) {
        assert!(!record.changes_dropped || record.last_commit() <= last);
        record.drop_changes(last);
        if !found
            .last_mut()
            .is_some_and(|before| before.absorb(&record))
        {
            found.push(record);
        }
    }
    let mut wanted: Vec<Record> = Vec::new();
    for mut record in expected.iter().cloned() {
        record.drop_changes(last);
        if !wanted
            .last_mut()
            .is_some_and(|before| before.absorb(&record))
        {
            wanted.push(record);
        }
    }
    assert_eq!(found, wanted);
}

fn snapshots_are_refused(storage: &dyn Storage) {
    let failing = storage.write_snapshot(7, &mut |_| Err(Error::invalid("enough")));
    assert!(failing.is_err());
    let unordered = storage.write_snapshot(7, &mut |sink| {
        sink(b"b".to_vec(), Vec::new())?;
        sink(b"a".to_vec(), Vec::new())
    });
    assert!(unordered.is_err());
    assert!(
        storage.write_snapshot(9, &mut |_| Ok(())).is_err(),
        "no such commit"
    );
    assert_eq!(
        (storage.snapshot(), snapshot_entries(storage)),
        (None, Vec::new())
    );
}

fn a_snapshot_stands_for_changes(storage: &dyn Storage) {
    assert_eq!(
        (storage.snapshot(), snapshot_entries(storage)),
        (None, Vec::new())
    );
    let mut records = vec![
        record(5, 11, &["with changes"]),
        record(6, 12, &[]),
        record(7, 12, &[]),
        record(8, 12, &[]),
    ];
    for record in &mut records {
        record.changes = format!("changes of {}", record.first_commit).into_bytes();
        let records = vec![record.clone()];
        storage.append(&Group { records }).wait().unwrap();
    }
    check_changes(storage, &records);
    snapshots_are_refused(storage);
    check_changes(storage, &records);
    for snapshot in [FIRST, SECOND] {
        write_snapshot(storage, snapshot).unwrap();
        assert_eq!(storage.snapshot(), Some(snapshot));
        assert_eq!(snapshot_entries(storage), entries(snapshot));
        check_changes(storage, &records);
        while storage.maintain(&|| false).unwrap() == Upkeep::More {}
        check_changes(storage, &records);
    }
    assert!(
        write_snapshot(storage, FIRST).is_err(),
        "there is a newer one"
    );
    let enough = storage.read_snapshot(&mut |_, _| Err(Error::invalid("enough")));
    assert!(enough.is_err());
    assert_eq!(bodies(storage, &[11]), [(11, "with changes".into())]);
    let appended = storage
        .append(&Group {
            records: vec![Record {
                changes_dropped: true,
                ..record(9, 12, &[])
            }],
        })
        .wait();
    assert!(
        appended.is_err(),
        "a record cannot come without its changes"
    );
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_keeps_the_contract() {
        super::check(&crate::MemoryStorage::new());
    }
}
