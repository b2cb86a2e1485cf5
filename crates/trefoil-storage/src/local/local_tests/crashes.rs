//! Power loss, failing disks and full ones.

use std::os::unix::fs::FileExt;

use super::*;

pub(super) fn simulated(seed: u64) -> (TempDir, TempDir, Arc<SimulatedDisk>, LocalOptions) {
    let (dir, attic) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let disk = Arc::new(SimulatedDisk::new(attic.path(), seed));
    let options = LocalOptions {
        disk: Arc::clone(&disk) as _,
        ..small()
    };
    (dir, attic, disk, options)
}

/// Appends and maintains until the power goes; returns what was acknowledged and what was not.
fn run_until_power_fails(
    dir: &Path,
    options: &LocalOptions,
    model: &mut Model,
    random: &mut Random,
) -> Option<Group> {
    let storage = open(dir, options).ok()?;
    loop {
        let before = model.clone();
        let group = model.next_group(random);
        if storage.append(&group).wait().is_err() {
            *model = before;
            return Some(group);
        }
        model.groups.push(group);
        if random.below(3) == 0 && storage.maintain(&|| false).is_err() {
            return None;
        }
        if random.below(12) == 0 && model.write_snapshot(&storage).is_err() {
            return None;
        }
        if random.below(6) == 0 && storage.mark().is_err() {
            return None;
        }
        // As when the log is closed; the next group is written to a log that is opened again.
        if random.below(8) == 0 && storage.seal().is_err() {
            return None;
        }
    }
}

impl Model {
    /// Takes a group in that was not acknowledged, if it is there after all.
    pub(super) fn settle(&mut self, lost: Option<Group>, storage: &dyn Storage) {
        if let Some(group) = lost
            && storage.end().commit > self.commit
        {
            let last = group.records.last().unwrap();
            self.commit = last.last_commit();
            self.position = last.end_position() - 1;
            self.groups.push(group);
        }
        self.check(storage);
        // What was seen stays.
        self.snapshot = storage.snapshot().map_or(0, |snapshot| snapshot.commit);
    }

    /// Half of the models have no items.
    fn seeded(seed: u64) -> Self {
        Self {
            is_quiet: seed % 2 == 1,
            ..Self::default()
        }
    }
}

#[test]
fn acknowledged_groups_survive_power_loss_and_others_are_whole_or_absent() {
    for seed in 0..300 {
        let (dir, _attic, disk, options) = simulated(seed);
        let (mut model, mut random) = (Model::seeded(seed), Random::new(seed + 1));
        for _ in 0..4 {
            disk.cut_power_after(random.below(300));
            let lost = run_until_power_fails(dir.path(), &options, &mut model, &mut random);
            disk.crash().unwrap();
            let storage = match open(dir.path(), &options) {
                Ok(storage) => storage,
                Err(error) => panic!("seed {seed}: {error}"),
            };
            model.settle(lost, &storage);
            drop(storage);
            assert_eq!(findings(dir.path()), 0, "seed {seed}");
        }
    }
}

/// What a client sees after a process was killed counts as acknowledged: a commit that is repeated
/// is answered without being written again.
#[test]
fn what_is_seen_after_a_kill_survives_power_loss() {
    for seed in 0..300 {
        let (dir, _attic, disk, options) = simulated(seed);
        let (mut model, mut random) = (Model::seeded(seed), Random::new(seed + 1));
        for _ in 0..4 {
            disk.cut_power_after(random.below(300));
            let lost = run_until_power_fails(dir.path(), &options, &mut model, &mut random);
            disk.kill();
            for _ in 0..random.below(3) {
                disk.cut_power_after(random.below(8));
                drop(open(dir.path(), &options));
                disk.kill();
            }
            let storage = open(dir.path(), &options).unwrap();
            model.settle(lost, &storage);
            drop(storage);
            disk.crash().unwrap();
            let storage = match open(dir.path(), &options) {
                Ok(storage) => storage,
                Err(error) => panic!("seed {seed}: {error}"),
            };
            model.check(&storage);
            drop(storage);
            assert_eq!(findings(dir.path()), 0, "seed {seed}");
        }
    }
}

