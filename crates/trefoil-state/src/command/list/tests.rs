//! The commands of lists, line by line.

use std::collections::VecDeque;

use crate::testing::{World, text};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const NOT_POSITIVE: &str = "-ERR value is out of range, must be positive";
const SYNTAX: &str = "-ERR syntax error";

#[test]
fn both_ends_are_pushed_and_popped() {
    let mut world = World::default();
    world.check(&[
        ("LPUSHX l a", ":0"),
        ("RPUSHX l a", ":0"),
        ("RPUSH l a b", ":2"),
        ("LPUSH l c d", ":4"),
        ("LPUSHX l e", ":5"),
        ("RPUSHX l f g", ":7"),
        ("LRANGE l 0 -1", "[e d c a b f g]"),
        ("LLEN l", ":7"),
        ("LPOP l", "e"),
        ("RPOP l", "g"),
        ("LPOP l 2", "[d c]"),
        ("RPOP l 2", "[f b]"),
        ("LPOP l 0", "[]"),
        ("LPOP l x", NOT_POSITIVE),
        ("RPOP l -1", NOT_POSITIVE),
        (
            "RPOP l 1 2",
            "-ERR wrong number of arguments for 'rpop' command",
        ),
        ("RPOP l 9", "[a]"),
        ("LPOP l", "_"),
        ("LPOP l 1", "*-1"),
        ("LLEN l", ":0"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn elements_are_read_by_index_and_by_value() {
    World::default().check(&[
        ("RPUSH l a b c a b a", ":6"),
        ("LINDEX l 0", "a"),
        ("LINDEX l -1", "a"),
        ("LINDEX l -6", "a"),
        ("LINDEX l 6", "_"),
        ("LINDEX l -7", "_"),
        ("LINDEX l x", NOT_INTEGER),
        ("LINDEX x x", "_"),
        ("LRANGE l 1 2", "[b c]"),
        ("LRANGE l -2 100", "[b a]"),
        ("LRANGE l 3 2", "[]"),
        ("LRANGE x 0 -1", "[]"),
        ("LRANGE x 0 y", NOT_INTEGER),
        ("LPOS l a", ":0"),
        ("LPOS l a RANK 2", ":3"),
        ("LPOS l a RANK -1", ":5"),
        ("LPOS l a COUNT 0", "[:0 :3 :5]"),
        ("LPOS l a COUNT 2 RANK -1", "[:5 :3]"),
        ("LPOS l a COUNT 0 MAXLEN 4", "[:0 :3]"),
        ("LPOS l a RANK 4", "_"),
        ("LPOS l z COUNT 1", "[]"),
        ("LPOS x a", "_"),
        ("LPOS x a COUNT 1", "[]"),
        ("LPOS l a COUNT -1", "-ERR COUNT can't be negative"),
        ("LPOS l a MAXLEN x", "-ERR MAXLEN can't be negative"),
        ("LPOS l a RANK", SYNTAX),
        (
            "LPOS l a RANK 0",
            "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
             or use negative to start from the end of the list",
        ),
    ]);
}

#[test]
fn the_middle_is_changed() {
    let mut world = World::default();
    world.check(&[
        ("RPUSH l a b c d e", ":5"),
        ("LSET l 1 B", "+OK"),
        ("LSET l -1 E", "+OK"),
        ("LSET l 5 x", "-ERR index out of range"),
        ("LSET x 0 x", "-ERR no such key"),
        ("LINSERT l BEFORE a 1", ":6"),
        ("LINSERT l AFTER E 2", ":7"),
        ("LINSERT l after B 3", ":8"),
        ("LINSERT l BEFORE d 4", ":9"),
        ("LINSERT l BEFORE nothing 4", ":-1"),
        ("LINSERT x BEFORE a 4", ":0"),
        ("LINSERT l BEHIND a 4", SYNTAX),
        ("LRANGE l 0 -1", "[1 a B 3 c 4 d E 2]"),
        ("LREM l 1 a", ":1"),
        ("LREM l 0 E", ":1"),
        ("LREM l 0 nothing", ":0"),
        ("LREM x 0 a", ":0"),
        ("LREM l x a", NOT_INTEGER),
        ("LRANGE l 0 -1", "[1 B 3 c 4 d 2]"),
        ("LTRIM l 1 -2", "+OK"),
        ("LRANGE l 0 -1", "[B 3 c 4 d]"),
        ("LTRIM l 3 1", "+OK"),
        ("LTRIM l 3 1", "+OK"),
        ("LLEN l", ":0"),
        ("RPUSH l a b a", ":3"),
        ("LREM l -1 a", ":1"),
        ("LRANGE l 0 -1", "[a b]"),
        ("LREM l 0 a", ":1"),
        ("LREM l 0 b", ":1"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn elements_move_from_list_to_list() {
    let mut world = World::default();
    world.check(&[
        ("RPUSH l a b c", ":3"),
        ("LMOVE l m LEFT RIGHT", "a"),
        ("LMOVE l m right left", "c"),
        ("LRANGE m 0 -1", "[c a]"),
        ("RPOPLPUSH l m", "b"),
        ("RPOPLPUSH l m", "_"),
        ("LMOVE m m LEFT RIGHT", "b"),
        ("LRANGE m 0 -1", "[c a b]"),
        ("LMOVE m m LEFT LEFT", "c"),
        ("LMOVE m m LEFT UP", SYNTAX),
        ("RPUSH one 1", ":1"),
        ("RPOPLPUSH one one", "1"),
        ("LRANGE one 0 -1", "[1]"),
        ("LMPOP 2 none m LEFT", "[m [c]]"),
        ("LMPOP 2 none m RIGHT COUNT 5", "[m [b a]]"),
        ("LMPOP 2 none m RIGHT", "*-1"),
        ("LMPOP 0 m RIGHT", "-ERR numkeys should be greater than 0"),
        (
            "LMPOP 1 m RIGHT COUNT 0",
            "-ERR count should be greater than 0",
        ),
        ("LMPOP 1 m RIGHT COUNT 1 COUNT 1", SYNTAX),
        ("LMPOP 2 m RIGHT", SYNTAX),
        ("LPOP one", "1"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn other_types_are_refused() {
    let mut world = World::default();
    world.check(&[("ZADD z 1 a", ":1"), ("RPUSH l a", ":1")]);
    for line in [
        "LPUSH z a",
        "RPUSHX z a",
        "LPOP z",
        "RPOP z 0",
        "LLEN z",
        "LINDEX z x",
        "LRANGE z 0 1",
        "LPOS z a",
        "LSET z 0 a",
        "LINSERT z BEFORE a b",
        "LREM z 0 a",
        "LTRIM z 0 1",
        "LMOVE z l LEFT LEFT",
        "LMOVE l z LEFT LEFT",
        "LMPOP 1 z LEFT",
        "ZADD l 1 a",
        "ZRANGE l 0 -1",
    ] {
        world.check(&[(line, WRONG_TYPE)]);
    }
    world.check(&[("LMOVE none z LEFT LEFT", "_"), ("LRANGE l 0 -1", "[a]")]);
}

/// Random changes of a list, compared with the same in memory, and that nothing is left behind.
#[test]
fn a_list_is_like_one_in_memory() {
    let mut world = World::default();
    let mut expected: VecDeque<u64> = VecDeque::new();
    let mut state = 7_u64;
    let mut random = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    for _ in 0..3000 {
        let value = random(8);
        match random(6) {
            0 | 1 => {
                world.run(&format!("LPUSH l {value}"));
                expected.push_front(value);
            }
            2 => {
                world.run(&format!("RPUSH l {value}"));
                expected.push_back(value);
            }
            3 if random(4) == 0 => {
                world.run(&format!("LREM l 0 {value}"));
                expected.retain(|other| *other != value);
            }
            4 => {
                world.run(&format!("LINSERT l BEFORE {value} 9"));
                if let Some(index) = expected.iter().position(|other| *other == value) {
                    expected.insert(index, 9);
                }
            }
            _ => {
                world.run("LPOP l");
                expected.pop_front();
            }
        }
        let texts: Vec<String> = expected.iter().map(u64::to_string).collect();
        assert_eq!(
            text(&world.run("LRANGE l 0 -1")),
            format!("[{}]", texts.join(" "))
        );
        // The key and a block.
        let n_entries = if expected.is_empty() { 0 } else { 2 };
        assert_eq!(world.left().len(), n_entries);
    }
}
