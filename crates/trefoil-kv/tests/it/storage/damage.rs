//! What is missing or damaged in a store is an error, and never an empty answer.

use std::sync::Arc;

use bytes::Bytes;
use trefoil_core::{Direction, Error, Result};
use trefoil_kv::contract::{Kv, KvBatch};
use trefoil_storage::{Batch, Storage as _, Upkeep};

use super::seen::{Seen, look};
use super::{Place, append, noise, open, record};

/// Facts without which nothing is lost: what can be removed, how much room is taken, how far records
/// were merged and blocks packed.
const DISPENSABLE: &[u8] = b"GUHP";
/// Entries of maps, and the maps themselves. If one is gone, no other key tells of it; maps can be made
/// again from the log.
const DERIVED: &[u8] = b"mM";

/// Stores something of every kind.
fn fill(place: &Place) {
    let storage = place.open();
    let records = vec![
        record(1, 1, &[b"a", &noise(1, 2000)], b"dropped"),
        record(2, 3, &[], b"dropped"),
        record(3, 3, &[], b"dropped"),
    ];
    append(&storage, records).unwrap();
    for commit in 4..8 {
        let body = noise(commit, 300);
        let next = record(commit, 6 + commit, &[&body], &noise(commit, 500));
        append(&storage, vec![next]).unwrap();
    }
    let mut batch = Batch::default();
    for number in 0..3_u8 {
        batch.put("map", vec![number], noise(number.into(), 600));
    }
    storage.write(&batch).unwrap();
    let written = storage.write_snapshot(3, &mut |sink| {
        (0..3_u8).try_for_each(|number| sink(vec![number], noise(number.into(), 300)))
    });
    written.unwrap();
    while storage.maintain(&|| false).unwrap() == Upkeep::More {}
}

fn read_all(place: &Place) -> Result<Seen> {
    let (kv, epoch) = place.take_over(&place.engine);
    look(&open(&place.engine, kv, epoch, place.directory.path())?)
}

fn set(kv: &Arc<dyn Kv>, key: &Bytes, value: Option<Bytes>) {
    let changes = vec![(key.clone(), value)];
    kv.commit(KvBatch { changes }, Box::new(|done| done.unwrap()));
}

fn check(place: &Place) {
    fill(place);
    let expected = read_all(place).unwrap();
    let (kv, _) = place.take_over(&place.engine);
    let all = kv.scan(&[0], &[255], Direction::Forwards, usize::MAX, false);
    let all = all.unwrap().entries;
    assert!(all.len() > 15);
    for (key, value) in all {
        let letter = key[8];
        let mut other = value.to_vec();
        let middle = other.len() / 2;
        other[middle] ^= 0x10;
        let spoiled = [None, Some(Bytes::from(other)), Some(Bytes::new())];
        for (number, spoiled) in spoiled.into_iter().enumerate() {
            let (kv, _) = place.take_over(&place.engine);
            set(&kv, &key, spoiled);
            let found = read_all(place);
            let (kv, _) = place.take_over(&place.engine);
            set(&kv, &key, Some(value.clone()));
            let what = format!("{} {key:?}, spoiled {number}", char::from(letter));
            let is_removed = number == 0;
            match found {
                Err(Error::Damaged(_)) => {}
                Ok(_) if is_removed && DERIVED.contains(&letter) => {}
                Ok(found) if is_removed && DISPENSABLE.contains(&letter) => {
                    assert_eq!(found, expected, "{what}");
                }
                other => panic!("{what}: {other:?}"),
            }
        }
    }
    assert_eq!(read_all(place).unwrap(), expected);
}

#[test]
fn every_key_that_is_missing_or_damaged_is_noticed() {
    check(&Place::new());
}

#[test]
fn every_key_that_is_missing_or_damaged_is_noticed_if_everything_is_split() {
    check(&Place::tiny());
}
