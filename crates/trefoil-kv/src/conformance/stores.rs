//! What a store does that one writer has.

use std::sync::mpsc::channel;

use bytes::Bytes;
use trefoil_core::Direction::{self, Backwards, Forwards};

use super::{PATIENCE, batch, bytes, commit, get, put};
use crate::contract::{Kv, KvBatch, KvEngine, KvError, KvRead};

/// The end of every scan of everything.
const END: &[u8] = &[0xff];

pub(super) fn check(engine: &dyn KvEngine) {
    let kv = engine.open("checks/store", 1).unwrap();
    a_new_store_is_empty(&*kv);
    a_batch_is_applied_as_a_whole(&*kv);
    batches_are_applied_in_order(&*kv);
    what_is_too_large_is_refused(&*kv);
    keys_are_read_together(&*kv);
    floors_are_found(&*kv);
    scans_go_both_ways(&*kv);
    scans_are_paged(&*kv);
    a_moment_stays_as_it_is(&*kv);
    kv.close().unwrap();
    a_closed_handle_writes_nothing(&*kv);
    a_store_keeps_what_it_has(engine);
    stores_are_apart(engine);
    an_erased_store_is_new(engine);
}

fn all(kv: &dyn KvRead) -> Vec<(Bytes, Bytes)> {
    let page = kv.scan(b"", END, Forwards, usize::MAX, false).unwrap();
    assert!(!page.has_more);
    page.entries
}

/// Removes everything that a check left.
fn clear(kv: &dyn Kv) {
    let changes = all(kv).into_iter().map(|(key, _)| (key, None)).collect();
    commit(kv, KvBatch { changes }).unwrap();
    assert!(all(kv).is_empty());
}

fn a_new_store_is_empty(kv: &dyn Kv) {
    assert!(all(kv).is_empty());
    assert_eq!(get(kv, "a"), None);
    assert_eq!(kv.floor(&[(b"", END)]).unwrap(), [None]);
    assert!(kv.get(&[]).unwrap().is_empty());
    assert!(kv.floor(&[]).unwrap().is_empty());
}

