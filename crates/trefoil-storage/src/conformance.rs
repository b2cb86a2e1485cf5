//! What every implementation of [`Storage`] must do, as one function to be called from its tests.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use crate::{Batch, Group, Items, Label, Record, Storage};
use trefoil_core::{Direction, Error};

/// Checks the contract on `storage`, which must be empty.
pub fn check(storage: &dyn Storage) {
    log_holds_what_was_appended(storage);
    maps_are_ordered(storage);
}

/// Checks on the storage that [`check`] was called on, closed and opened again, that everything is
/// still there and that the log goes on.
pub fn check_reopened(storage: &dyn Storage) {
    assert_eq!((storage.end().commit, storage.end().position), (4, 10));
    let mut n_records = 0;
    storage
        .replay(0, &mut |_| {
            n_records += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(n_records, 4);
    assert_eq!(storage.map_names().unwrap(), ["m", "n"]);
    let map = storage.map("m").unwrap().unwrap();
    assert_eq!(map.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(map.get(b"c").unwrap(), None);
    let records = vec![record(5, 11, &["after"])];
    storage.append(&Group { records }).unwrap();
    let mut seen = Vec::new();
    storage
        .read(&[11, 1], &mut |item| seen.push(item.bytes))
        .unwrap();
    assert_eq!(seen, ["after", "a"]);
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
        .unwrap();
    storage
        .append(&Group {
            records: records[1..].to_vec(),
        })
        .unwrap();
    assert_eq!((storage.end().commit, storage.end().position), (3, 10));

    let mut seen = Vec::new();
    storage
        .read(&[2, 10, 1], &mut |item| {
            seen.push((item.position, item.bytes));
        })
        .unwrap();
    assert_eq!(
        seen,
        [(2, "bb".into()), (10, "ccc".into()), (1, "a".into())]
    );
    assert!(storage.read(&[5], &mut |_| {}).is_err());

    let mut labels = Vec::new();
    storage
        .read_labels(&[2, 10], &mut |label| {
            labels.push((label.flags, label.word));
        })
        .unwrap();
    assert_eq!(labels, [(1, 2), (0, 3)]);

    for (after, expected) in [(0, &records[..]), (1, &records[1..]), (3, &[])] {
        let mut replayed = Vec::new();
        storage
            .replay(after, &mut |record| {
                replayed.push(record.clone());
                Ok(())
            })
            .unwrap();
        assert_eq!(replayed, expected);
    }

    let failing = storage.replay(0, &mut |_| Err(Error::invalid("enough")));
    assert!(failing.is_err());
    // A record without items moves the commit and not the position.
    let records = vec![record(4, 11, &[])];
    storage.append(&Group { records }).unwrap();
    assert_eq!((storage.end().commit, storage.end().position), (4, 10));
    for position in [0, 3, 9, 11] {
        assert!(storage.read(&[position], &mut |_| {}).is_err());
        assert!(storage.read_labels(&[position], &mut |_| {}).is_err());
    }
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

#[cfg(test)]
mod tests {
    #[test]
    fn memory_keeps_the_contract() {
        super::check(&crate::MemoryStorage::new());
    }
}
