//! A mark spares reading what it tells of, and changes nothing else.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::*;

/// Few segments, so that the last one has many groups.
fn large() -> LocalOptions {
    LocalOptions {
        segment_bytes_min: 1024 * 1024,
        segment_bytes_max: 1024 * 1024,
        ..small()
    }
}

/// A log that was marked in the middle of its only segment.
struct Marked {
    dir: TempDir,
    model: Model,
    /// Where the last group before the mark begins.
    offset: usize,
}

impl Marked {
    fn new(n_before: usize, n_after: usize) -> Self {
        let dir = TempDir::new().unwrap();
        let (mut model, mut random) = (Model::default(), Random::new(41));
        let storage = open(dir.path(), &large()).unwrap();
        (1..n_before).for_each(|_| model.append(&storage, &mut random));
        let offset = storage.segments().pop().unwrap().plain_bytes as usize;
        model.append(&storage, &mut random);
        storage.mark().unwrap();
        (0..n_after).for_each(|_| model.append(&storage, &mut random));
        Self { dir, model, offset }
    }

    fn mark(&self) -> PathBuf {
        self.dir.path().join("log/mark")
    }

    fn segment(&self) -> PathBuf {
        self.dir.path().join("log/0000000001.segment")
    }

    fn flip(&self, path: &Path, at: usize) {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at as u64).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at as u64).unwrap();
    }
}

#[test]
fn a_marked_log_is_the_same_log() {
    for (n_before, n_after) in [(1, 0), (2, 0), (60, 0), (60, 1), (1, 60), (60, 60)] {
        let mut marked = Marked::new(n_before, n_after);
        let mut random = Random::new(42);
        for _ in 0..3 {
            let storage = open(marked.dir.path(), &large()).unwrap();
            marked.model.check(&storage);
            for after in 0..=marked.model.commit {
                let wanted = marked.model.records().into_iter();
                let wanted: Vec<_> = wanted
                    .filter(|record| record.last_commit() > after)
                    .collect();
                assert_eq!(replay(&storage, after).unwrap(), wanted, "after {after}");
            }
            marked.model.append(&storage, &mut random);
            storage.mark().unwrap();
            storage.seal().unwrap();
        }
        assert_eq!(findings(marked.dir.path()), 0);
    }
}

/// What it tells of is not read: damage there is found as that in a full segment is.
#[test]
fn opening_does_not_read_what_the_mark_tells_of() {
    let marked = Marked::new(60, 10);
    marked.flip(&marked.segment(), 200);
    let storage = open(marked.dir.path(), &large()).unwrap();
    assert_eq!(storage.end().commit, marked.model.commit);
    assert!(matches!(replay(&storage, 0), Err(Error::Damaged(_))));
    drop(storage);
    assert!(findings(marked.dir.path()) > 0);
    fs::remove_file(marked.mark()).unwrap();
    let refused = open(marked.dir.path(), &large()).unwrap_err();
    assert!(matches!(refused, Error::Damaged(_)), "{refused}");
}

#[test]
fn a_mark_that_is_not_whole_is_passed_over() {
    let marked = Marked::new(20, 5);
    let sound = fs::read(marked.mark()).unwrap();
    for at in 0..sound.len() {
        marked.flip(&marked.mark(), at);
        marked
            .model
            .check(&open(marked.dir.path(), &large()).unwrap());
        fs::write(marked.mark(), &sound[..at]).unwrap();
        marked
            .model
            .check(&open(marked.dir.path(), &large()).unwrap());
        fs::write(marked.mark(), &sound).unwrap();
    }
}

/// As after a restore of some files from another time.
#[test]
fn a_mark_of_more_than_the_segment_has_is_passed_over() {
    let marked = Marked::new(20, 0);
    let bytes = fs::read(marked.segment()).unwrap();
    let file = File::options().write(true).open(marked.segment()).unwrap();
    let zeros = vec![0; bytes.len() - marked.offset];
    file.write_all_at(&zeros, marked.offset as u64).unwrap();
    let storage = open(marked.dir.path(), &large()).unwrap();
    let n_left: usize = marked.model.groups[..19]
        .iter()
        .map(|group| group.records.len())
        .sum();
    assert_eq!(
        replay(&storage, 0).unwrap(),
        marked.model.records()[..n_left]
    );
}

/// All rules about the last group hold for the first one after the mark.
#[test]
fn the_group_after_a_mark_may_be_torn_after_a_crash_and_is_damage_after_a_stop() {
    for at in [0, 4, 60, 80] {
        let marked = Marked::new(20, 0);
        marked.flip(&marked.segment(), marked.offset + at);
        let storage = open(marked.dir.path(), &large()).unwrap();
        let cut = storage.recovery().cut.clone().unwrap();
        assert_eq!(cut.offset, marked.offset as u64);
        drop(storage);

        let marked = Marked::new(20, 0);
        let storage = open(marked.dir.path(), &large()).unwrap();
        storage.seal().unwrap();
        drop(storage);
        marked.flip(&marked.segment(), marked.offset + at);
        let refused = open(marked.dir.path(), &large()).unwrap_err();
        assert!(matches!(refused, Error::Damaged(_)), "{refused}");
    }
}

#[test]
fn a_mark_of_an_earlier_segment_is_passed_over() {
    let dir = TempDir::new().unwrap();
    let (mut model, mut random) = (Model::default(), Random::new(43));
    let storage = open(dir.path(), &small()).unwrap();
    (0..3).for_each(|_| model.append(&storage, &mut random));
    storage.mark().unwrap();
    while storage.segments().len() < 4 {
        model.append(&storage, &mut random);
    }
    drop(storage);
    model.check(&open(dir.path(), &small()).unwrap());
}
