//! That nothing is left of what does not count, and no record of what was only changed.

use trefoil_core::Direction;
use trefoil_kv::contract::{Kv, KvEngine as _};
use trefoil_kv::memory::{CutOff, Fate};
use trefoil_kv::{KvStorage, KvStorageOptions, erase_generation, generations};
use trefoil_storage::{Batch, Storage, Upkeep};

use super::{Place, append, noise, record, replayed};

fn keep_up(storage: &KvStorage) {
    while storage.maintain(&|| false).unwrap() == Upkeep::More {}
}

/// How many keys a store has of each kind.
fn letters(kv: &dyn Kv) -> Vec<(char, usize)> {
    let page = kv
        .scan(&[0], &[255], Direction::Forwards, usize::MAX, false)
        .unwrap();
    let mut found = std::collections::BTreeMap::new();
    for (key, _) in page.entries {
        *found.entry(char::from(key[8])).or_default() += 1;
    }
    found.into_iter().collect()
}

fn count(kv: &dyn Kv, letter: char) -> usize {
    let found = letters(kv);
    let found = found.iter().find(|(other, _)| *other == letter);
    found.map_or(0, |(_, n)| *n)
}

fn write_snapshot(storage: &KvStorage, commit: u64, n_entries: u32) {
    let written = storage.write_snapshot(commit, &mut |sink| {
        (0..n_entries)
            .try_for_each(|number| sink(number.to_be_bytes().to_vec(), noise(number.into(), 300)))
    });
    written.unwrap();
}

#[test]
fn a_counter_that_changes_a_thousand_times_leaves_a_few_records() {
    for place in [Place::new(), Place::tiny()] {
        let (kv, epoch) = place.take_over(&place.engine);
        let storage = super::open(
            &place.engine,
            std::sync::Arc::clone(&kv),
            epoch,
            place.directory.path(),
        )
        .unwrap();
        for commit in 1..=1000 {
            append(&storage, vec![record(commit, 1, &[], b"+1")]).unwrap();
        }
        assert_eq!((count(&*kv, 'r'), count(&*kv, 'd')), (1000, 1000));
        write_snapshot(&storage, 990, 1);
        assert_eq!(storage.maintain(&|| true).unwrap(), Upkeep::Waiting);
        keep_up(&storage);
        assert_eq!(count(&*kv, 'd'), 10);
        let n_records = count(&*kv, 'r');
        assert!(n_records <= 500, "{n_records}");
        let records = replayed(&storage);
        let n_commits: u32 = records.iter().map(|record| record.n_commits).sum();
        assert_eq!(n_commits, 1000);
        let commits: Vec<u8> = records
            .iter()
            .flat_map(|record| record.commits.clone())
            .collect();
        let expected: String = (1..=1000)
            .map(|commit| format!("commit {commit}"))
            .collect();
        assert_eq!(commits, expected.as_bytes());
        assert!(
            records
                .iter()
                .all(|record| record.changes_dropped == (record.last_commit() <= 990))
        );
        assert_eq!(storage.maintain(&|| false).unwrap(), Upkeep::Done);
        write_snapshot(&storage, 1000, 1);
        keep_up(&storage);
        assert_eq!(count(&*kv, 'd'), 0);
        assert!(count(&*kv, 'r') <= n_records + 1);
    }
}

