//! A log that was closed says where it ends.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::crashes::simulated;
use super::*;

/// A log of a few groups in one segment, and its last group's place in it.
struct Closed {
    dir: TempDir,
    model: Model,
    segment: PathBuf,
    sound: Vec<u8>,
    start: usize,
    end: usize,
}

fn closed() -> Closed {
    let dir = TempDir::new().unwrap();
    let (mut model, mut random) = (Model::default(), Random::new(31));
    let storage = open(dir.path(), &small()).unwrap();
    (0..2).for_each(|_| model.append(&storage, &mut random));
    let place = |storage: &LocalStorage| storage.segments().pop().unwrap();
    let start = place(&storage).plain_bytes as usize;
    model.append(&storage, &mut random);
    let segment = place(&storage);
    storage.seal().unwrap();
    let sound = fs::read(&segment.path).unwrap();
    Closed {
        dir,
        model,
        segment: segment.path,
        sound,
        start,
        end: segment.plain_bytes as usize,
    }
}

impl Closed {
    fn seal(&self) -> PathBuf {
        self.dir.path().join("log/seal")
    }

    /// Copies the log with one bit flipped.
    fn flipped(&self, at: usize, bit: usize) -> (TempDir, PathBuf) {
        let dir = TempDir::new().unwrap();
        copy_log(self.dir.path(), dir.path());
        let path = dir
            .path()
            .join("log")
            .join(self.segment.file_name().unwrap());
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[self.sound[at] ^ (1 << bit)], at as u64)
            .unwrap();
        (dir, path)
    }
}

#[test]
fn a_flipped_bit_in_the_last_record_of_a_closed_log_is_damage() {
    let closed = closed();
    let mut random = Random::new(32);
    for at in closed.start..closed.end {
        let (dir, path) = closed.flipped(at, random.below(8) as usize);
        let bytes = fs::read(&path).unwrap();
        let error = open(dir.path(), &small()).unwrap_err();
        let Error::Damaged(damage) = error else {
            panic!("byte {at}: {error}");
        };
        assert_eq!((&damage.file, damage.offset), (&path, closed.start as u64));
        assert!(!damage.help.contains("repair"), "{damage}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was changed");
        assert!(findings(dir.path()) > 0, "byte {at}");
    }
}

#[test]
fn a_flipped_bit_in_the_last_record_after_a_crash_is_a_torn_write() {
    let closed = closed();
    fs::remove_file(closed.seal()).unwrap();
    let mut random = Random::new(33);
    let last_commit = closed.model.groups.last().unwrap().records[0].first_commit;
    for at in closed.start..closed.end {
        let (dir, _) = closed.flipped(at, random.below(8) as usize);
        let storage = open(dir.path(), &small()).unwrap();
        assert_eq!(storage.end().commit, last_commit - 1, "byte {at}");
        let cut = storage.recovery().cut.clone().unwrap();
        assert_eq!(cut.offset, closed.start as u64);
    }
}

#[test]
fn a_record_that_is_gone_from_a_closed_log_is_damage() {
    let closed = closed();
    let file = File::options().write(true).open(&closed.segment).unwrap();
    file.write_all_at(&vec![0; closed.end - closed.start], closed.start as u64)
        .unwrap();
    let error = open(closed.dir.path(), &small()).unwrap_err().to_string();
    assert!(error.contains("was closed at commit"), "{error}");
    assert!(findings(closed.dir.path()) > 0);
}

#[test]
fn bytes_behind_a_closed_log_are_cut_off() {
    let closed = closed();
    let file = File::options().write(true).open(&closed.segment).unwrap();
    file.write_all_at(b"stray", closed.end as u64 + 8).unwrap();
    let storage = open(closed.dir.path(), &small()).unwrap();
    closed.model.check(&storage);
    assert!(storage.recovery().cut.is_some());
    drop(storage);
    closed
        .model
        .check(&open(closed.dir.path(), &small()).unwrap());
    assert!(closed.seal().exists());
}

