//! Tests of the log and the maps together, at the boundary of [`LocalStorage`].

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use trefoil_core::Error;

use super::disk::{Disk, RealDisk, SimulatedDisk};
use super::log::writer::SEGMENT_BYTES_LIMIT;
use super::{LocalOptions, LocalStorage};
use crate::{Batch, Group, Items, Label, Record, Storage, Upkeep, conformance};

use model::{Model, label, snapshot_entries, without_changes};

mod crashes;
mod damage;
mod edits;
mod marks;
mod model;
mod reads;
mod seals;
mod snapshots;

/// Small numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// The real disk without its syncs: these tests make thousands, and lose no power.
#[derive(Debug)]
struct UnsyncedDisk;

impl Disk for UnsyncedDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        RealDisk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        RealDisk.open(path)
    }

    fn allocate(&self, file: &File, length: u64) -> io::Result<()> {
        RealDisk.allocate(file, length)
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        RealDisk.write_at(file, bytes, offset)
    }

    fn sync_data(&self, _file: &File) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }
}

fn small() -> LocalOptions {
    LocalOptions {
        segment_bytes_min: 4096,
        segment_bytes_max: 16 * 1024,
        plain_segments: 1,
        disk: Arc::new(UnsyncedDisk),
        ..LocalOptions::default()
    }
}

/// Few enough bytes to try each of them.
fn tiny() -> LocalOptions {
    LocalOptions {
        segment_bytes_min: 1024,
        segment_bytes_max: 2048,
        ..small()
    }
}

fn replay(storage: &dyn Storage, after: u64) -> trefoil_core::Result<Vec<Record>> {
    let mut records = Vec::new();
    storage.replay(after, &mut |record| {
        records.push(record.clone());
        Ok(())
    })?;
    Ok(records)
}

fn open(dir: &Path, options: &LocalOptions) -> trefoil_core::Result<LocalStorage> {
    LocalStorage::open(dir, options.clone())
}

fn maintain_fully(storage: &dyn Storage) {
    while storage.maintain(&|| false).unwrap() == Upkeep::More {}
}

fn findings(dir: &Path) -> usize {
    LocalStorage::verify_log(dir, &mut |_| {})
        .unwrap()
        .findings
        .len()
}

/// A log over several segments, some compressed, with what it holds.
fn filled(dir: &Path, options: &LocalOptions, n_groups: usize, seed: u64) -> Model {
    let storage = open(dir, options).unwrap();
    let (mut model, mut random) = (Model::default(), Random::new(seed));
    for _ in 0..n_groups {
        model.append(&storage, &mut random);
        storage.maintain(&|| false).unwrap();
    }
    maintain_fully(&storage);
    model
}

fn log_files(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir.join("log")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn copy_log(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("log")).unwrap();
    for file in log_files(from) {
        fs::copy(&file, to.join("log").join(file.file_name().unwrap())).unwrap();
    }
}

#[test]
fn local_storage_keeps_the_contract() {
    let dir = TempDir::new().unwrap();
    conformance::check(&open(dir.path(), &LocalOptions::default()).unwrap());
    conformance::check_reopened(&open(dir.path(), &LocalOptions::default()).unwrap());
    let dir = TempDir::new().unwrap();
    conformance::check(&open(dir.path(), &small()).unwrap());
    conformance::check_reopened(&open(dir.path(), &small()).unwrap());
}

#[test]
fn a_log_of_many_segments_is_the_same_after_reopening() {
    let dir = TempDir::new().unwrap();
    let mut model = filled(dir.path(), &small(), 300, 1);
    let mut random = Random::new(2);
    for _ in 0..5 {
        let storage = open(dir.path(), &small()).unwrap();
        assert!(storage.recovery().cut.is_none());
        let usage = storage.usage().unwrap();
        assert!(usage.compressed_segments > 3, "{usage:?}");
        model.check(&storage);
        for _ in 0..20 {
            model.append(&storage, &mut random);
        }
        model.check(&storage);
        maintain_fully(&storage);
        model.check(&storage);
    }
    assert_eq!(findings(dir.path()), 0);
}