#[test]
fn small_groups_become_a_few_blocks() {
    for (place, n_groups) in [(Place::new(), 20_000), (Place::tiny(), 1000)] {
        let (kv, epoch) = place.take_over(&place.engine);
        let cache = place.directory.path();
        let kept = std::sync::Arc::clone(&kv);
        let storage = super::open(&place.engine, kept, epoch, cache).unwrap();
        let mut expected = Vec::new();
        let mut position = 1;
        for commit in 1..=n_groups {
            // A skipped position now and then, and an item that is large.
            position += u64::from(commit % 400 == 0);
            let length = if commit % 300 == 0 { 900 } else { 20 };
            let text = format!("an event of commit {commit}, {}", "x".repeat(length));
            let next = record(commit, position, &[text.as_bytes()], b"");
            expected.push(next.clone());
            append(&storage, vec![next]).unwrap();
            position += 1;
        }
        let before = count(&*kv, 'i');
        assert_eq!(before as u64, n_groups);
        drop(storage);
        let storage = place.open();
        // Some blocks are cached when they are packed.
        let early: Vec<u64> = (1..position).step_by(17).collect();
        assert!(super::items(&storage, &early).len() > 50);
        let used = storage.usage().unwrap().log_used_bytes;
        assert_eq!(storage.maintain(&|| true).unwrap(), Upkeep::Waiting);
        let is_packed = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = fastrand::Rng::with_seed(1);
                while !is_packed.load(std::sync::atomic::Ordering::SeqCst) {
                    let first = rng.u64(1..position);
                    let step = rng.usize(1..20);
                    let positions: Vec<u64> = (first..position).step_by(step).take(100).collect();
                    super::items(&storage, &positions);
                }
            });
            keep_up(&storage);
            is_packed.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let late: Vec<u64> = (1..position).step_by(5).collect();
        let found = super::items(&storage, &late);
        let wanted = expected.iter().map(|record| record.first_position);
        let wanted = wanted.filter(|position| position % 5 == 1);
        assert!(wanted.eq(found.into_iter().map(|(position, _)| position)));
        let (kv, _) = place.take_over(&place.engine);
        let after = count(&*kv, 'i');
        assert!(after < before / 2, "{after}");
        drop(storage);
        let storage = place.open();
        assert!(storage.usage().unwrap().log_used_bytes < used);
        assert_eq!(storage.maintain(&|| true).unwrap(), Upkeep::Done);
        assert_eq!(replayed(&storage), expected);
        let positions: Vec<u64> = (1..position).collect();
        let read = super::items(&storage, &positions);
        assert_eq!(read.len() as u64, n_groups);
        let sparse: Vec<u64> = positions.into_iter().step_by(13).collect();
        let found = super::items(&storage, &sparse);
        let wanted = read
            .into_iter()
            .filter(|(position, _)| sparse.contains(position));
        assert!(wanted.eq(found));
    }
}

#[test]
fn replaced_snapshots_and_dropped_maps_are_cleared() {
    for place in [Place::new(), Place::tiny()] {
        let (kv, epoch) = place.take_over(&place.engine);
        let storage = super::open(
            &place.engine,
            std::sync::Arc::clone(&kv),
            epoch,
            place.directory.path(),
        )
        .unwrap();
        append(&storage, vec![record(1, 1, &[b"a"], b"")]).unwrap();
        let before = letters(&*kv);
        write_snapshot(&storage, 1, 2000);
        write_snapshot(&storage, 1, 0);
        let mut batch = Batch::default();
        for number in 0..100_u32 {
            batch.put("map", number.to_be_bytes(), noise(number.into(), 2000));
        }
        storage.write(&batch).unwrap();
        // The handle keeps answering, whatever is cleared.
        let map = storage.map("map").unwrap().unwrap();
        storage.drop_map("map").unwrap();
        keep_up(&storage);
        assert_eq!(
            map.get(&5_u32.to_be_bytes()).unwrap().unwrap(),
            noise(5, 2000)
        );
        assert_eq!(map.scan(b"", b"", Direction::Forwards).count(), 100);
        let mut expected = before;
        let after = expected
            .iter()
            .position(|(letter, _)| *letter > 'S')
            .unwrap();
        expected.splice(after..after, [('S', 1), ('U', 1)]);
        let mut found = letters(&*kv);
        // How far records were merged and blocks packed is noted.
        found.retain(|(letter, _)| !"HP".contains(*letter));
        assert_eq!(found, expected);
    }
}

