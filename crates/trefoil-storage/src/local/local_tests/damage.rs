//! Bytes that are not what was written.

use std::os::unix::fs::FileExt;

use super::crashes::last_segment;
use super::*;

/// Reads everything that can be read and checks that none of it is wrong.
fn nothing_wrong_is_read(storage: &dyn Storage, model: &Model) {
    let records = model.records();
    if let Ok(replayed) = replay(storage, 0) {
        let commit = storage.snapshot().map_or(0, |snapshot| snapshot.commit);
        let replayed = without_changes(&replayed, commit);
        let expected = without_changes(&records, commit);
        assert_eq!(replayed, expected[..replayed.len()]);
    }
    if let (Some(snapshot), Ok(entries)) = (storage.snapshot(), snapshot_entries(storage)) {
        assert_eq!(entries, Model::entries(snapshot.commit));
    }
    for record in &records {
        for (position, label, body) in record.items() {
            let mut check = |item: crate::StoredItem| {
                assert_eq!((item.label, &item.bytes[..]), (label, body));
                ControlFlow::Continue(())
            };
            storage.read(&[position], &mut check).ok();
            let mut check = |_, found| assert_eq!(found, label);
            storage.read_labels(&[position], &mut check).ok();
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_found_and_never_read_as_data() {
    let original = TempDir::new().unwrap();
    let options = tiny();
    let mut model = filled(original.path(), &options, 14, 21);
    {
        let storage = open(original.path(), &options).unwrap();
        model.write_snapshot(&storage).unwrap();
        assert!(!snapshot_entries(&storage).unwrap().is_empty());
        maintain_fully(&storage);
        assert!(
            storage
                .log
                .segments()
                .entries
                .iter()
                .any(|entry| entry.segment.dropped_commit() > 0)
        );
    }
    let kinds = ["segment", "offsets", "compressed", "snapshot"];
    let files = log_files(original.path());
    for kind in kinds {
        assert!(
            files
                .iter()
                .any(|file| file.extension() == Some(kind.as_ref())),
            "{kind}"
        );
    }
    let dir = TempDir::new().unwrap();
    copy_log(original.path(), dir.path());
    let mut random = Random::new(22);
    for file in &files {
        let path = dir.path().join("log").join(file.file_name().unwrap());
        let sound = fs::read(file).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << random.below(8);
            // In place: truncating a file first makes file systems write it out.
            file.write_all_at(&bytes[at..=at], at as u64).unwrap();
            assert!(findings(dir.path()) > 0, "{} at {at}", path.display());
            // Opening may repair, so it gets a copy; that is slow, hence only some of them.
            if random.below(16) == 0 {
                let copy = TempDir::new().unwrap();
                copy_log(dir.path(), copy.path());
                if let Ok(storage) = open(copy.path(), &options) {
                    nothing_wrong_is_read(&storage, &model);
                }
            }
            file.write_all_at(&sound[at..=at], at as u64).unwrap();
        }
    }
    assert_eq!(findings(dir.path()), 0);
}

#[test]
fn damage_before_the_last_group_refuses_to_open_and_says_where() {
    let original = TempDir::new().unwrap();
    let options = LocalOptions {
        segment_bytes_min: 16 * 1024,
        ..small()
    };
    let mut random = Random::new(23);
    let mut model = Model::default();
    let storage = open(original.path(), &options).unwrap();
    (0..8).for_each(|_| model.append(&storage, &mut random));
    let mut records = Vec::new();
    storage
        .records(1, &mut |record| records.push(record))
        .unwrap();
    drop(storage);
    let (last, _) = last_segment(original.path());
    let sound = fs::read(&last).unwrap();
    let last_group = model.groups.last().unwrap().records[0].first_commit;
    for record in records
        .iter()
        .filter(|record| record.first_commit < last_group)
    {
        let offset = record.offset.unwrap();
        for at in [0, 20, 56, 63] {
            let mut bytes = sound.clone();
            bytes[offset as usize + at] ^= 4;
            fs::write(&last, &bytes).unwrap();
            let Err(Error::Damaged(damage)) = open(original.path(), &options) else {
                panic!("record at {offset}, byte {at}");
            };
            assert_eq!((&damage.file, damage.offset), (&last, offset));
            assert!(damage.position <= record.first_position);
            assert!(damage.help.contains("trefoil verify"), "{damage}");
            assert_eq!(fs::read(&last).unwrap(), bytes, "nothing was changed");
        }
    }
}

#[test]
fn a_missing_or_foreign_file_refuses_to_open() {
    let original = TempDir::new().unwrap();
    let model = filled(original.path(), &small(), 120, 24);
    for file in log_files(original.path()) {
        let dir = TempDir::new().unwrap();
        copy_log(original.path(), dir.path());
        let path = dir.path().join("log").join(file.file_name().unwrap());
        fs::remove_file(&path).unwrap();
        match open(dir.path(), &small()) {
            Ok(storage) => {
                // A sidecar is made again; a prepared segment or the last one is not missed.
                let records = replay(&storage, 0).unwrap();
                assert_eq!(records, model.records()[..records.len()]);
                let is_sidecar = path.extension() == Some("offsets".as_ref());
                assert!(!is_sidecar || records.len() == model.records().len());
            }
            Err(Error::Damaged(_)) => assert!(findings(dir.path()) > 0, "{}", path.display()),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let dir = TempDir::new().unwrap();
    filled(dir.path(), &small(), 3, 25);
    let (last, _) = last_segment(dir.path());
    let mut bytes = fs::read(&last).unwrap();
    bytes[8] = 9;
    let check = super::super::log::layout::checksum(&bytes[..56], 0);
    bytes[56..64].copy_from_slice(&check.to_le_bytes());
    fs::write(&last, &bytes).unwrap();
    let error = open(dir.path(), &small()).unwrap_err().to_string();
    assert!(
        error.contains("format version 9, this program reads version 2"),
        "{error}"
    );
}

#[test]
fn a_torn_tail_is_kept_aside_and_reported() {
    let dir = TempDir::new().unwrap();
    let model = filled(dir.path(), &small(), 10, 26);
    let (last, used) = last_segment(dir.path());
    let mut bytes = fs::read(&last).unwrap();
    bytes[used..used + 100].fill(7);
    fs::write(&last, &bytes).unwrap();
    assert_eq!(findings(dir.path()), 1);
    let storage = open(dir.path(), &small()).unwrap();
    let cut = storage.recovery().cut.clone().unwrap();
    assert_eq!(
        (&cut.file, cut.offset, cut.bytes),
        (&last, used as u64, 100)
    );
    assert_eq!(fs::read(cut.saved.unwrap()).unwrap(), [7; 100]);
    model.check(&storage);
    drop(storage);
    assert!(open(dir.path(), &small()).unwrap().recovery().cut.is_none());
    assert_eq!(findings(dir.path()), 0);
}

#[test]
fn a_torn_tail_is_cut_off_even_if_the_disk_is_full() {
    let (dir, attic) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let disk = Arc::new(SimulatedDisk::new(attic.path(), 1));
    let options = LocalOptions {
        disk: Arc::clone(&disk) as _,
        ..small()
    };
    let model = filled(dir.path(), &options, 10, 27);
    let (last, used) = last_segment(dir.path());
    let file = File::options().write(true).open(&last).unwrap();
    file.write_all_at(&[7; 100], used as u64).unwrap();
    disk.set_full(true);
    let storage = open(dir.path(), &options).unwrap();
    let cut = storage.recovery().cut.clone().unwrap();
    assert_eq!((cut.bytes, cut.saved), (100, None));
    model.check(&storage);
    drop(storage);
    assert_eq!(findings(dir.path()), 0);
}

#[test]
fn a_damaged_segment_does_not_keep_later_ones_from_being_compressed() {
    let dir = TempDir::new().unwrap();
    let plain = LocalOptions {
        plain_segments: 1000,
        ..small()
    };
    filled(dir.path(), &plain, 120, 28);
    let storage = open(dir.path(), &small()).unwrap();
    let first = storage.segments().swap_remove(0);
    let n_plain = storage.usage().unwrap().plain_segments;
    assert!(n_plain > 4);
    let file = File::options().write(true).open(&first.path).unwrap();
    file.write_all_at(b"damage", 200).unwrap();
    maintain_fully(&storage);
    let usage = storage.usage().unwrap();
    // The damaged one, the one that stays plain and the one that is being written.
    let counts = (usage.plain_segments, usage.compressed_segments);
    assert_eq!(counts, (3, n_plain - 3));
}
