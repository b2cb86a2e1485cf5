//! A state that is written and taken is the same, whatever it holds.

use std::sync::Arc;

use fastrand::Rng;
use trefoil_core::{Commit, Error, NewEvent, Timestamp, Tracking};

use super::StateLine;
use crate::{Clock, Database, ManualTime, Options, Transaction, cmd};

const NOW: u64 = 1_800_000_000_000;

fn database() -> Database {
    let time = ManualTime::new(Timestamp(NOW as i64 * 1_000_000));
    Database::in_memory(&Options::default().with_clock(Clock::new(time))).unwrap()
}

fn run(database: &Database, words: &[&[u8]]) {
    let words = words.iter().map(|word| word.to_vec().into()).collect();
    let call = database.call(words).unwrap();
    let mut transaction = Transaction::of_call(call);
    // Some find a value of another type.
    transaction.is_strict = false;
    database.transact(transaction).unwrap();
}

fn lines(database: &Database) -> Vec<StateLine> {
    let mut export = database.export_state().unwrap();
    let mut found = Vec::new();
    while let Some(lines) = export.next_lines().unwrap() {
        found.extend(lines);
    }
    found
}

/// Takes lines in parts, as a server does.
fn taken(lines: &[StateLine]) -> Database {
    let copy = database();
    for part in lines.chunks(7) {
        copy.import_state(part.to_vec()).unwrap();
    }
    copy
}

fn random_command(random: &mut Rng) -> Vec<Vec<u8>> {
    let key = format!("key {}", random.u8(..40)).into_bytes();
    let mut bytes = || {
        let length = match random.u8(..20) {
            0 => random.usize(..5000),
            _ => random.usize(..12),
        };
        (0..length).map(|_| random.u8(..)).collect::<Vec<u8>>()
    };
    let (first, second) = (bytes(), bytes());
    let number = random.i64(-1000..1000).to_string().into_bytes();
    let time = (NOW + random.u64(1..1_000_000)).to_string().into_bytes();
    let word = |text: &str| text.as_bytes().to_vec();
    match random.u8(..14) {
        0 => vec![word("SET"), key, first],
        1 => vec![word("APPEND"), key, first],
        2 => vec![word("SETBIT"), key, word("1000"), word("1")],
        3 | 4 => vec![word("RPUSH"), key, first, second],
        5 => vec![word("LPUSH"), key, first],
        6 | 7 => vec![word("HSET"), key, first, second, word("f"), number],
        8 => vec![
            word("HPEXPIREAT"),
            key,
            time,
            word("FIELDS"),
            word("1"),
            word("f"),
        ],
        9 => vec![word("SADD"), key, first, second],
        10 => vec![word("ZADD"), key, number, first, word("-inf"), second],
        11 => vec![word("ZADD"), key, word("0.1"), first],
        12 => vec![word("PEXPIREAT"), key, time],
        _ => vec![word("DEL"), key],
    }
}

#[test]
fn every_type_comes_over_as_it_is() {
    for seed in 0..10 {
        let mut random = Rng::with_seed(seed);
        let original = database();
        for _ in 0..600 {
            let words = random_command(&mut random);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            run(&original, &words);
        }
        for number in 0..300 {
            let tracking = Tracking::new(format!("source {number}"), number + 1);
            let mut transaction = Transaction::new();
            transaction.tracking = Some(tracking);
            original.transact(transaction).unwrap();
        }
        let written = lines(&original);
        assert!(written.len() > 300, "{}", written.len());
        let copy = taken(&written);
        assert_eq!(lines(&copy), written, "seed {seed}");
        let keys = |database: &Database| database.survey().unwrap();
        assert_eq!(keys(&copy).keys, keys(&original).keys);
        assert_eq!(keys(&copy).expiring, keys(&original).expiring);
    }
}