#[test]
fn a_group_whose_sync_failed_is_written_again_before_it_is_seen() {
    for seed in 0..20 {
        let (dir, _attic, disk, options) = simulated(seed);
        let options = LocalOptions {
            segment_bytes_min: 64 * 1024,
            ..options
        };
        let (mut model, mut random) = (Model::default(), Random::new(seed + 1));
        let storage = open(dir.path(), &options).unwrap();
        (0..3).for_each(|_| model.append(&storage, &mut random));
        let group = model.next_group(&mut random);
        disk.fail_syncs(Some(io::ErrorKind::Other));
        storage.append(&group).wait().unwrap_err();
        drop(storage);
        disk.kill();
        model.groups.push(group);
        model.check(&open(dir.path(), &options).unwrap());
        disk.crash().unwrap();
        model.check(&open(dir.path(), &options).unwrap());
    }
}

#[test]
fn the_directories_of_a_namespace_that_exists_are_synced_too() {
    let (dir, _attic, disk, options) = simulated(1);
    drop(open(dir.path(), &options).unwrap());
    disk.fail_syncs(Some(io::ErrorKind::Other));
    let error = open(dir.path(), &options).unwrap_err().to_string();
    let expected = format!("syncing {}: the sync failed", dir.path().display());
    assert_eq!(error, expected);
}

#[test]
fn power_may_fail_while_a_torn_tail_is_cut() {
    for seed in 0..60 {
        let (dir, _attic, disk, options) = simulated(seed);
        let (mut model, mut random) = (Model::default(), Random::new(seed + 1));
        disk.cut_power_after(100);
        run_until_power_fails(dir.path(), &options, &mut model, &mut random);
        disk.crash().unwrap();
        for operations in 0..8 {
            disk.cut_power_after(operations);
            drop(open(dir.path(), &options));
            disk.crash().unwrap();
        }
        let storage = open(dir.path(), &options).unwrap();
        let end = storage.end().commit;
        assert!(end >= model.commit, "seed {seed}");
        if end == model.commit {
            model.check(&storage);
        }
    }
}

#[test]
fn a_failed_write_or_sync_poisons_the_log_until_it_is_reopened() {
    for fail_writes in [true, false] {
        let (dir, _attic, disk, options) = simulated(7);
        let (mut model, mut random) = (Model::default(), Random::new(8));
        let storage = open(dir.path(), &options).unwrap();
        (0..10).for_each(|_| model.append(&storage, &mut random));
        disk.fail_writes(fail_writes.then_some((io::ErrorKind::Other, 0)));
        disk.fail_syncs((!fail_writes).then_some(io::ErrorKind::Other));
        let group = model.clone().next_group(&mut random);
        let first = storage.append(&group).wait().unwrap_err();
        assert!(
            matches!(
                &first,
                Error::Unknown {
                    is_disk_full: false,
                    ..
                }
            ),
            "{first}"
        );
        disk.fail_writes(None);
        disk.fail_syncs(None);
        let operations = disk.n_operations();
        let second = storage.append(&group).wait().unwrap_err();
        assert!(matches!(second, Error::Poisoned(_)), "{second}");
        assert_eq!(disk.n_operations(), operations, "nothing is tried again");
        model.check(&storage);
        drop(storage);
        disk.crash().unwrap();
        let storage = open(dir.path(), &options).unwrap();
        let records = replay(&storage, 0).unwrap();
        assert_eq!(records[..model.records().len()], model.records());
    }
}

/// The room of a segment is reserved, but a file system may still find that there is none.
#[test]
fn a_write_that_finds_the_disk_full_is_taken_back_at_every_byte() {
    let (dir, _attic, disk, options) = simulated(12);
    let (mut model, mut random) = (Model::default(), Random::new(13));
    let storage = open(dir.path(), &options).unwrap();
    (0..3).for_each(|_| model.append(&storage, &mut random));
    let group = model.clone().next_group(&mut random);
    let last = storage.segments().pop().unwrap().path;
    let before = fs::read(&last).unwrap();
    let mut n_bytes = 0;
    loop {
        disk.fail_writes(Some((io::ErrorKind::StorageFull, n_bytes)));
        let refused = storage.append(&group).wait().unwrap_err();
        assert!(matches!(refused, Error::DiskFull(_)), "{refused}");
        disk.fail_writes(None);
        assert_eq!(
            fs::read(&last).unwrap(),
            before,
            "nothing is left of the group"
        );
        model.check(&storage);
        if n_bytes > 4096 {
            break;
        }
        n_bytes += 61;
    }
    (0..3).for_each(|_| model.append(&storage, &mut random));
    drop(storage);
    disk.crash().unwrap();
    let storage = open(dir.path(), &options).unwrap();
    model.check(&storage);
    assert!(storage.recovery().cut.is_none());
}

