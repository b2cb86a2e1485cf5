//! Items that are replaced and dropped for good.

use std::io::Write as _;
use std::ops::Range;

use super::crashes::simulated;
use super::*;
use crate::StoredItem;
use crate::edits::Edits;
use crate::local::{SegmentInfo, SegmentKind};

impl Model {
    /// Does to the model what was done to the log.
    fn edit(&mut self, edits: &Edits<'_>) {
        let records = self.groups.iter_mut().flat_map(|group| &mut group.records);
        records.for_each(|record| edits.apply(record));
    }

    fn positions(&self) -> Vec<u64> {
        let records = self.records();
        let items = records.iter().flat_map(Record::items);
        items.map(|(position, ..)| position).collect()
    }
}

/// A text that only items have which are to be replaced or dropped.
const SECRET: &str = "the-secret-of-account-4711";

/// Appends one item with the secret in it.
fn append_secret(model: &mut Model, storage: &dyn Storage) -> u64 {
    let mut items = Items::default();
    items.push(Label::default(), SECRET.as_bytes());
    let record = Record {
        first_commit: model.commit + 1,
        n_commits: 1,
        first_position: model.position + 1,
        items,
        ..Record::default()
    };
    (model.commit, model.position) = (record.last_commit(), record.first_position);
    let records = vec![record];
    let group = Group { records };
    storage.append(&group).wait().unwrap();
    model.groups.push(group);
    model.position
}

fn stub(position: u64) -> StoredItem {
    StoredItem {
        position,
        label: Label { flags: 7, word: 77 },
        bytes: format!("stub of {position}").into(),
    }
}

/// Some of the positions of a log, the last one among them.
fn some(model: &Model, random: &mut Random) -> Vec<u64> {
    let mut positions = model.positions();
    let last = positions.pop();
    positions.retain(|_| random.below(20) == 0);
    positions.extend(last);
    positions
}

fn ranges(positions: &[u64]) -> Vec<Range<u64>> {
    let range = |position: &u64| *position..position + 1 + position % 3;
    positions.iter().map(range).collect()
}

fn files_with_secret(dir: &Path) -> usize {
    let has_secret = |path: &std::path::PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes
            .windows(SECRET.len())
            .any(|window| window == SECRET.as_bytes())
    };
    log_files(dir)
        .iter()
        .filter(|path| has_secret(path))
        .count()
}

#[test]
fn items_are_replaced_and_dropped_in_segments_of_every_kind() {
    for seed in 0..6 {
        let dir = TempDir::new().unwrap();
        let mut random = Random::new(900 + seed);
        let mut model = filled(dir.path(), &small(), 60, 900 + seed);
        let storage = open(dir.path(), &small()).unwrap();
        if seed % 2 == 0 {
            maintain_fully(&storage);
        }
        for round in 0..4 {
            (0..20).for_each(|_| model.append(&storage, &mut random));
            let end = storage.end();
            let stubs: Vec<StoredItem> = some(&model, &mut random).into_iter().map(stub).collect();
            storage.replace_items(&stubs).unwrap();
            model.edit(&Edits::replacing(&stubs));
            model.check(&storage);
            let dropped = ranges(&some(&model, &mut random));
            storage.drop_items(&dropped).unwrap();
            model.edit(&Edits::dropping(&dropped));
            model.check(&storage);
            assert_eq!(storage.end(), end);
            if round == 2 {
                model.write_snapshot(&storage).unwrap();
            }
            maintain_fully(&storage);
            model.check(&storage);
        }
        if seed < 3 {
            storage.seal().unwrap();
        }
        drop(storage);
        let storage = open(dir.path(), &small()).unwrap();
        model.check(&storage);
        model.append(&storage, &mut random);
        model.check(&storage);
        drop(storage);
        assert_eq!(findings(dir.path()), 0);
    }
}

#[test]
fn a_sealed_log_can_be_edited_and_goes_on() {
    let dir = TempDir::new().unwrap();
    let mut model = filled(dir.path(), &small(), 5, 77);
    open(dir.path(), &small()).unwrap().seal().unwrap();
    let storage = open(dir.path(), &small()).unwrap();
    let stubs = [stub(*model.positions().last().unwrap())];
    storage.replace_items(&stubs).unwrap();
    model.edit(&Edits::replacing(&stubs));
    storage.seal().unwrap();
    drop(storage);
    let storage = open(dir.path(), &small()).unwrap();
    model.check(&storage);
    model.append(&storage, &mut Random::new(78));
    drop(storage);
    model.check(&open(dir.path(), &small()).unwrap());
    assert_eq!(findings(dir.path()), 0);
}

/// What was cut off may be what its writer wrote again.
#[test]
fn what_recovery_has_cut_off_goes_when_something_is_replaced() {
    let dir = TempDir::new().unwrap();
    let model = filled(dir.path(), &small(), 5, 79);
    let storage = open(dir.path(), &small()).unwrap();
    let torn = dir.path().join("log/torn-0000000001-4096");
    std::fs::write(&torn, "cut off").unwrap();
    let position = *model.positions().last().unwrap();
    let dropped = position..position + 1;
    storage.drop_items(std::slice::from_ref(&dropped)).unwrap();
    assert!(torn.exists());
    storage
        .replace_items(&[stub(model.positions()[0])])
        .unwrap();
    assert!(!torn.exists());
}