#[test]
fn a_damaged_seal_is_passed_over_unless_the_log_is_damaged_too() {
    let closed = closed();
    let sound = fs::read(closed.seal()).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        fs::write(closed.seal(), &bytes).unwrap();
        assert_eq!(findings(closed.dir.path()), 1, "byte {at}");
        let (dir, _) = closed.flipped(closed.end - 1, 0);
        let refused = open(dir.path(), &small()).unwrap_err();
        assert!(matches!(refused, Error::Damaged(_)), "{refused}");
        let storage = open(closed.dir.path(), &small()).unwrap();
        closed.model.check(&storage);
        assert!(!closed.seal().exists());
        storage.seal().unwrap();
        assert_eq!(fs::read(closed.seal()).unwrap(), sound);
    }
}

#[test]
fn a_seal_of_an_older_log_says_nothing() {
    let mut closed = closed();
    let seal = fs::read(closed.seal()).unwrap();
    let mut random = Random::new(34);
    let storage = open(closed.dir.path(), &small()).unwrap();
    closed.model.append(&storage, &mut random);
    drop(storage);
    assert!(!closed.seal().exists(), "writing has removed it");
    // As if a program that knows no seals had written.
    fs::write(closed.seal(), seal).unwrap();
    closed
        .model
        .check(&open(closed.dir.path(), &small()).unwrap());
    assert!(!closed.seal().exists());
}

#[test]
fn the_seal_is_gone_durably_before_anything_is_written() {
    for seed in 0..40 {
        let (dir, _attic, disk, options) = simulated(seed);
        let (mut model, mut random) = (Model::default(), Random::new(seed + 1));
        let storage = open(dir.path(), &options).unwrap();
        (0..3).for_each(|_| model.append(&storage, &mut random));
        storage.seal().unwrap();
        drop(storage);
        let storage = open(dir.path(), &options).unwrap();
        disk.cut_power_after(seed % 6);
        let before = model.clone();
        let group = model.next_group(&mut random);
        let is_lost = storage.append(&group).wait().is_err();
        match is_lost {
            true => model = before,
            false => model.groups.push(group.clone()),
        }
        drop(storage);
        disk.crash().unwrap();
        let storage = open(dir.path(), &options).unwrap_or_else(|error| panic!("{seed}: {error}"));
        model.settle(is_lost.then_some(group), &storage);
    }
}

/// The maps know of a commit: the log must have it, whether or not it was closed.
#[test]
fn a_log_without_a_commit_that_the_maps_know_of_is_refused_before_it_is_cut() {
    let closed = closed();
    fs::remove_file(closed.seal()).unwrap();
    let last = closed.model.commit;
    let known = |_: &crate::FindMap<'_>| Ok(last);
    let (dir, path) = closed.flipped(closed.end - 1, 3);
    let bytes = fs::read(&path).unwrap();
    let error = LocalStorage::open_reaching(dir.path(), small(), &known).unwrap_err();
    let Error::Damaged(damage) = error else {
        panic!("{error}");
    };
    assert_eq!((&damage.file, damage.offset), (&path, closed.start as u64));
    assert!(!damage.help.contains("repair"), "{damage}");
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was changed");
    LocalStorage::open_reaching(closed.dir.path(), small(), &known).unwrap();
}

#[test]
fn what_is_missing_of_a_log_is_said() {
    let missing = |dir: &Path| {
        let error = LocalStorage::require(dir).unwrap_err();
        assert!(matches!(error, Error::Damaged(_)), "{error}");
        assert!(error.to_string().contains("missing"), "{error}");
    };
    let dir = TempDir::new().unwrap();
    missing(&dir.path().join("gone"));
    let closed = closed();
    LocalStorage::require(closed.dir.path()).unwrap();
    fs::remove_file(&closed.segment).unwrap();
    missing(closed.dir.path());
    fs::remove_dir_all(closed.dir.path().join("log")).unwrap();
    missing(closed.dir.path());
    assert!(!closed.dir.path().join("log").exists());
}
