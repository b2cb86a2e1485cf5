//! What a log should hold, kept in memory, and random groups to append.

use std::ops::ControlFlow;

use super::{Random, replay};
use crate::{Group, Items, Label, Record, Storage};

/// What a log should hold: every group that was appended.
#[derive(Debug, Default, Clone)]
pub(super) struct Model {
    pub(super) groups: Vec<Group>,
    pub(super) commit: u64,
    pub(super) position: u64,
    /// The commit of the last snapshot that was acknowledged.
    pub(super) snapshot: u64,
    /// Whether new records have no items.
    pub(super) is_quiet: bool,
}

impl Model {
    /// A group that continues the log: up to four records of up to five items, sometimes with a
    /// jump.
    pub(super) fn next_group(&mut self, random: &mut Random) -> Group {
        let mut records = Vec::new();
        for _ in 0..1 + random.below(8) / 5 * random.below(4) {
            let mut items = Items::default();
            for _ in 0..random.below(if self.is_quiet { 1 } else { 6 }) {
                items.push(label(random), &body(random));
            }
            let jump = if random.below(10) == 0 {
                random.below(100)
            } else {
                0
            };
            let n_commits = 1 + random.below(3) as u32;
            let record = Record {
                first_commit: self.commit + 1,
                n_commits,
                first_position: self.position + 1 + jump,
                items,
                commits: vec![b'c'; random.below(30) as usize],
                changes: changes(random),
                changes_dropped: false,
            };
            self.commit += u64::from(n_commits);
            self.position = record.end_position() - 1;
            records.push(record);
        }
        Group { records }
    }

    pub(super) fn append(&mut self, storage: &dyn Storage, random: &mut Random) {
        let group = self.next_group(random);
        storage.append(&group).wait().unwrap();
        self.groups.push(group);
    }

    pub(super) fn records(&self) -> Vec<Record> {
        self.groups
            .iter()
            .flat_map(|group| group.records.clone())
            .collect()
    }

    /// The entries that a snapshot as of `commit` is written with.
    pub(super) fn entries(commit: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut random = Random::new(commit);
        let n = random.below(40) as u32;
        let entry = |number: u32| (number.to_be_bytes().to_vec(), body(&mut random));
        (0..n).map(entry).collect()
    }

    /// Writes a snapshot as of a commit that ends a group.
    pub(super) fn write_snapshot(&mut self, storage: &dyn Storage) -> trefoil_core::Result<()> {
        storage.write_snapshot(self.commit, &mut |sink| {
            let mut entries = Self::entries(self.commit).into_iter();
            entries.try_for_each(|(key, value)| sink(key, value))
        })?;
        self.snapshot = self.commit;
        Ok(())
    }

    /// Checks that the snapshot is the last that was acknowledged, or one after it, with the entries
    /// that one of its commit is written with.
    fn check_snapshot(&self, storage: &dyn Storage) {
        let commit = storage.snapshot().map_or(0, |snapshot| snapshot.commit);
        assert!(commit >= self.snapshot);
        if commit > 0 {
            assert_eq!(snapshot_entries(storage).unwrap(), Self::entries(commit));
        }
    }

    /// Checks that `storage` holds exactly this.
    pub(super) fn check(&self, storage: &dyn Storage) {
        let records = self.records();
        check_records(storage, &records);
        self.check_snapshot(storage);
        for record in &records {
            for (position, label, body) in record.items() {
                check_item(storage, position, label, body);
            }
        }
        assert_eq!(
            storage.end().commit,
            records.last().map_or(0, Record::last_commit)
        );
    }
}

/// Records without the changes that a snapshot of `commit` has, those that may be told as one as
/// one.
pub(super) fn without_changes(records: &[Record], commit: u64) -> Vec<Record> {
    let mut all: Vec<Record> = Vec::new();
    for mut record in records.iter().cloned() {
        assert!(!record.changes_dropped || record.last_commit() <= commit);
        record.drop_changes(commit);
        if !all.last_mut().is_some_and(|last| last.absorb(&record)) {
            all.push(record);
        }
    }
    all
}

/// Checks that `storage` replays these records, but for changes that its snapshot has.
pub(super) fn check_records(storage: &dyn Storage, expected: &[Record]) {
    let commit = storage.snapshot().map_or(0, |snapshot| snapshot.commit);
    let found = replay(storage, 0).unwrap();
    assert_eq!(
        without_changes(&found, commit),
        without_changes(expected, commit)
    );
}

pub(super) fn snapshot_entries(
    storage: &dyn Storage,
) -> trefoil_core::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut found = Vec::new();
    storage.read_snapshot(&mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        Ok(())
    })?;
    Ok(found)
}

fn check_item(storage: &dyn Storage, position: u64, label: Label, body: &[u8]) {
    let mut seen = 0;
    let mut visit = |item: crate::StoredItem| {
        assert_eq!((item.position, item.label), (position, label));
        assert_eq!(item.bytes, body);
        seen += 1;
        ControlFlow::Continue(())
    };
    storage.read(&[position], &mut visit).unwrap();
    let visit = &mut |at, found| assert_eq!((at, found), (position, label));
    storage.read_labels(&[position], visit).unwrap();
    assert_eq!(seen, 1);
}

pub(super) fn label(random: &mut Random) -> Label {
    Label {
        flags: random.below(256) as u8,
        word: random.below(u64::MAX),
    }
}

fn changes(random: &mut Random) -> Vec<u8> {
    (0..random.below(5) / 2 * random.below(60))
        .map(|_| random.below(256) as u8)
        .collect()
}

pub(super) fn body(random: &mut Random) -> Vec<u8> {
    match random.below(4) {
        0 => Vec::new(),
        1 => (0..random.below(300))
            .map(|_| random.below(256) as u8)
            .collect(),
        _ => {
            let (account, amount) = (random.below(1000), random.below(100_000));
            let name = format!("customer number {}", random.below(50));
            format!(
                "{{\"account\":\"account-{account}\",\"amount\":{amount},\"currency\":\"EUR\",\
                 \"name\":\"{name}\",\"description\":\"a deposit at the counter\"}}"
            )
            .into_bytes()
        }
    }
}