#[test]
fn replay_starts_at_any_commit() {
    let dir = TempDir::new().unwrap();
    let model = filled(dir.path(), &small(), 150, 3);
    let storage = open(dir.path(), &small()).unwrap();
    let records = model.records();
    for after in 0..=model.commit + 1 {
        let first = records.partition_point(|record| record.last_commit() <= after);
        assert_eq!(replay(&storage, after).unwrap(), records[first..]);
    }
}

#[test]
fn a_position_that_was_jumped_over_is_passed_over() {
    let dir = TempDir::new().unwrap();
    let model = filled(dir.path(), &small(), 150, 4);
    let storage = open(dir.path(), &small()).unwrap();
    let records = model.records();
    let existing = records.iter().flat_map(Record::items);
    let existing: Vec<u64> = existing.map(|(position, ..)| position).collect();
    let all: Vec<u64> = (0..model.position + 10).collect();
    assert!(existing.len() + 20 < all.len());
    let mut seen = Vec::new();
    let mut visit = |item: crate::StoredItem| {
        seen.push(item.position);
        ControlFlow::Continue(())
    };
    storage.read(&all, &mut visit).unwrap();
    assert_eq!(seen, existing);
    seen.clear();
    let mut visit = |position, _| seen.push(position);
    storage.read_labels(&all, &mut visit).unwrap();
    assert_eq!(seen, existing);
}

#[test]
fn two_cannot_open_one_directory() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path(), &small()).unwrap();
    assert!(matches!(
        open(dir.path(), &small()),
        Err(Error::Locked { .. })
    ));
    assert!(matches!(
        LocalStorage::remove_maps(dir.path(), &|_| Ok(0)),
        Err(Error::Locked { .. })
    ));
    drop(storage);
    open(dir.path(), &small()).unwrap();
}

#[test]
fn a_group_that_does_not_continue_the_log_is_refused() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path(), &small()).unwrap();
    let mut items = Items::default();
    items.push(Label::default(), b"x");
    for (first_commit, n_commits, first_position) in [(2, 1, 1), (1, 0, 1), (1, 1, 0)] {
        let record = Record {
            first_commit,
            n_commits,
            first_position,
            items: items.clone(),
            commits: Vec::new(),
            ..Record::default()
        };
        let refused = storage
            .append(&Group {
                records: vec![record],
            })
            .wait();
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    Model::default().check(&storage);
}

#[test]
fn segments_never_outgrow_their_offsets() {
    let dir = TempDir::new().unwrap();
    let options = LocalOptions {
        segment_bytes_max: u64::MAX,
        ..small()
    };
    let storage = open(dir.path(), &options).unwrap();
    for capacity in [SEGMENT_BYTES_LIMIT - 1, 8 << 30, u64::MAX] {
        assert_eq!(storage.log.doubled(capacity), SEGMENT_BYTES_LIMIT);
    }
}

#[test]
fn a_group_beyond_the_largest_segment_is_refused() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path(), &small()).unwrap();
    let record = Record {
        first_commit: 1,
        n_commits: 1,
        first_position: 1,
        items: Items::default(),
        commits: vec![0; SEGMENT_BYTES_LIMIT as usize],
        ..Record::default()
    };
    let records = vec![record];
    let refused = storage
        .append(&Group { records })
        .wait()
        .unwrap_err()
        .to_string();
    assert!(refused.contains("the limit is 1073741824"), "{refused}");
    Model::default().check(&storage);
}

#[test]
fn large_and_odd_items_survive_compression() {
    let dir = TempDir::new().unwrap();
    let mut random = Random::new(5);
    let incompressible: Vec<u8> = (0..3 << 20).map(|_| random.below(256) as u8).collect();
    let bodies = [
        incompressible,
        vec![b'a'; 3 << 20],
        Vec::new(),
        b"{}".to_vec(),
        vec![0; 70_000],
    ];
    let mut model = Model::default();
    {
        let storage = open(dir.path(), &small()).unwrap();
        for round in 0..4 {
            let mut items = Items::default();
            bodies
                .iter()
                .for_each(|body| items.push(label(&mut random), body));
            let record = Record {
                first_commit: round + 1,
                n_commits: 1,
                first_position: round * 5 + 1,
                items,
                commits: vec![b'x'; 300_000],
                ..Record::default()
            };
            let group = Group {
                records: vec![record],
            };
            storage.append(&group).wait().unwrap();
            model.groups.push(group);
            maintain_fully(&storage);
        }
        assert!(storage.usage().unwrap().compressed_segments >= 2);
        model.check(&storage);
    }
    model.check(&open(dir.path(), &small()).unwrap());
    assert_eq!(findings(dir.path()), 0);
}

