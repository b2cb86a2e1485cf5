//! Whether a segment still holds the same after it was written again.

use trefoil_core::Result;
use xxhash_rust::xxh3::Xxh3;

use crate::Record;

use super::segments::Segment;

/// The checksum of all that a segment's records hold, without the changes of commits up to
/// `snapshot`. Records that may be told as one make no difference to it.
fn checksum(segment: &Segment, snapshot: u64) -> Result<u128> {
    let mut hash = Xxh3::new();
    let mut last: Option<Record> = None;
    segment.replay(0, &mut |record| {
        let mut record = record.clone();
        record.drop_changes(snapshot);
        let is_absorbed = last.as_mut().is_some_and(|last| last.absorb(&record));
        if !is_absorbed {
            add(&mut hash, last.replace(record).as_ref());
        }
        Ok(())
    })?;
    add(&mut hash, last.as_ref());
    Ok(hash.digest128())
}

fn add(hash: &mut Xxh3, record: Option<&Record>) {
    let Some(record) = record else {
        return;
    };
    let mut number = |number: u64| hash.update(&number.to_le_bytes());
    number(record.first_commit);
    number(record.n_commits.into());
    number(record.first_position);
    number(record.items.len() as u64);
    number(record.commits.len() as u64);
    number(record.changes.len() as u64);
    number(record.changes_dropped.into());
    for (label, item) in record.items.iter() {
        hash.update(&label.word.to_le_bytes());
        hash.update(&[label.flags]);
        hash.update(&(item.len() as u64).to_le_bytes());
        hash.update(item);
    }
    hash.update(&record.commits);
    hash.update(&record.changes);
}

/// Reads both segments and compares all that they hold, but for the changes up to `snapshot`.
pub(super) fn holds_the_same(before: &Segment, after: &Segment, snapshot: u64) -> Result<bool> {
    Ok(checksum(before, snapshot)? == checksum(after, snapshot)?)
}