#[test]
fn long_values_are_written_in_parts() {
    let original = database();
    let long: Vec<u8> = (0..3 * 1024 * 1024)
        .map(|index| (index / 7) as u8)
        .collect();
    run(&original, &[b"SET", b"string", &long]);
    run(&original, &[b"SET", b"exact", &long[..1024 * 1024]]);
    run(&original, &[b"SET", b"empty", b""]);
    for number in 0..2000_u32 {
        let number = number.to_string();
        run(&original, &[b"RPUSH", b"list", number.as_bytes()]);
        run(&original, &[b"HSET", b"hash", number.as_bytes(), b"v"]);
        run(&original, &[b"SADD", b"set", number.as_bytes()]);
        run(
            &original,
            &[b"ZADD", b"zset", number.as_bytes(), number.as_bytes()],
        );
    }
    let large = vec![b'x'; 3 * 1024 * 1024];
    for _ in 0..5 {
        run(&original, &[b"RPUSH", b"large", &large]);
    }
    let written = lines(&original);
    let longest = written.iter().map(|line| match line {
        StateLine::Command(words) => words.iter().map(|word| word.len()).sum(),
        _ => 0,
    });
    assert!(longest.max() < Some(9 * 1024 * 1024));
    assert_eq!(lines(&taken(&written)), written);
    let too_large = vec![b'x'; 9 * 1024 * 1024];
    run(&original, &[b"RPUSH", b"large", &too_large]);
    let mut export = original.export_state().unwrap();
    let error = loop {
        match export.next_lines() {
            Ok(lines) => assert!(lines.is_some(), "nothing was refused"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        error.contains("\"large\" has more than 8388608 bytes"),
        "{error}"
    );
}

#[test]
fn the_state_is_that_after_the_last_event() {
    let original = Arc::new(database());
    let writer = Arc::clone(&original);
    let writing = std::thread::spawn(move || {
        for _ in 0..3000 {
            let event = NewEvent::new("counter-1", "Counted", "{}");
            let count = cmd!(writer, "INCR", "count").unwrap();
            let transaction = Transaction::of_call(count).append(event);
            writer.transact(transaction).unwrap();
        }
    });
    while !writing.is_finished() {
        let mut export = original.export_state().unwrap();
        let position = export.position();
        let mut count = None;
        while let Some(lines) = export.next_lines().unwrap() {
            count = lines.into_iter().next().or(count);
        }
        let count = match count {
            Some(StateLine::Command(words)) => words[2].to_vec(),
            _ => b"0".to_vec(),
        };
        assert_eq!(String::from_utf8(count).unwrap(), position.to_string());
    }
    writing.join().unwrap();
}

#[test]
fn only_what_an_export_writes_is_taken() {
    let database = database();
    let command = |line: &str| {
        let words = line.split(' ').map(|word| word.as_bytes().to_vec().into());
        StateLine::Command(words.collect())
    };
    let refused = |lines: Vec<StateLine>| match database.import_state(lines) {
        Err(Error::ImportStopped { index, error }) => (index, error.to_string()),
        other => panic!("{other:?}"),
    };
    let (index, text) = refused(vec![command("SET a 1"), command("FLUSHALL")]);
    assert_eq!(index, 1);
    assert!(
        text.contains("flushall is no command of an export"),
        "{text}"
    );
    let (index, text) = refused(vec![command("SET a 1"), command("RPUSH a 1")]);
    assert_eq!(index, 1);
    assert!(text.contains("WRONGTYPE"), "{text}");
    let timer = trefoil_state::SetTimer {
        kind: 77,
        key: "a".into(),
        time: 1,
    };
    let (_, text) = refused(vec![StateLine::Timer(timer)]);
    assert!(
        text.contains("no application has a timer of kind 77"),
        "{text}"
    );
    assert!(!database.has_keys().unwrap(), "something was taken");
    // What events have brought along is there already.
    let mut tracked = Commit::new([NewEvent::new("a-1", "T", "{}")]);
    tracked.tracking = Some(Tracking::new("s", 7));
    database.commit(tracked).unwrap();
    for position in [7, 6, 9] {
        let line = StateLine::Tracking(Tracking::new("s", position));
        database.import_state(vec![line]).unwrap();
    }
    assert_eq!(database.tracking("s").unwrap(), Some(9));
}
