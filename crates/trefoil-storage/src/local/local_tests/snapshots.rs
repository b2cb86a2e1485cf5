//! Snapshots, and the changes that they make superfluous.

use super::crashes::simulated;
use super::*;
use crate::local::SegmentKind;
use crate::local::log::segments::SegmentEntry;

/// A log of which the first half has been compressed before there is a snapshot.
fn with_changes(dir: &Path, options: &LocalOptions, is_quiet: bool, seed: u64) -> Model {
    let storage = open(dir, options).unwrap();
    let mut random = Random::new(seed);
    let mut model = Model {
        is_quiet,
        ..Model::default()
    };
    for _ in 0..120 {
        model.append(&storage, &mut random);
        storage.maintain(&|| false).unwrap();
    }
    maintain_fully(&storage);
    model
}

/// Checks that no full segment has more than a small part left that the snapshot has.
fn check_dropped(storage: &LocalStorage, snapshot: u64) {
    let segments = storage.segments();
    let (_, full) = segments.split_last().unwrap();
    for segment in full
        .iter()
        .filter(|segment| segment.last_commit <= snapshot)
    {
        let share = match segment.kind {
            SegmentKind::Compressed => segment.file_bytes / 8,
            _ => segment.plain_bytes / 2,
        };
        assert!(segment.droppable_bytes <= share, "{segment:?}");
    }
    let dropped = |entry: &SegmentEntry| entry.segment.dropped_commit() > 0;
    assert!(storage.log.segments().entries.iter().any(dropped));
}

#[test]
fn changes_that_the_snapshot_has_are_dropped_and_later_ones_are_not() {
    for is_quiet in [true, false] {
        let dir = TempDir::new().unwrap();
        let mut model = with_changes(dir.path(), &small(), is_quiet, 41);
        let mut random = Random::new(42);
        for _ in 0..4 {
            let storage = open(dir.path(), &small()).unwrap();
            model.write_snapshot(&storage).unwrap();
            model.check(&storage);
            for _ in 0..30 {
                model.append(&storage, &mut random);
            }
            maintain_fully(&storage);
            model.check(&storage);
            check_dropped(&storage, model.snapshot);
        }
        model.check(&open(dir.path(), &small()).unwrap());
        let report = LocalStorage::verify_log(dir.path(), &mut |_| {}).unwrap();
        assert_eq!(report.findings, []);
        assert_eq!(report.commits, model.commit);
        assert_eq!(report.snapshot.unwrap().commit, model.snapshot);
        assert_eq!(
            log_files(dir.path())
                .iter()
                .filter(|file| file.extension() == Some("snapshot".as_ref()))
                .count(),
            1
        );
    }
}

/// Commits without items, each in a group of its own, leave next to nothing.
#[test]
fn commits_whose_changes_are_dropped_cost_almost_nothing() {
    let dir = TempDir::new().unwrap();
    let options = LocalOptions {
        segment_bytes_max: 1 << 20,
        plain_segments: 4,
        ..small()
    };
    let storage = open(dir.path(), &options).unwrap();
    let n_commits = 200_000;
    for commit in 1..=n_commits {
        let record = Record {
            first_commit: commit,
            n_commits: 1,
            first_position: 1,
            commits: vec![0],
            changes: commit.to_be_bytes().repeat(2),
            ..Record::default()
        };
        storage
            .append(&Group {
                records: vec![record],
            })
            .wait()
            .unwrap();
        if commit % 50_000 == 0 {
            storage
                .write_snapshot(commit, &mut |sink| {
                    sink(b"counter".to_vec(), commit.to_be_bytes().to_vec())
                })
                .unwrap();
            maintain_fully(&storage);
        }
    }
    let sizes: Vec<u64> = storage
        .segments()
        .iter()
        .map(|segment| segment.file_bytes)
        .collect();
    let (_, full) = sizes.split_last().unwrap();
    assert!(
        full.len() > 10 && full.iter().all(|bytes| *bytes < 600),
        "{sizes:?}"
    );
    let records = replay(&storage, 0).unwrap();
    assert_eq!(
        records
            .iter()
            .map(|record| u64::from(record.n_commits))
            .sum::<u64>(),
        n_commits
    );
    let n_whole = records
        .iter()
        .filter(|record| !record.changes_dropped)
        .count();
    assert!(records.len() - n_whole <= full.len(), "{}", records.len());
    drop(storage);
    assert_eq!(open(dir.path(), &options).unwrap().end().commit, n_commits);
    assert_eq!(findings(dir.path()), 0);
}