#[test]
fn readers_see_the_same_while_segments_rotate_and_are_compressed() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path(), &small()).unwrap();
    let done = AtomicBool::new(false);
    let body = |position: u64| format!("{{\"number\":{position},\"text\":\"the same again\"}}");
    std::thread::scope(|scope| {
        for reader in 0..3u64 {
            let (storage, done) = (&storage, &done);
            scope.spawn(move || {
                let mut random = Random::new(reader);
                while !done.load(Ordering::Relaxed) {
                    let end = storage.end().position;
                    if end == 0 {
                        continue;
                    }
                    let positions: Vec<u64> = (0..50)
                        .map(|_| 1 + random.below(end))
                        .chain([end])
                        .collect();
                    let mut expected = positions.iter();
                    let mut visit = |item: crate::StoredItem| {
                        assert_eq!(Some(&item.position), expected.next());
                        assert_eq!(item.bytes, body(item.position));
                        ControlFlow::Continue(())
                    };
                    storage.read(&positions, &mut visit).unwrap();
                }
            });
        }
        let (upkeep_storage, upkeep_done) = (&storage, &done);
        scope.spawn(move || {
            while !upkeep_done.load(Ordering::Relaxed) {
                upkeep_storage.maintain(&|| false).unwrap();
            }
        });
        for group in 0..1500u64 {
            let mut items = Items::default();
            for position in group * 3 + 1..=group * 3 + 3 {
                items.push(Label::default(), body(position).as_bytes());
            }
            let record = Record {
                first_commit: group + 1,
                n_commits: 1,
                first_position: group * 3 + 1,
                items,
                commits: Vec::new(),
                ..Record::default()
            };
            storage
                .append(&Group {
                    records: vec![record],
                })
                .wait()
                .unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    maintain_fully(&storage);
    assert!(storage.usage().unwrap().compressed_segments > 5);
    assert_eq!(replay(&storage, 0).unwrap().len(), 1500);
}

#[test]
fn compression_waits_for_a_busy_writer_until_too_much_has_piled_up() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path(), &tiny()).unwrap();
    let (mut model, mut random) = (Model::default(), Random::new(31));
    let n_plain = || storage.usage().unwrap().plain_segments;
    let n_compressed = || storage.usage().unwrap().compressed_segments;
    let catch_up = |is_busy| loop {
        match storage.maintain(&|| is_busy).unwrap() {
            Upkeep::More => {}
            state => return state,
        }
    };
    // One stays plain, one is being written.
    while n_plain() < 1 + 16 + 1 {
        model.append(&storage, &mut random);
        catch_up(true);
    }
    assert_eq!((catch_up(true), n_compressed()), (Upkeep::Waiting, 0));
    assert!(storage.log.segments().full().iter().all(|entry| matches!(
        &entry.segment,
        super::log::segments::Segment::Plain(segment) if segment.has_sidecar()
    )));
    while n_compressed() == 0 {
        model.append(&storage, &mut random);
        catch_up(true);
    }
    assert_eq!((catch_up(true), n_plain()), (Upkeep::Waiting, 18));
    assert_eq!((catch_up(false), n_plain()), (Upkeep::Done, 2));
    model.check(&storage);
}

