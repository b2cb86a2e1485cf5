//! The commands of strings, line by line.

use bytes::Bytes;

use crate::testing::{World, text};
use crate::{MemorySpace, Reply};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const SYNTAX: &str = "-ERR syntax error";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";

#[test]
fn strings_are_set_and_read() {
    let mut world = World::default();
    world.check(&[
        ("GET a", "_"),
        ("SET a 1", "+OK"),
        ("GET a", "1"),
        ("SETNX a 2", ":0"),
        ("SETNX b 2", ":1"),
        ("GETSET a 3", "1"),
        ("GETSET c 4", "_"),
        ("MGET a b c d", "[3 2 4 _]"),
        ("MSET a x d y d z", "+OK"),
        ("MGET a d", "[x z]"),
        ("MSETNX e 1 a 1", ":0"),
        ("MSETNX e 1 f 1 e 2", ":1"),
        ("GET e", "2"),
        ("STRLEN a", ":1"),
        ("STRLEN x", ":0"),
        ("GETDEL a", "x"),
        ("GETDEL a", "_"),
        ("DEL b c d e f", ":5"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn set_obeys_its_conditions() {
    World::default().check(&[
        ("SET a 1 XX", "_"),
        ("SET a 1 XX GET", "_"),
        ("SET a 1 NX", "+OK"),
        ("SET a 2 NX", "_"),
        ("SET a 2 NX GET", "1"),
        ("SET a 2 XX GET", "1"),
        ("SET a 3 IFEQ 1", "_"),
        ("SET a 3 IFEQ 2", "+OK"),
        ("SET a 4 IFNE 3", "_"),
        ("SET a 4 IFNE 3 GET", "3"),
        ("SET a 4 ifne 0 get", "3"),
        ("SET b 1 IFEQ 1", "_"),
        ("SET b 1 IFNE 1", "+OK"),
        ("SET b foo", "+OK"),
        ("DIGEST b", "ab6e5f64077e7d8a"),
        ("SET b bar IFDEQ AB6E5F64077E7D8A", "+OK"),
        ("SET b bar IFDEQ ab6e5f64077e7d8a", "_"),
        ("SET b baz IFDNE ab6e5f64077e7d8a", "+OK"),
        (
            "SET b x IFDEQ 12",
            "-ERR a digest must be exactly 16 hexadecimal characters",
        ),
        ("DELEX b IFEQ bar", ":0"),
        ("DELEX b IFEQ baz", ":1"),
        ("DELEX b IFEQ baz", ":0"),
        ("DELEX b IFNE baz", ":0"),
        ("DELEX a IFNE 3", ":1"),
        ("DELEX a", ":0"),
        ("SET a 1 NX XX", SYNTAX),
        ("SET a 1 NX IFEQ 1", SYNTAX),
        ("SET a 1 IFEQ", SYNTAX),
        ("SET a 1 FOO", SYNTAX),
        ("DELEX a FOO 1", SYNTAX),
        (
            "DELEX a IFEQ",
            "-ERR wrong number of arguments for 'delex' command",
        ),
    ]);
}

#[test]
fn set_and_getex_say_when_a_key_expires() {
    let invalid = "-ERR invalid expire time in 'set' command";
    let mut world = World::default();
    world.moment.now = 1_000_000;
    world.check(&[
        ("SET a 1 EX 10", "+OK"),
        ("PTTL a", ":10000"),
        ("SET a 1 KEEPTTL", "+OK"),
        ("PTTL a", ":10000"),
        ("SET a 1", "+OK"),
        ("PTTL a", ":-1"),
        ("SET a 1 PX 10 PX 20", "+OK"),
        ("PTTL a", ":20"),
        ("SET a 1 EXAT 2000", "+OK"),
        ("PEXPIRETIME a", ":2000000"),
        ("SET a 1 PXAT 2000001", "+OK"),
        ("PEXPIRETIME a", ":2000001"),
        ("GETEX a", "1"),
        ("PEXPIRETIME a", ":2000001"),
        ("GETEX a PERSIST", "1"),
        ("PTTL a", ":-1"),
        ("GETEX a EX 5", "1"),
        ("PTTL a", ":5000"),
        ("GETEX a PXAT 5", "1"),
        ("EXISTS a", ":0"),
        ("GETEX a EX 0", "_"),
        ("SETEX a 7 x", "+OK"),
        ("PTTL a", ":7000"),
        ("PSETEX a 8 x", "+OK"),
        ("PTTL a", ":8"),
        ("SET a 1 PXAT 5", "+OK"),
        ("EXISTS a", ":0"),
        ("SET a 1 EX 0", invalid),
        ("SET a 1 PX -1", invalid),
        ("SET a 1 EX 9223372036854775807", invalid),
        ("SET a 1 PX 9223372036854775807", invalid),
        ("SET a 1 EX x", NOT_INTEGER),
        ("SET a 1 EX", SYNTAX),
        ("SET a 1 EX 1 PX 1", SYNTAX),
        ("SET a 1 EX 1 KEEPTTL", SYNTAX),
        ("SET a 1 KEEPTTL EX 1", SYNTAX),
        ("SETEX a 0 x", "-ERR invalid expire time in 'setex' command"),
        ("GETEX a PERSIST EX 1", SYNTAX),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn many_strings_are_set_with_one_expiry() {
    let mut world = World::default();
    world.check(&[
        ("MSETEX 2 a 1 b 2 EX 10", ":1"),
        ("MGET a b", "[1 2]"),
        ("PTTL b", ":10000"),
        ("MSETEX 2 b 3 c 3 NX", ":0"),
        ("MSETEX 2 b 3 c 3 XX", ":0"),
        ("MSETEX 2 a 4 b 4 XX KEEPTTL", ":1"),
        ("PTTL a", ":10000"),
        ("MSETEX 1 a 5", ":1"),
        ("PTTL a", ":-1"),
        ("MSETEX 0 a 5", "-ERR numkeys should be greater than 0"),
        ("MSETEX x a 5", NOT_INTEGER),
        (
            "MSETEX 2 a 5 b",
            "-ERR wrong number of arguments for 'msetex' command",
        ),
        (
            "MSETEX 1 a 5 EX 0",
            "-ERR invalid expire time in 'msetex' command",
        ),
        ("MSETEX 1 a 5 GET", SYNTAX),
        ("MSETEX 1 a 5 IFEQ 5", SYNTAX),
        ("DEL a b", ":2"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn an_expired_string_is_not_there() {
    let mut world = World::default();
    world.check(&[("SET a 5 PX 100", "+OK"), ("APPEND a 0", ":2")]);
    world.moment.now = 99;
    world.check(&[("GET a", "50"), ("INCR a", ":51")]);
    world.moment.now = 100;
    world.check(&[
        ("GET a", "_"),
        ("GETRANGE a 0 -1", ""),
        ("SET a x XX", "_"),
        ("INCR a", ":1"),
        ("PTTL a", ":-1"),
        ("DEL a", ":1"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn counters_count() {
    let overflow = "-ERR increment or decrement would overflow";
    World::default().check(&[
        ("INCR a", ":1"),
        ("INCRBY a 41", ":42"),
        ("DECR a", ":41"),
        ("DECRBY a 50", ":-9"),
        (
            "DECRBY a -9223372036854775808",
            "-ERR decrement would overflow",
        ),
        ("INCRBY a 9223372036854775807", ":9223372036854775798"),
        ("INCRBY a 10", overflow),
        ("SET a x", "+OK"),
        ("INCR a", NOT_INTEGER),
        ("INCRBY b x", NOT_INTEGER),
        ("INCRBYFLOAT b 10.50", "10.5"),
        ("INCRBYFLOAT b 0.1", "10.6"),
        ("INCRBYFLOAT b -5", "5.6"),
        ("INCRBYFLOAT b 5.0e3", "5005.60000000000000009"),
        ("INCRBYFLOAT b x", "-ERR value is not a valid float"),
        ("INCRBYFLOAT a 1", "-ERR value is not a valid float"),
        (
            "INCRBYFLOAT b inf",
            "-ERR increment would produce NaN or Infinity",
        ),
        ("EXPIRE b 10", ":1"),
        ("INCRBYFLOAT b 1", "5006.60000000000000009"),
        ("TTL b", ":10"),
    ]);
}

#[test]
fn parts_are_read_and_written() {
    let offset = "-ERR offset is out of range";
    let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    World::default().check(&[
        ("APPEND a Hello", ":5"),
        ("APPEND a World", ":10"),
        ("GETRANGE a 0 4", "Hello"),
        ("GETRANGE a -5 -1", "World"),
        ("GETRANGE a 0 -100", "H"),
        ("GETRANGE a -1 -5", ""),
        ("GETRANGE a 10 20", ""),
        ("GETRANGE x 0 -1", ""),
        ("SUBSTR a 3 5", "loW"),
        ("SETRANGE a 5 There", ":10"),
        ("GET a", "HelloThere"),
        ("SETRANGE b 3 x", ":4"),
        ("GET b", "\0\0\0x"),
        ("SETRANGE a -1 x", offset),
        ("SETRANGE a 536870912 x", too_long),
        ("SETRANGE a x x", NOT_INTEGER),
        ("GETRANGE a 0 x", NOT_INTEGER),
        ("LCS a b", ""),
        ("MSET c ohmytext d mynewtext", "+OK"),
        ("LCS c d", "mytext"),
        ("LCS c d LEN", ":6"),
        (
            "LCS c d IDX",
            "%[len=:6 matches=[[[:4 :7] [:5 :8]] [[:2 :3] [:0 :1]]]]",
        ),
        (
            "LCS c d IDX MINMATCHLEN 4 WITHMATCHLEN",
            "%[len=:6 matches=[[[:4 :7] [:5 :8] :4]]]",
        ),
        (
            "LCS c d LEN IDX",
            "-ERR If you want both the length and indexes, please just use IDX.",
        ),
        ("LCS c d FOO", SYNTAX),
    ]);
}

#[test]
fn nothing_but_strings_is_taken_for_one() {
    let mut world = World::default();
    world.check(&[("LPUSH l x", ":1"), ("MGET l", "[_]"), ("SETNX l x", ":0")]);
    for line in [
        "GET l",
        "SET l x GET",
        "SET l x IFEQ x",
        "DELEX l IFEQ x",
        "DIGEST l",
        "GETSET l x",
        "GETDEL l",
        "GETEX l EX 0",
        "STRLEN l",
        "APPEND l x",
        "GETRANGE l 0 1",
        "SETRANGE l 0 x",
        "INCR l",
        "INCRBYFLOAT l x",
        "SETBIT l 0 1",
        "GETBIT l 0",
        "BITCOUNT l x x",
        "BITPOS l 1",
        "BITOP AND x l",
        "BITFIELD l GET u1 0",
    ] {
        assert_eq!(text(&world.run(line)), WRONG_TYPE, "{line}");
    }
    world.check(&[
        (
            "LCS l l",
            "-ERR The specified keys must contain string values",
        ),
        ("SET l x", "+OK"),
        ("TYPE l", "+string"),
    ]);
}

/// Returns what changed between two states: names and lengths of values.
fn changes(before: &MemorySpace, after: &MemorySpace) -> Vec<usize> {
    let changed = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(value));
    changed.map(|(_, value)| value.len()).collect()
}

fn words(words: &[&[u8]]) -> Vec<Bytes> {
    words
        .iter()
        .map(|word| Bytes::copy_from_slice(word))
        .collect()
}

#[test]
fn a_long_string_is_changed_in_parts() {
    let mut world = World::default();
    let long = vec![b'x'; 10_000];
    assert_eq!(world.call(words(&[b"SET", b"a", &long])), Reply::OK);
    assert_eq!(
        world.call(words(&[b"GET", b"a"])),
        Reply::bulk(long.clone())
    );
    let before = world.entries.clone();
    world.check(&[("SETRANGE a 5000 yyy", ":10000")]);
    assert_eq!(
        changes(&before, &world.entries),
        [4096],
        "one chunk and nothing else"
    );
    world.check(&[
        ("GETRANGE a 4999 5003", "xyyyx"),
        ("GETRANGE a 4094 4098", "xxxxx"),
        ("APPEND a end", ":10003"),
        ("GETRANGE a -4 -1", "xend"),
        ("EXPIRE a 100", ":1"),
        ("SETRANGE a 20000 z", ":20001"),
        ("TTL a", ":100"),
        ("GETRANGE a 10002 10004", "d\0\0"),
        ("INCR a", NOT_INTEGER),
        ("RENAME a b", "+OK"),
        ("COPY b c", ":1"),
        ("STRLEN c", ":20001"),
        ("GETRANGE c 20000 20000", "z"),
        ("SETRANGE c 0 abc", ":20001"),
        ("GETRANGE b 0 2", "xxx"),
        ("SET b short", "+OK"),
        ("DEL b c", ":2"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn a_short_string_grows_into_a_long_one() {
    let mut world = World::default();
    for len in [4095, 4096, 4097] {
        let value = vec![b'v'; len];
        world.check(&[("SET a begin", "+OK")]);
        let reply = world.call(words(&[b"SETRANGE", b"a", b"5", &value]));
        assert_eq!(reply, Reply::count(len + 5));
        let expected = [&b"begin"[..], &value].concat();
        assert_eq!(world.call(words(&[b"GET", b"a"])), Reply::bulk(expected));
    }
    let before = world.entries.len();
    world.check(&[
        ("SETRANGE b 500000000 x", ":500000001"),
        ("GETRANGE b 9 11", "\0\0\0"),
    ]);
    assert_eq!(world.entries.len(), before + 2, "its key and one chunk");
    world.check(&[("DEL a b", ":2")]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn names_that_are_too_long_are_refused() {
    let mut world = World::default();
    let long = vec![b'k'; 65_001];
    for line in [
        words(&[b"SET", &long, b"x"]),
        words(&[b"APPEND", &long, b"x"]),
        words(&[b"INCR", &long]),
        words(&[b"SETBIT", &long, b"0", b"1"]),
        words(&[b"SETRANGE", &long, b"0", b"1"]),
    ] {
        let expected = "-ERR a key, field or member of 65001 bytes is over the limit of 65000";
        assert_eq!(text(&world.call(line)), expected);
    }
    assert!(world.entries.is_empty());
}
