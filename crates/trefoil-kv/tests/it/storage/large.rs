//! What is larger than a batch or a value of the engine.

use trefoil_core::Direction;
use trefoil_storage::{Batch, Record, Storage as _};

use super::{Place, append, items, noise, record, replayed};

fn large_records() -> Vec<Record> {
    let long = noise(1, 300_000);
    let many: Vec<Vec<u8>> = (0..200).map(|number| noise(number, 700)).collect();
    let many: Vec<&[u8]> = many.iter().map(|item| &item[..]).collect();
    vec![
        record(1, 1, &[b"first", &long, b"third"], &noise(2, 100_000)),
        record(2, 4, &many, b""),
        record(3, 300, &[b"after a gap"], b"changes"),
    ]
}

#[test]
fn a_group_of_any_size_is_appended() {
    for place in [Place::new(), Place::tiny()] {
        let records = large_records();
        let storage = place.open();
        append(&storage, records.clone()).unwrap();
        append(&storage, vec![record(4, 301, &[b"last"], b"")]).unwrap();
        let mut storage = storage;
        for _ in 0..2 {
            let mut expected = records.clone();
            expected.push(record(4, 301, &[b"last"], b""));
            assert_eq!(replayed(&storage), expected);
            let all: Vec<u64> = (0..310).collect();
            let found: Vec<(u64, Vec<u8>)> = expected
                .iter()
                .flat_map(Record::items)
                .map(|(position, _, bytes)| (position, bytes.to_vec()))
                .collect();
            assert_eq!(items(&storage, &all), found);
            let backwards: Vec<u64> = all.into_iter().rev().collect();
            let mut found = found;
            found.reverse();
            assert_eq!(items(&storage, &backwards), found);
            storage = place.open();
        }
    }
}

#[test]
fn maps_take_keys_and_values_of_any_length() {
    let place = Place::tiny();
    let storage = place.open();
    let long = |last: &str| [vec![b'k'; 5000], last.as_bytes().to_vec()].concat();
    let keys = [b"a".to_vec(), long(""), long("a"), long("b"), b"l".to_vec()];
    let value = |number: usize| noise(number as u64, 40 << (2 * number));
    let mut batch = Batch::default();
    for (number, key) in keys.iter().enumerate() {
        batch.put("map", key.clone(), value(number));
    }
    storage.write(&batch).unwrap();
    let check = |numbers: &[usize]| {
        let map = storage.map("map").unwrap().unwrap();
        let expected = numbers.iter().map(|number| keys[*number].clone());
        let expected: Vec<Vec<u8>> = expected.collect();
        for direction in [Direction::Forwards, Direction::Backwards] {
            let found = map.scan(b"", b"", direction);
            let mut found: Vec<Vec<u8>> = found.map(|entry| entry.unwrap().0.to_vec()).collect();
            if direction == Direction::Backwards {
                found.reverse();
            }
            assert_eq!(found, expected);
        }
        for (number, key) in keys.iter().enumerate() {
            let found = map.get(key).unwrap().map(|value| value.to_vec());
            let is_there = numbers.contains(&number);
            assert_eq!(found, is_there.then(|| value(number)), "{number}");
        }
        let from = map.scan(&long("a"), &long("b"), Direction::Forwards);
        let n_found = from.count();
        assert_eq!(n_found, usize::from(numbers.contains(&2)));
    };
    check(&[0, 1, 2, 3, 4]);
    let mut batch = Batch::default();
    batch.remove("map", long("a"));
    batch.remove("map", "l");
    storage.write(&batch).unwrap();
    check(&[0, 1, 3]);
    let mut batch = Batch::default();
    batch.put("map", "l", value(4));
    batch.remove("map", long(""));
    batch.remove("map", long("b"));
    storage.write(&batch).unwrap();
    check(&[0, 4]);
}

#[test]
fn items_of_any_size_are_replaced() {
    let place = Place::tiny();
    let mut storage = place.open();
    append(&storage, large_records()).unwrap();
    let stub = |position, bytes: Vec<u8>| trefoil_storage::StoredItem {
        position,
        label: trefoil_storage::Label::default(),
        bytes: bytes.into(),
    };
    storage
        .replace_items(&[stub(2, b"short".to_vec())])
        .unwrap();
    storage.replace_items(&[stub(3, noise(9, 50_000))]).unwrap();
    storage.drop_items(&[100..150, 200..1000]).unwrap();
    for _ in 0..2 {
        let found = items(&storage, &[1, 2, 3, 99, 100, 149, 150, 200, 300]);
        let found: Vec<(u64, usize)> = found
            .iter()
            .map(|(position, bytes)| (*position, bytes.len()))
            .collect();
        assert_eq!(found, [(1, 5), (2, 5), (3, 50_000), (99, 700), (150, 700)]);
        assert_eq!(storage.end().position, 300);
        storage = place.open();
    }
}
