//! A process that is killed, or cut off, at any call: what was done before is there, what was being done is
//! there as a whole or not at all, and nothing is left behind that nobody knows of.

use std::collections::BTreeMap;
use std::sync::Arc;

use trefoil_core::{Direction, Result};
use trefoil_kv::KvStorage;
use trefoil_kv::contract::Kv;
use trefoil_kv::memory::{CutOff, Fate, MemoryOptions};
use trefoil_storage::{Batch, Label, Storage, StoredItem, Upkeep};

use super::seen::{Seen, look};
use super::{Place, append, noise, open, record, tiny};

type Step = fn(&KvStorage) -> Result<()>;

/// Each is done whole or not at all.
const STEPS: &[Step] = &[
    |storage| append(storage, vec![record(1, 1, &[b"a", b"b"], b"changes")]),
    |storage| append(storage, vec![record(2, 3, &[b"to be packed"], b"")]),
    |storage| append(storage, vec![record(3, 4, &[b"with it"], b"")]),
    |storage| {
        let (one, other) = (noise(1, 3000), noise(2, 900));
        let records = vec![
            record(4, 5, &[&one, &other, b"c"], &noise(3, 1500)),
            record(5, 22, &[b"after a gap"], b""),
        ];
        append(storage, records)
    },
    |storage| {
        let mut batch = Batch::default();
        batch.put("map", "a", "1");
        batch.put("other", "a", noise(4, 1000));
        storage.write(&batch)
    },
    |storage| {
        let mut batch = Batch::default();
        for number in 0..8_u8 {
            batch.put("map", vec![number], noise(number.into(), 400));
        }
        batch.put("third", "a", "1");
        batch.put("other", "a", "short");
        storage.write(&batch)
    },
    |storage| {
        storage.load("run", &mut |sink| {
            sink(b"a".to_vec(), b"1".to_vec())?;
            sink(b"b".to_vec(), b"2".to_vec())
        })
    },
    |storage| write_snapshot(storage, 4, 10),
    keep_up,
    |storage| {
        append(storage, vec![record(6, 23, &[], b"x")])?;
        Ok(())
    },
    |storage| append(storage, vec![record(7, 23, &[], b"y")]),
    |storage| write_snapshot(storage, 7, 3),
    keep_up,
    |storage| storage.drop_map("run"),
    |storage| storage.drop_map("map"),
    |storage| {
        storage.replace_items(&[StoredItem {
            position: 5,
            label: Label::default(),
            bytes: "stub".into(),
        }])
    },
    |storage| storage.drop_items(std::slice::from_ref(&(6..8))),
    keep_up,
    |storage| append(storage, vec![record(8, 23, &[b"last"], b"")]),
];

fn write_snapshot(storage: &KvStorage, commit: u64, n_entries: u64) -> Result<()> {
    storage.write_snapshot(commit, &mut |sink| {
        (0..n_entries).try_for_each(|number| {
            sink(
                number.to_be_bytes().to_vec(),
                noise(commit * 100 + number, 300),
            )
        })
    })
}

fn keep_up(storage: &KvStorage) -> Result<()> {
    while storage.maintain(&|| false)? == Upkeep::More {}
    Ok(())
}

/// How many keys there are of each kind, but for records and items, which may be merged in other
/// places.
fn kinds(kv: &dyn Kv) -> BTreeMap<char, usize> {
    let page = kv
        .scan(&[0], &[255], Direction::Forwards, usize::MAX, false)
        .unwrap();
    let mut found = BTreeMap::new();
    for (key, _) in page.entries {
        *found.entry(char::from(key[8])).or_default() += 1;
    }
    found.retain(|letter, _| !"ri".contains(*letter));
    found
}

/// Does steps from one on, until one fails. Returns how many were done in all.
fn go_on(storage: &KvStorage, first: usize) -> usize {
    let failed = STEPS[first..]
        .iter()
        .position(|step| step(storage).is_err());
    failed.map_or(STEPS.len(), |failed| first + failed)
}

fn options(is_tiny: bool) -> MemoryOptions {
    match is_tiny {
        true => tiny(),
        false => MemoryOptions::default(),
    }
}