#[test]
fn compression_is_given_up_when_the_writer_becomes_busy() {
    let dir = TempDir::new().unwrap();
    let options = LocalOptions {
        segment_bytes_min: 1 << 20,
        segment_bytes_max: 1 << 20,
        ..small()
    };
    let storage = open(dir.path(), &options).unwrap();
    let (mut model, mut random) = (Model::default(), Random::new(32));
    let usage = || storage.usage().unwrap();
    // One is old, one stays plain, one is being written.
    while usage().plain_segments < 3 {
        model.append(&storage, &mut random);
    }
    while storage.maintain(&|| true).unwrap() == Upkeep::More {}
    let n_asked = Cell::new(0);
    let ask = || n_asked.replace(n_asked.get() + 1);
    let state = storage.maintain(&|| ask() > 0).unwrap();
    assert_eq!((state, usage().compressed_segments), (Upkeep::Waiting, 0));
    assert!(n_asked.get() > 1, "it was not begun");
    // While it goes on, the writer gets room for what it writes.
    let n_in_segment = model.groups.len() / 2;
    let model = RefCell::new(model);
    let random = RefCell::new(random);
    let append = || {
        model
            .borrow_mut()
            .append(&storage, &mut random.borrow_mut());
    };
    let room = Cell::new(0);
    n_asked.set(0);
    let state = storage.maintain(&|| {
        match ask() {
            1 => {
                while usage().plain_segments < 4 {
                    append();
                }
                (0..n_in_segment * 2 / 3).for_each(|_| append());
                room.set(usage().log_bytes);
            }
            2 => assert_eq!(usage().log_bytes, room.get() + (1 << 20)),
            _ => {}
        }
        false
    });
    let n_compressed = usage().compressed_segments;
    assert_eq!((state.unwrap(), n_compressed), (Upkeep::More, 1));
    assert!(n_asked.get() > 2, "it was not asked in between");
    model.borrow().check(&storage);
}

#[test]
fn maps_cost_nothing_until_they_are_used() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path(), &LocalOptions::default()).unwrap();
    assert!(storage.map("m").unwrap().is_none());
    storage.drop_map("m").unwrap();
    assert_eq!(storage.map_names().unwrap(), [""; 0]);
    assert!(!dir.path().join("maps").exists());
    let mut batch = Batch::default();
    batch.put("m", "k", "v");
    storage.write(&batch).unwrap();
    drop(storage);
    LocalStorage::remove_maps(dir.path(), &|_| Ok(0)).unwrap();
    let storage = open(dir.path(), &LocalOptions::default()).unwrap();
    assert_eq!(storage.map_names().unwrap(), [""; 0]);
}

#[test]
fn a_load_that_fails_leaves_no_map() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path(), &LocalOptions::default()).unwrap();
    let load = |keys: &[u8], end: trefoil_core::Result<()>| {
        storage.load("run", &mut |sink| {
            keys.iter().try_for_each(|key| sink(vec![*key], vec![7]))?;
            end.clone()
        })
    };
    assert!(load(&[1], Err(Error::invalid("no more"))).is_err());
    assert!(load(&[2, 1], Ok(())).is_err());
    assert!(storage.map("run").unwrap().is_none());
    load(&[1], Ok(())).unwrap();
    assert!(load(&[], Ok(())).is_err());
    let map = storage.map("run").unwrap().unwrap();
    assert_eq!(map.get(&[1]).unwrap().unwrap(), vec![7]);
}

/// A map that is loaded after a restart must not go the way of one that was dropped before it.
#[test]
fn maps_loaded_after_a_restart_stay() {
    let dir = tempfile::tempdir().unwrap();
    let load = |storage: &LocalStorage, name: &str| {
        storage
            .load(name, &mut |sink| {
                sink(b"key".to_vec(), name.as_bytes().to_vec())
            })
            .unwrap();
    };
    for round in 0..6 {
        let storage = open(dir.path(), &LocalOptions::default()).unwrap();
        if round > 0 {
            let before = format!("run-{}", 2 * round - 1);
            assert_eq!(
                storage.map_names().unwrap(),
                ["manifest".to_owned(), before.clone()]
            );
            let map = storage.map(&before).unwrap().unwrap();
            assert_eq!(map.get(b"key").unwrap().unwrap(), before.as_bytes());
            storage.drop_map(&before).unwrap();
        }
        let (passing, staying) = (
            format!("run-{}", 2 * round),
            format!("run-{}", 2 * round + 1),
        );
        load(&storage, &passing);
        load(&storage, &staying);
        let mut batch = Batch::default();
        batch.put("manifest", "index", staying);
        storage.write(&batch).unwrap();
        storage.drop_map(&passing).unwrap();
    }
}
