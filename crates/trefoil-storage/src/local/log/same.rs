//! Whether a segment still holds the same after it was written again.

use trefoil_core::Result;
use xxhash_rust::xxh3::Xxh3;

use crate::Record;

use super::segments::Segment;

/// What a record loses when it is written again.
pub(super) type RecordChange<'a> = dyn Fn(&mut Record) + 'a;

/// The checksum of all that a segment's records hold after `change`. Records that may be told as one
/// make no difference to it.
fn checksum(segment: &Segment, change: &RecordChange<'_>) -> Result<u128> {
    let mut hash = Xxh3::new();
    let mut last: Option<Record> = None;
    segment.replay(0, &mut |record| {
        let mut record = record.clone();
        change(&mut record);
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
    for item in record.items.iter() {
        hash.update(&[item.is_some().into()]);
        let (label, item) = item.unwrap_or_default();
        hash.update(&label.word.to_le_bytes());
        hash.update(&[label.flags]);
        hash.update(&(item.len() as u64).to_le_bytes());
        hash.update(item);
    }
    hash.update(&record.commits);
    hash.update(&record.changes);
}

/// Reads both segments and compares all that they hold after `change`, which changes nothing about
/// what it has changed already.
pub(super) fn holds_the_same(
    before: &Segment,
    after: &Segment,
    change: &RecordChange<'_>,
) -> Result<bool> {
    Ok(checksum(before, change)? == checksum(after, change)?)
}