/// However far a snapshot and the dropping after it come, nothing is lost.
#[test]
fn power_may_fail_at_every_step_of_a_snapshot_and_of_dropping() {
    for (seed, is_quiet) in [(51, true), (52, false), (53, true)] {
        for operations in 0.. {
            let (dir, _attic, disk, options) = simulated(seed + operations);
            let mut model = with_changes(dir.path(), &options, is_quiet, seed);
            let storage = open(dir.path(), &options).unwrap();
            if operations % 2 == 0 {
                model.write_snapshot(&storage).unwrap();
                model.append(&storage, &mut Random::new(seed));
            }
            let before = disk.n_operations();
            disk.cut_power_after(operations);
            let done = model.write_snapshot(&storage).and_then(|()| {
                while storage.maintain(&|| false)? == Upkeep::More {}
                Ok(())
            });
            let n_operations = disk.n_operations() - before;
            drop(storage);
            disk.crash().unwrap();
            let storage = open(dir.path(), &options).unwrap();
            model.check(&storage);
            let mut random = Random::new(seed);
            model.append(&storage, &mut random);
            maintain_fully(&storage);
            model.check(&storage);
            drop(storage);
            assert_eq!(findings(dir.path()), 0, "{operations}");
            if done.is_ok() {
                assert!(n_operations > 10);
                break;
            }
        }
    }
}

#[test]
fn a_snapshot_cut_at_any_byte_is_refused_and_found() {
    let original = TempDir::new().unwrap();
    let mut model = with_changes(original.path(), &tiny(), false, 61);
    let storage = open(original.path(), &tiny()).unwrap();
    model.write_snapshot(&storage).unwrap();
    drop(storage);
    let is_snapshot = |path: &std::path::PathBuf| path.extension() == Some("snapshot".as_ref());
    let path = log_files(original.path())
        .into_iter()
        .find(is_snapshot)
        .unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.len() > 200, "{}", bytes.len());
    for cut in 1..bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        assert!(findings(original.path()) > 0, "cut at {cut}");
        let opened = open(original.path(), &tiny());
        assert!(matches!(opened, Err(Error::Damaged(_))), "cut at {cut}");
    }
    fs::write(&path, &bytes).unwrap();
    model.check(&open(original.path(), &tiny()).unwrap());
}

#[test]
fn a_log_without_the_snapshot_that_it_needs_is_refused() {
    let dir = TempDir::new().unwrap();
    let mut model = with_changes(dir.path(), &small(), true, 71);
    let storage = open(dir.path(), &small()).unwrap();
    model.write_snapshot(&storage).unwrap();
    maintain_fully(&storage);
    drop(storage);
    let is_snapshot = |path: &std::path::PathBuf| path.extension() == Some("snapshot".as_ref());
    let path = log_files(dir.path()).into_iter().find(is_snapshot).unwrap();
    let away = dir.path().join("away");
    fs::rename(&path, &away).unwrap();
    let error = open(dir.path(), &small()).unwrap_err().to_string();
    assert!(
        error.contains("snapshot that has the changes up to commit"),
        "{error}"
    );
    assert_eq!(findings(dir.path()), 1);
    // One of another commit does not pass for it.
    let other = path.with_file_name(format!("{:010}.snapshot", model.commit + 1));
    fs::rename(&away, &other).unwrap();
    assert!(matches!(open(dir.path(), &small()), Err(Error::Damaged(_))));
    fs::rename(&other, &path).unwrap();
    model.check(&open(dir.path(), &small()).unwrap());
}

#[test]
fn a_snapshot_that_does_not_fit_on_the_disk_leaves_the_one_before() {
    let (dir, _attic, disk, options) = simulated(81);
    let mut model = with_changes(dir.path(), &options, false, 82);
    let storage = open(dir.path(), &options).unwrap();
    model.write_snapshot(&storage).unwrap();
    model.append(&storage, &mut Random::new(83));
    disk.set_full(true);
    let full = model.write_snapshot(&storage);
    assert!(matches!(full, Err(Error::DiskFull(_))), "{full:?}");
    disk.set_full(false);
    assert_eq!(storage.snapshot().unwrap().commit, model.snapshot);
    model.check(&storage);
    assert!(
        log_files(dir.path())
            .iter()
            .all(|file| file.extension() != Some("new".as_ref()))
    );
    model.write_snapshot(&storage).unwrap();
    model.check(&storage);
}
