//! Everything that can be read of a storage.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use trefoil_core::{Direction, Result};
use trefoil_kv::KvStorage;
use trefoil_storage::{Label, Storage as _, StoredItem};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// What is in a storage, without what it may drop.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    end: (u64, u64),
    commits: Vec<u8>,
    changes: BTreeMap<u64, Vec<u8>>,
    items: Vec<(u64, Label, Vec<u8>)>,
    snapshot: Entries,
    maps: BTreeMap<String, Entries>,
}

/// Reads everything, items in two ways.
pub(super) fn look(storage: &KvStorage) -> Result<Seen> {
    let end = storage.end();
    let mut seen = Seen {
        end: (end.commit, end.position),
        ..Seen::default()
    };
    let snapshot = storage.snapshot().map_or(0, |snapshot| snapshot.commit);
    storage.replay(0, &mut |record| {
        seen.commits.extend_from_slice(&record.commits);
        if record.last_commit() > snapshot {
            assert!(!record.changes_dropped);
            let changes = record.changes.clone();
            seen.changes.insert(record.first_commit, changes);
        }
        for (position, label, bytes) in record.items() {
            seen.items.push((position, label, bytes.to_vec()));
        }
        Ok(())
    })?;
    storage.read_snapshot(&mut |key, value| {
        seen.snapshot.push((key.to_vec(), value.to_vec()));
        Ok(())
    })?;
    for name in storage.map_names()? {
        let Some(map) = storage.map(&name)? else {
            continue;
        };
        let mut entries = Entries::new();
        for entry in map.scan(b"", b"", Direction::Forwards) {
            let (key, value) = entry?;
            entries.push((key.to_vec(), value.to_vec()));
        }
        seen.maps.insert(name, entries);
    }
    // Those that follow each other, and those that do not.
    for step in [1, 7] {
        let mut read = Vec::new();
        let mut visit = |item: StoredItem| {
            read.push((item.position, item.label, item.bytes.to_vec()));
            ControlFlow::Continue(())
        };
        let positions: Vec<u64> = (0..end.position + 5).step_by(step).collect();
        storage.read(&positions, &mut visit)?;
        let is_asked = |position: u64| position.is_multiple_of(step as u64);
        let replayed = seen
            .items
            .iter()
            .filter(|(position, ..)| is_asked(*position));
        assert!(replayed.eq(read.iter()));
    }
    Ok(seen)
}