fn a_batch_is_applied_as_a_whole(kv: &dyn Kv) {
    put(kv, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let mixed = [
        ("a", Some("x")),
        ("b", None),
        ("d", Some("4")),
        ("a", Some("y")),
        ("c", Some("z")),
        ("c", None),
        ("absent", None),
    ];
    commit(kv, batch(&mixed)).unwrap();
    assert_eq!(
        all(kv),
        [(bytes("a"), bytes("y")), (bytes("d"), bytes("4"))]
    );
    commit(kv, KvBatch::default()).unwrap();
    put(kv, &[("empty", "")]);
    assert_eq!(get(kv, "empty"), Some(Bytes::new()));
    clear(kv);
}

/// Many at once, without waiting: the last one wins, and they are told in order.
fn batches_are_applied_in_order(kv: &dyn Kv) {
    let (sender, receiver) = channel();
    for number in 0..200 {
        let sender = sender.clone();
        let value = number.to_string();
        let own = format!("own/{number:03}");
        let changes = batch(&[("last", Some(&value)), (&own, Some(&value))]);
        let done = move |result| sender.send((number, result)).unwrap();
        kv.commit(changes, Box::new(done));
    }
    for expected in 0..200 {
        let (number, result) = receiver.recv_timeout(PATIENCE).unwrap();
        assert_eq!((number, result), (expected, Ok(())));
    }
    assert_eq!(get(kv, "last"), Some(bytes("199")));
    assert_eq!(all(kv).len(), 201);
    clear(kv);
}

fn what_is_too_large_is_refused(kv: &dyn Kv) {
    let limits = kv.limits();
    assert!(limits.key_bytes >= 512, "{limits:?}");
    assert!(limits.value_bytes >= 64 << 10, "{limits:?}");
    assert!(limits.batch_bytes >= limits.value_bytes, "{limits:?}");
    let long = Bytes::from(vec![b'k'; limits.key_bytes + 1]);
    let changes = vec![(long, Some(bytes("v"))), (bytes("a"), Some(bytes("1")))];
    let refused = commit(kv, KvBatch { changes });
    assert!(
        matches!(refused, Err(KvError::TooLarge { .. })),
        "{refused:?}"
    );
    let large = Bytes::from(vec![b'v'; limits.batch_bytes]);
    let changes = vec![(bytes("b"), Some(large)), (bytes("a"), Some(bytes("1")))];
    let refused = commit(kv, KvBatch { changes });
    assert!(
        matches!(refused, Err(KvError::TooLarge { .. })),
        "{refused:?}"
    );
    assert!(all(kv).is_empty());
    let longest = Bytes::from(vec![b'k'; limits.key_bytes]);
    let changes = vec![(longest.clone(), Some(bytes("v")))];
    commit(kv, KvBatch { changes }).unwrap();
    assert_eq!(kv.get(&[&longest]).unwrap(), [Some(bytes("v"))]);
    clear(kv);
}

fn keys_are_read_together(kv: &dyn Kv) {
    put(kv, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let found = kv.get(&[b"c", b"x", b"a", b"c"]).unwrap();
    let expected = [Some("3"), None, Some("1"), Some("3")];
    assert_eq!(found, expected.map(|value| value.map(bytes)));
    clear(kv);
}

fn floors_are_found(kv: &dyn Kv) {
    put(kv, &[("a1", "1"), ("a3", "3"), ("b2", "2"), ("b9", "9")]);
    commit(kv, batch(&[("b9", None)])).unwrap();
    let ranges: [(&[u8], &[u8]); 8] = [
        (b"a", b"a9"),
        (b"a", b"a3"),
        (b"a", b"a2"),
        (b"a1", b"a1"),
        (b"a", b"a0"),
        (b"b", b"b9"),
        (b"c", b"z"),
        (b"b", b"a"),
    ];
    let found = kv.floor(&ranges).unwrap();
    let keys: Vec<Option<&[u8]>> = found
        .iter()
        .map(|entry| entry.as_ref().map(|(key, _)| &key[..]))
        .collect();
    let expected: [Option<&[u8]>; 8] = [
        Some(b"a3"),
        Some(b"a3"),
        Some(b"a1"),
        Some(b"a1"),
        None,
        Some(b"b2"),
        None,
        None,
    ];
    assert_eq!(keys, expected);
    assert_eq!(found[0].as_ref().unwrap().1, bytes("3"));
    clear(kv);
}

fn keys(kv: &dyn KvRead, from: &str, to: &str, direction: Direction) -> Vec<String> {
    let page = kv
        .scan(from.as_bytes(), to.as_bytes(), direction, usize::MAX, true)
        .unwrap();
    let name = |(key, _): &(Bytes, Bytes)| String::from_utf8(key.to_vec()).unwrap();
    page.entries.iter().map(name).collect()
}

fn scans_go_both_ways(kv: &dyn Kv) {
    put(kv, &[("a", "1"), ("b", "2"), ("b1", "3"), ("c", "4")]);
    assert_eq!(keys(kv, "a", "c", Forwards), ["a", "b", "b1"]);
    assert_eq!(keys(kv, "a", "c", Backwards), ["b1", "b", "a"]);
    assert_eq!(keys(kv, "b", "b1", Forwards), ["b"]);
    assert_eq!(keys(kv, "aa", "z", Backwards), ["c", "b1", "b"]);
    assert!(keys(kv, "b", "b", Forwards).is_empty());
    assert!(keys(kv, "c", "a", Backwards).is_empty());
    clear(kv);
}

/// Pages of a few entries, from both ends, until nothing is left.
fn scans_are_paged(kv: &dyn Kv) {
    let value = "v".repeat(100);
    let names: Vec<String> = (0..50).map(|number| format!("k{number:02}")).collect();
    for some in names.chunks(7) {
        let entries: Vec<(&str, &str)> = some.iter().map(|name| (&name[..], &value[..])).collect();
        put(kv, &entries);
    }
    for direction in [Forwards, Backwards] {
        let (mut from, mut to) = (b"k".to_vec(), b"l".to_vec());
        let mut seen = Vec::new();
        loop {
            let page = kv.scan(&from, &to, direction, 1000, false).unwrap();
            assert!(page.entries.len() <= 15, "{}", page.entries.len());
            let Some((last, _)) = page.entries.last() else {
                assert!(!page.has_more);
                break;
            };
            match direction {
                Forwards => from = [&last[..], &[0]].concat(),
                Backwards => to = last.to_vec(),
            }
            let text = |(key, _): &(Bytes, Bytes)| String::from_utf8(key.to_vec()).unwrap();
            seen.extend(page.entries.iter().map(text));
            if !page.has_more {
                break;
            }
        }
        if direction == Backwards {
            seen.reverse();
        }
        assert_eq!(seen, names);
    }
    let first = kv.scan(b"k", b"l", Forwards, 0, false).unwrap();
    assert!(!first.entries.is_empty(), "a page has at least one");
    clear(kv);
}

fn a_moment_stays_as_it_is(kv: &dyn Kv) {
    put(kv, &[("a", "1"), ("b", "1")]);
    let moment = kv.moment().unwrap();
    commit(
        kv,
        batch(&[("a", Some("2")), ("b", None), ("c", Some("2"))]),
    )
    .unwrap();
    let before = [(bytes("a"), bytes("1")), (bytes("b"), bytes("1"))];
    assert_eq!(all(&*moment), before);
    assert_eq!(moment.get(&[b"a", b"c"]).unwrap(), [Some(bytes("1")), None]);
    let floor = moment.floor(&[(b"a", b"z")]).unwrap().remove(0);
    assert_eq!(floor, Some((bytes("b"), bytes("1"))));
    let after = [(bytes("a"), bytes("2")), (bytes("c"), bytes("2"))];
    assert_eq!(all(kv), after);
    moments_are_between_batches(kv);
    clear(kv);
}

/// A moment among batches that nobody waits for shows whole batches, and always the same.
fn moments_are_between_batches(kv: &dyn Kv) {
    let (sender, receiver) = channel();
    let mut moments = Vec::new();
    for number in 0..60 {
        let value = number.to_string();
        let sender = sender.clone();
        let changes = batch(&[("left", Some(&value)), ("right", Some(&value))]);
        kv.commit(changes, Box::new(move |done| sender.send(done).unwrap()));
        if number % 10 == 5 {
            let moment = kv.moment().unwrap();
            let seen = moment.get(&[b"left", b"right"]).unwrap();
            assert_eq!(seen[0], seen[1]);
            moments.push((moment, seen));
        }
    }
    for _ in 0..60 {
        receiver.recv_timeout(PATIENCE).unwrap().unwrap();
    }
    for (moment, seen) in moments {
        assert_eq!(moment.get(&[b"left", b"right"]).unwrap(), seen);
    }
}

fn a_closed_handle_writes_nothing(kv: &dyn Kv) {
    assert!(commit(kv, batch(&[("a", Some("1"))])).is_err());
    kv.close().unwrap();
}

/// Closed, or just dropped: what was acknowledged is there for the next writer.
fn a_store_keeps_what_it_has(engine: &dyn KvEngine) {
    let name = "checks/kept";
    let mut expected = Vec::new();
    for epoch in 1..=6_u64 {
        let kv = engine.open(name, epoch).unwrap();
        assert_eq!(all(&*kv), expected);
        let key = format!("k{epoch}");
        put(&*kv, &[(&key, "kept")]);
        expected.push((bytes(&key), bytes("kept")));
        if epoch % 2 == 0 {
            kv.close().unwrap();
        }
    }
}

fn stores_are_apart(engine: &dyn KvEngine) {
    let one = engine.open("checks/one", 1).unwrap();
    let two = engine.open("checks/two", 1).unwrap();
    let longer = engine.open("checks/one-more", 1).unwrap();
    put(&*one, &[("a", "one")]);
    put(&*two, &[("a", "two")]);
    assert_eq!(get(&*one, "a"), Some(bytes("one")));
    assert_eq!(get(&*two, "a"), Some(bytes("two")));
    assert!(all(&*longer).is_empty());
    one.close().unwrap();
    engine.erase("checks/one").unwrap();
    assert_eq!(get(&*two, "a"), Some(bytes("two")));
    put(&*longer, &[("a", "more")]);
    assert_eq!(get(&*longer, "a"), Some(bytes("more")));
}

fn an_erased_store_is_new(engine: &dyn KvEngine) {
    let kv = engine.open("checks/erased", 7).unwrap();
    put(&*kv, &[("a", "1")]);
    kv.close().unwrap();
    engine.erase("checks/erased").unwrap();
    engine.erase("checks/erased").unwrap();
    engine.erase("checks/never-there").unwrap();
    let kv = engine.open("checks/erased", 1).unwrap();
    assert!(all(&*kv).is_empty());
    put(&*kv, &[("b", "2")]);
    kv.close().unwrap();
}