#[test]
fn a_sync_that_finds_the_disk_full_leaves_it_unknown_until_the_log_is_opened_again() {
    for seed in 0..20 {
        let (dir, _attic, disk, options) = simulated(seed);
        let options = LocalOptions {
            segment_bytes_min: 64 * 1024,
            ..options
        };
        let (mut model, mut random) = (Model::default(), Random::new(seed + 1));
        let storage = open(dir.path(), &options).unwrap();
        (0..5).for_each(|_| model.append(&storage, &mut random));
        disk.fail_syncs(Some(io::ErrorKind::StorageFull));
        let group = model.clone().next_group(&mut random);
        let refused = storage.append(&group).wait().unwrap_err();
        assert!(
            matches!(
                &refused,
                Error::Unknown {
                    is_disk_full: true,
                    ..
                }
            ),
            "{refused}"
        );
        assert!(refused.to_string().contains("unknown whether"), "{refused}");
        assert!(matches!(
            storage.append(&group).wait(),
            Err(Error::Poisoned(_))
        ));
        disk.fail_syncs(None);
        drop(storage);
        let storage = open(dir.path(), &options).unwrap();
        model.settle(Some(group), &storage);
        model.append(&storage, &mut random);
        drop(storage);
        disk.crash().unwrap();
        model.check(&open(dir.path(), &options).unwrap());
    }
}

#[test]
fn writes_work_again_when_a_full_disk_has_room() {
    let (dir, _attic, disk, options) = simulated(9);
    let (mut model, mut random) = (Model::default(), Random::new(10));
    let storage = open(dir.path(), &options).unwrap();
    for round in 0..5 {
        disk.set_full(true);
        let refused = loop {
            let before = model.clone();
            let group = model.next_group(&mut random);
            if let Err(error) = storage.append(&group).wait() {
                model = before;
                break error;
            }
            model.groups.push(group);
            if let Err(error) = storage.maintain(&|| false) {
                assert!(matches!(error, Error::DiskFull(_)), "{error}");
            }
        };
        assert!(matches!(refused, Error::DiskFull(_)), "{refused}");
        model.check(&storage);
        disk.set_full(false);
        model.append(&storage, &mut random);
        model.check(&storage);
        assert!(
            log_files(dir.path())
                .iter()
                .all(|file| file.extension() != Some("new".as_ref())),
            "round {round}"
        );
        maintain_fully(&storage);
    }
    drop(storage);
    model.check(&open(dir.path(), &options).unwrap());
}

#[test]
fn a_last_segment_cut_at_any_byte_opens_with_a_prefix_of_whole_groups() {
    let original = TempDir::new().unwrap();
    // Three segments and the beginning of a fourth.
    let model = filled(original.path(), &tiny(), 12, 11);
    let (last, used) = last_segment(original.path());
    let whole = replay(&open(original.path(), &small()).unwrap(), 0).unwrap();
    for cut in super::super::log::layout::SEGMENT_HEADER_BYTES..used {
        for truncate in [true, false] {
            let dir = TempDir::new().unwrap();
            copy_log(original.path(), dir.path());
            let path = dir.path().join("log").join(last.file_name().unwrap());
            let file = File::options().write(true).open(&path).unwrap();
            if truncate {
                file.set_len(cut as u64).unwrap();
            } else {
                file.write_all_at(&vec![0; used - cut], cut as u64).unwrap();
            }
            let storage = open(dir.path(), &small()).unwrap();
            let records = replay(&storage, 0).unwrap();
            assert_eq!(records, whole[..records.len()], "cut at {cut}");
            let boundaries = model.groups.iter().scan(0, |sum, group| {
                *sum += group.records.len();
                Some(*sum)
            });
            assert!(
                boundaries.into_iter().any(|sum| sum == records.len()),
                "cut at {cut}"
            );
        }
    }
}

/// The path of the segment that is written last, and where its records end.
pub(super) fn last_segment(dir: &Path) -> (std::path::PathBuf, usize) {
    let storage = open(dir, &small()).unwrap();
    let info = storage.segments().pop().unwrap();
    (info.path, info.plain_bytes as usize)
}
