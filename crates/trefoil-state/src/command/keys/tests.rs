//! The commands of keys, line by line.

use std::collections::BTreeSet;

use crate::Reply;
use crate::testing::{World, text};

const SYNTAX: &str = "-ERR syntax error";

/// One key of each type.
const EACH: [(&str, &str); 5] = [
    ("SET s 1", "+OK"),
    ("HSET h f v", ":1"),
    ("RPUSH l a b", ":2"),
    ("SADD u 1 2", ":2"),
    ("ZADD z 1 a 2 b", ":2"),
];

#[test]
fn keys_are_there_until_they_are_removed() {
    let mut world = World::default();
    world.check(&EACH);
    world.check(&[
        ("EXISTS s h l u z x s", ":6"),
        ("TOUCH s x", ":1"),
        ("TYPE s", "+string"),
        ("TYPE h", "+hash"),
        ("TYPE l", "+list"),
        ("TYPE u", "+set"),
        ("TYPE z", "+zset"),
        ("TYPE x", "+none"),
        ("DBSIZE", ":5"),
        ("DEL s x s", ":1"),
        ("UNLINK h l", ":2"),
        ("DELEX u", ":1"),
        ("DBSIZE", ":1"),
        ("DEL z", ":1"),
        ("DBSIZE", ":0"),
        ("RANDOMKEY", "_"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn values_of_all_types_are_renamed_and_copied() {
    let mut world = World::default();
    for (line, key, read) in [
        ("SET s 1", "s", "GET"),
        ("RPUSH l a b", "l", "LLEN"),
        ("HSET h f v g w", "h", "HGETALL"),
        ("SADD u 1 2", "u", "SMEMBERS"),
        ("ZADD z 1 a 2 b", "z", "ZCARD"),
    ] {
        world.run(line);
        let value = text(&world.run(&format!("{read} {key}")));
        world.check(&[
            (&format!("EXPIRE {key} 100"), ":1"),
            (&format!("COPY {key} copy"), ":1"),
            (&format!("RENAME {key} renamed"), "+OK"),
            (&format!("EXISTS {key}"), ":0"),
            ("TTL renamed", ":100"),
            ("TTL copy", ":100"),
            (&format!("{read} renamed"), &value),
            ("DEL renamed", ":1"),
            (&format!("{read} copy"), &value),
            ("DEL copy", ":1"),
        ]);
        assert!(world.left().is_empty(), "{:?}", world.left());
    }
}

#[test]
fn a_copy_is_a_value_of_its_own() {
    let mut world = World::default();
    let many: Vec<String> = (0..600).map(|n| format!("m{n}")).collect();
    world.run(&format!("SADD a {}", many.join(" ")));
    world.check(&[
        ("COPY a b", ":1"),
        ("SCARD b", ":600"),
        ("SREM a m0", ":1"),
        ("SISMEMBER b m0", ":1"),
        ("COPY a b", ":0"),
        ("COPY a b REPLACE", ":1"),
        ("SISMEMBER b m0", ":0"),
        ("COPY x b REPLACE", ":0"),
        ("COPY a b DB 0 REPLACE", ":1"),
        ("COPY a b DB 1", "-ERR DB index is out of range"),
        (
            "COPY a b DB x",
            "-ERR value is not an integer or out of range",
        ),
        ("COPY a b DB", SYNTAX),
        ("COPY a b FOO", SYNTAX),
        (
            "COPY a a",
            "-ERR source and destination objects are the same",
        ),
        ("DEL a b", ":2"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn renaming_takes_one_step() {
    let mut world = World::default();
    let many: Vec<String> = (0..300).map(|n| format!("m{n}")).collect();
    world.run(&format!("SADD a {}", many.join(" ")));
    let n = world.entries.len();
    world.check(&[
        ("SET b 1 EX 5", "+OK"),
        ("RENAMENX a b", ":0"),
        ("RENAMENX a a", ":0"),
        ("RENAME a a", "+OK"),
        ("RENAME a b", "+OK"),
        ("TTL b", ":-1"),
        ("SCARD b", ":300"),
        ("DBSIZE", ":1"),
        ("RENAMENX b c", ":1"),
        ("RENAME x y", "-ERR no such key"),
        ("RENAME x x", "-ERR no such key"),
        ("RENAMENX x y", "-ERR no such key"),
    ]);
    assert_eq!(
        world.entries.len(),
        n,
        "nothing was copied, nothing is garbage"
    );
}

#[test]
fn the_expiry_of_fields_goes_with_the_hash() {
    let mut world = World::default();
    world.check(&[
        ("HSET h f 1 g 2", ":2"),
        ("HPEXPIRE h 100 FIELDS 1 f", "[:1]"),
        ("RENAME h i", "+OK"),
        ("COPY i j", ":1"),
    ]);
    world.moment.now = 100;
    world.check(&[
        ("HGETALL i", "%[g=2]"),
        ("HGETALL j", "%[g=2]"),
        ("DEL i j", ":2"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn keys_are_found() {
    let mut world = World::default();
    world.check(&EACH);
    world.check(&[
        ("KEYS [sh]x", "[]"),
        ("KEYS l*", "[l]"),
        ("SCAN 0 TYPE hash", "[0 [h]]"),
        ("SCAN 0 TYPE foo", "[0 []]"),
        ("SCAN 0 MATCH z COUNT 100", "[0 [z]]"),
        ("SCAN x", "-ERR invalid cursor"),
        ("SCAN 0 COUNT 0", SYNTAX),
        (
            "SCAN 0 COUNT x",
            "-ERR value is not an integer or out of range",
        ),
        ("SCAN 0 FOO", SYNTAX),
    ]);
    let random: BTreeSet<String> = (0..100).map(|_| text(&world.run("RANDOMKEY"))).collect();
    assert_eq!(random.len(), 5, "{random:?}");
}

#[test]
fn a_walk_finds_every_key_once() {
    let mut world = World::default();
    for n in 0..500 {
        world.run(&format!("SET key{n} x"));
    }
    let (mut found, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let Reply::Array(parts) = world.run(&format!("SCAN {cursor} COUNT 7")) else {
            panic!("no step of a walk");
        };
        cursor = text(&parts[0]);
        let Reply::Array(keys) = &parts[1] else {
            panic!("no keys");
        };
        found.extend(keys.iter().map(text));
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found.len(), 500);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 500);
    let random: BTreeSet<String> = (0..100).map(|_| text(&world.run("RANDOMKEY"))).collect();
    assert!(random.len() > 50, "{random:?}");
}

#[test]
fn flushing_removes_all_keys() {
    let mut world = World::default();
    world.check(&EACH);
    world.check(&[
        ("EXPIRE s 10", ":1"),
        ("FLUSHDB FOO", SYNTAX),
        ("FLUSHDB ASYNC SYNC", SYNTAX),
        ("FLUSHDB async", "+OK"),
        ("DBSIZE", ":0"),
        ("KEYS *", "[]"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
    world.check(&[("SET a 1", "+OK"), ("FLUSHALL", "+OK"), ("EXISTS a", ":0")]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn encodings_are_those_of_redis() {
    let mut world = World::default();
    world.check(&EACH);
    let long = "x".repeat(65);
    let many: Vec<String> = (0..513).map(|n| n.to_string()).collect();
    for line in [
        "SET embedded foo".to_owned(),
        format!("SET raw {long}"),
        format!("HSET longhash f {long}"),
        format!("SADD integers {}", many[..512].join(" ")),
        format!("SADD manyintegers {}", many.join(" ")),
        "SADD words a b".to_owned(),
        format!("ZADD longzset 1 {long}"),
    ] {
        world.run(&line);
    }
    for (key, encoding) in [
        ("s", "int"),
        ("embedded", "embstr"),
        ("raw", "raw"),
        ("h", "listpack"),
        ("longhash", "hashtable"),
        ("l", "quicklist"),
        ("u", "intset"),
        ("integers", "intset"),
        ("manyintegers", "hashtable"),
        ("words", "hashtable"),
        ("z", "listpack"),
        ("longzset", "skiplist"),
        ("x", "_"),
    ] {
        assert_eq!(
            text(&world.run(&format!("OBJECT ENCODING {key}"))),
            encoding,
            "{key}"
        );
    }
    world.check(&[
        ("OBJECT REFCOUNT s", ":1"),
        ("OBJECT REFCOUNT x", "_"),
        (
            "OBJECT IDLETIME s",
            "-ERR the time of the last access is not tracked",
        ),
        (
            "OBJECT FOO s",
            "-ERR unknown subcommand 'FOO'. Try OBJECT HELP.",
        ),
        (
            "OBJECT ENCODING",
            "-ERR wrong number of arguments for 'object|encoding' command",
        ),
        (
            "OBJECT HELP s",
            "-ERR wrong number of arguments for 'object|help' command",
        ),
    ]);
}

#[test]
fn what_a_key_takes_is_all_of_its_entries() {
    let long = "x".repeat(10_000);
    let many: Vec<String> = (0..100).map(|n| format!("{n} v{n}")).collect();
    for lines in [
        vec!["SET k 1".to_owned()],
        vec![format!("SET k {long}"), "EXPIRE k 100".to_owned()],
        vec!["HSET k f v".to_owned(), "EXPIRE k 100".to_owned()],
        vec![
            format!("HSET k {}", many.join(" ")),
            "HEXPIRE k 100 FIELDS 2 7 8".to_owned(),
        ],
        vec![format!("RPUSH k {}", many.join(" "))],
        vec![format!("SADD k {}", many.join(" "))],
        vec![format!("ZADD k {}", many.join(" "))],
    ] {
        let mut world = World::default();
        for line in &lines {
            world.run(line);
        }
        let stored = world.left().into_iter();
        let stored: usize = stored
            .map(|name| name.len() + world.entries[name].len())
            .sum();
        let expected = format!(":{stored}");
        world.check(&[
            ("MEMORY USAGE k", &expected),
            ("memory usage k samples 0", &expected),
        ]);
    }
}

#[test]
fn memory_takes_what_redis_takes() {
    let mut world = World::default();
    world.check(&[
        ("SET gone 1 PX 1", "+OK"),
        ("SET k 1", "+OK"),
        ("MEMORY USAGE x", "_"),
        ("MEMORY USAGE k SAMPLES -1", SYNTAX),
        ("MEMORY USAGE k SAMPLES", SYNTAX),
        ("MEMORY USAGE k COUNT 1", SYNTAX),
        (
            "MEMORY USAGE k SAMPLES many",
            "-ERR value is not an integer or out of range",
        ),
        (
            "MEMORY USAGE",
            "-ERR wrong number of arguments for 'memory|usage' command",
        ),
        (
            "MEMORY STATS",
            "-ERR unknown subcommand 'STATS'. Try MEMORY HELP.",
        ),
    ]);
    world.moment.now += 1;
    world.check(&[("MEMORY USAGE gone", "_")]);
    let word = "x".repeat(129);
    let expected = format!(
        "-ERR unknown subcommand '{}'. Try MEMORY HELP.",
        &word[..128]
    );
    world.check(&[(&format!("MEMORY {word}"), &expected)]);
}