#[test]
fn values_in_parts_are_removed_with_their_entries() {
    let place = Place::tiny();
    let (kv, epoch) = place.take_over(&place.engine);
    let kv_seen = std::sync::Arc::clone(&kv);
    let storage = super::open(&place.engine, kv, epoch, place.directory.path()).unwrap();
    for round in 0..5 {
        let mut batch = Batch::default();
        batch.put("map", "a", noise(round, 3000));
        batch.put("map", vec![b'k'; 3000], noise(round, 10));
        storage.write(&batch).unwrap();
    }
    keep_up(&storage);
    let n_parts = count(&*kv_seen, 'j');
    assert!((20..40).contains(&n_parts), "{n_parts}");
    let mut batch = Batch::default();
    batch.put("map", "a", "short");
    batch.remove("map", vec![b'k'; 3000]);
    storage.write(&batch).unwrap();
    keep_up(&storage);
    assert_eq!(count(&*kv_seen, 'j'), 0);
}

#[test]
fn a_generation_is_erased_and_others_are_not() {
    let place = Place::new();
    let (kv, epoch) = place.take_over(&place.engine);
    let engine = || std::sync::Arc::new(place.engine.clone());
    let options = |generation| KvStorageOptions {
        generation,
        epoch,
        ..KvStorageOptions::new("objects/", place.directory.path())
    };
    let open = |generation| {
        let kv = std::sync::Arc::clone(&kv);
        KvStorage::open(engine(), kv, &options(generation), &|_| Ok(0)).unwrap()
    };
    for generation in [1, 2, 300] {
        let storage = open(generation);
        append(&storage, vec![record(1, 1, &[b"a"], b"b")]).unwrap();
        storage
            .load("run", &mut |sink| sink(b"a".to_vec(), b"b".to_vec()))
            .unwrap();
    }
    assert_eq!(generations(&*kv).unwrap(), [1, 2, 300]);
    erase_generation(engine(), std::sync::Arc::clone(&kv), &options(2)).unwrap();
    assert_eq!(generations(&*kv).unwrap(), [1, 300]);
    let objects = place.engine.objects().list("objects/", "", 100).unwrap();
    assert!(!objects.is_empty() && objects.iter().all(|name| !name.starts_with("objects/2/")));
    assert_eq!(
        (open(2).end().commit, open(2).map_names().unwrap().len()),
        (0, 0)
    );
    assert_eq!((open(300).end().commit, replayed(&open(1)).len()), (1, 1));
}

#[test]
fn a_generation_that_was_being_erased_is_not_there() {
    for n_done in 0..100 {
        let place = Place::tiny();
        let storage = place.open();
        append(&storage, vec![record(1, 1, &[&noise(1, 5000)], b"b")]).unwrap();
        storage
            .load("run", &mut |sink| sink(b"a".to_vec(), b"b".to_vec()))
            .unwrap();
        let node = place.engine.connect(super::tiny());
        let (kv, epoch) = place.take_over(&node);
        let options = KvStorageOptions {
            epoch,
            ..KvStorageOptions::new("objects/", place.directory.path())
        };
        let cut = CutOff::after(n_done, Fate::FailsBefore);
        node.set_fates(Some(Box::new(cut)));
        let engine = std::sync::Arc::new(node.clone());
        let erased = erase_generation(engine, kv, &options);
        let storage = place.open();
        let is_whole = storage.end().commit == 1;
        if is_whole {
            assert!(erased.is_err());
            assert_eq!(replayed(&storage).len(), 1);
            assert!(storage.map("run").unwrap().is_some());
            continue;
        }
        assert_eq!(
            (storage.end().commit, storage.map_names().unwrap().len()),
            (0, 0)
        );
        append(&storage, vec![record(1, 1, &[b"new"], b"")]).unwrap();
        assert_eq!(super::items(&storage, &[1]), [(1, b"new".to_vec())]);
        if erased.is_ok() {
            assert!(n_done > 5, "{n_done}");
            return;
        }
    }
    panic!("it takes too many calls");
}