/// What is there after each step, what kinds of keys at the end, and how many calls that took.
fn uncut(is_tiny: bool) -> (Vec<Seen>, BTreeMap<char, usize>, u64) {
    let place = Place::with(options(is_tiny));
    let node = place.engine.connect(options(is_tiny));
    let (kv, epoch) = place.take_over(&node);
    let storage = open(&node, Arc::clone(&kv), epoch, place.directory.path()).unwrap();
    let mut n_calls = node.n_calls();
    let mut seen = vec![look(&storage).unwrap()];
    for (number, step) in STEPS.iter().enumerate() {
        let before = node.n_calls();
        step(&storage).unwrap_or_else(|error| panic!("step {number}: {error:?}"));
        n_calls += node.n_calls() - before;
        seen.push(look(&storage).unwrap());
    }
    keep_up(&storage).unwrap();
    let items = kv.scan(&[0], &[255], Direction::Forwards, usize::MAX, false);
    let items = items.unwrap().entries.into_iter();
    let n_blocks = items.filter(|(key, _)| key[8] == b'i').count();
    assert_eq!(n_blocks, if is_tiny { 4 } else { 6 }, "some were packed");
    (seen, kinds(&*kv), n_calls)
}

fn check(is_tiny: bool) {
    let (seen, expected_kinds, n_calls) = uncut(is_tiny);
    assert!(n_calls > 40, "{n_calls}");
    for n_done in 0..n_calls {
        for fate in [Fate::FailsBefore, Fate::FailsAfter] {
            let at = format!("cut at call {n_done}, which {fate:?}");
            let place = Place::with(options(is_tiny));
            let node = place.engine.connect(options(is_tiny));
            node.set_fates(Some(Box::new(CutOff::after(n_done, fate))));
            let n_steps = die(&place, &node);
            let storage = place.open();
            let found = look(&storage).unwrap();
            // What was edited when it was cut may be edited in part.
            let is_known = [n_steps, n_steps + 1].into_iter().find(|n_steps| {
                seen.get(*n_steps)
                    .is_some_and(|expected| *expected == found)
            });
            let reached = is_known.unwrap_or_else(|| {
                let before = &seen[n_steps];
                panic!("{at}, after {n_steps} steps\n{found:?}\n{before:?}")
            });
            assert_eq!(go_on(&storage, reached), STEPS.len(), "{at}");
            keep_up(&storage).unwrap();
            assert_eq!(look(&storage).unwrap(), seen[STEPS.len()], "{at}");
            drop(storage);
            let (kv, _) = place.take_over(&place.engine);
            assert_eq!(kinds(&*kv), expected_kinds, "{at}");
        }
    }
}

/// Opens the namespace and does what can be done. Returns how many steps were.
fn die(place: &Place, node: &trefoil_kv::memory::MemoryEngine) -> usize {
    use trefoil_kv::contract::KvEngine as _;
    let epoch = place
        .epoch
        .fetch_add(1, std::sync::atomic::Ordering::SeqCst)
        + 1;
    let Ok(kv) = node.open("namespace", epoch) else {
        return 0;
    };
    let Ok(storage) = open(node, kv, epoch, place.directory.path()) else {
        return 0;
    };
    go_on(&storage, 0)
}

#[test]
fn it_may_be_cut_off_at_any_call() {
    check(false);
}

#[test]
fn it_may_be_cut_off_at_any_call_if_everything_is_split() {
    check(true);
}

/// Opening may be cut off, too, however often.
#[test]
fn opening_is_begun_again() {
    let place = Place::tiny();
    let node = place.engine.connect(tiny());
    let (kv, epoch) = place.take_over(&node);
    let storage = open(&node, kv, epoch, place.directory.path()).unwrap();
    for step in &STEPS[..5] {
        step(&storage).unwrap();
    }
    let before = look(&storage).unwrap();
    // In the middle of a large batch of maps, when it counts already.
    let calls = node.n_calls();
    STEPS[5](&storage).unwrap();
    let n_calls = node.n_calls() - calls;
    let after = look(&storage).unwrap();
    drop(storage);
    for n_done in 0..n_calls {
        let place = Place::tiny();
        let node = place.engine.connect(tiny());
        let (kv, epoch) = place.take_over(&node);
        let storage = open(&node, kv, epoch, place.directory.path()).unwrap();
        for step in &STEPS[..5] {
            step(&storage).unwrap();
        }
        node.set_fates(Some(Box::new(CutOff::after(n_done, Fate::FailsBefore))));
        assert!(STEPS[5](&storage).is_err());
        for n_opening in 0.. {
            let node = place.engine.connect(tiny());
            let (kv, epoch) = place.take_over(&node);
            node.set_fates(Some(Box::new(CutOff::after(n_opening, Fate::FailsBefore))));
            let opened = open(&node, kv, epoch, place.directory.path());
            if let Ok(storage) = opened {
                node.set_fates(None);
                let found = look(&storage).unwrap();
                assert!(
                    found == before || found == after,
                    "cut at {n_done}: {found:?}"
                );
                break;
            }
            assert!(n_opening < 200, "cut at {n_done}");
        }
    }
}