/// Also not in a dictionary, which is trained on items.
#[test]
fn nothing_is_left_of_what_was_replaced_or_dropped() {
    for is_compressed in [false, true] {
        for is_dropped in [false, true] {
            let dir = TempDir::new().unwrap();
            let storage = open(dir.path(), &small()).unwrap();
            let (mut model, mut random) = (Model::default(), Random::new(5));
            let mut secrets = Vec::new();
            for _ in 0..40 {
                model.append(&storage, &mut random);
                secrets.push(append_secret(&mut model, &storage));
            }
            if is_compressed {
                maintain_fully(&storage);
            }
            assert!(files_with_secret(dir.path()) > 0);
            if is_dropped {
                let dropped: Vec<_> = secrets.iter().map(|secret| *secret..secret + 1).collect();
                storage.drop_items(&dropped).unwrap();
            } else {
                let stubs: Vec<_> = secrets.iter().copied().map(stub).collect();
                storage.replace_items(&stubs).unwrap();
            }
            assert_eq!(files_with_secret(dir.path()), 0);
        }
    }
}

/// However far it comes, each item is the old one or the new one, and it can be repeated.
#[test]
fn power_may_fail_at_every_step_of_replacing_and_dropping() {
    for (seed, is_dropping) in [(71, false), (72, true), (73, false)] {
        for operations in 0.. {
            let (dir, _attic, disk, options) = simulated(seed + operations);
            let mut random = Random::new(seed);
            let mut model = filled(dir.path(), &options, 25, seed);
            let storage = open(dir.path(), &options).unwrap();
            if seed % 2 == 0 {
                maintain_fully(&storage);
            }
            model.append(&storage, &mut random);
            let positions = some(&model, &mut random);
            let (stubs, dropped) = match is_dropping {
                true => (Vec::new(), ranges(&positions)),
                false => (positions.into_iter().map(stub).collect(), Vec::new()),
            };
            let edits = match is_dropping {
                true => Edits::dropping(&dropped),
                false => Edits::replacing(&stubs),
            };
            let edit = |storage: &LocalStorage| match is_dropping {
                true => storage.drop_items(&dropped),
                false => storage.replace_items(&stubs),
            };
            let before = disk.n_operations();
            disk.cut_power_after(operations);
            let done = edit(&storage);
            let n_operations = disk.n_operations() - before;
            drop(storage);
            disk.crash().unwrap();
            let storage = open(dir.path(), &options).unwrap();
            let mut edited = model.clone();
            edited.edit(&edits);
            check_either(&storage, &model, &edited, done.is_ok());
            edit(&storage).unwrap();
            edited.check(&storage);
            edited.append(&storage, &mut random);
            maintain_fully(&storage);
            edited.check(&storage);
            drop(storage);
            assert_eq!(findings(dir.path()), 0, "{operations}");
            if done.is_ok() {
                assert!(n_operations > 5, "{n_operations}");
                break;
            }
        }
    }
}

/// Checks that every record is as in one of the two models, and in the second if all was done.
fn check_either(storage: &dyn Storage, before: &Model, after: &Model, is_done: bool) {
    let found = replay(storage, 0).unwrap();
    let (before, after) = (before.records(), after.records());
    assert_eq!(found.len(), before.len());
    for ((found, before), after) in found.iter().zip(&before).zip(&after) {
        assert!(found == after || (found == before && !is_done), "{found:?}");
    }
}

#[test]
fn a_damaged_segment_does_not_keep_the_others_from_being_edited() {
    let dir = TempDir::new().unwrap();
    let mut model = filled(dir.path(), &small(), 60, 4712);
    let storage = open(dir.path(), &small()).unwrap();
    let infos = storage.segments();
    let full: Vec<&SegmentInfo> = { infos.iter() }
        .filter(|info| info.items > 0 && info.kind != SegmentKind::Active)
        .collect();
    let (damaged, other) = (full[0], full[full.len() - 1]);
    assert_ne!(damaged.number, other.number);
    let mut bytes = fs::read(&damaged.path).unwrap();
    let middle = damaged.plain_bytes.min(damaged.file_bytes) as usize / 2;
    bytes[middle] ^= 1;
    let mut file = fs::File::options().write(true).open(&damaged.path).unwrap();
    file.write_all(&bytes).unwrap();
    let dropped = [damaged, other].map(|info| info.last_position..info.last_position + 1);
    let refused = storage.drop_items(&dropped).unwrap_err();
    assert!(matches!(refused, Error::Damaged(_)), "{refused}");
    let mut left = 0;
    let position = other.last_position;
    storage
        .read_labels(&[position], &mut |_, _| left += 1)
        .unwrap();
    assert_eq!(left, 0, "the item of the other one is gone");
    model.append(&storage, &mut Random::new(1));
}

#[test]
fn a_log_that_is_being_closed_is_not_edited_any_more() {
    let dir = TempDir::new().unwrap();
    let mut model = filled(dir.path(), &small(), 60, 4713);
    let storage = open(dir.path(), &small()).unwrap();
    storage.abandon();
    let all = ranges(&model.positions());
    let refused = storage.drop_items(&all).unwrap_err();
    assert!(matches!(refused, Error::Closed(_)), "{refused}");
    model.check(&storage);
    storage.seal().unwrap();
    drop(storage);
    let storage = open(dir.path(), &small()).unwrap();
    model.check(&storage);
    storage.drop_items(&all).unwrap();
    model.edit(&Edits::dropping(&all));
    model.check(&storage);
}
