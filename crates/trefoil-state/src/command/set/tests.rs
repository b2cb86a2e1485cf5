//! The commands of sets, line by line.

use std::collections::BTreeSet;

use crate::Reply;
use crate::testing::{World, text};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn members_are_added_found_and_removed() {
    let mut world = World::default();
    world.check(&[
        ("SADD s a b a", ":2"),
        ("SADD s b c", ":1"),
        ("SADD s a", ":0"),
        ("SCARD s", ":3"),
        ("SCARD x", ":0"),
        ("SMEMBERS s", "~[a b c]"),
        ("SMEMBERS x", "~[]"),
        ("SISMEMBER s a", ":1"),
        ("SISMEMBER s x", ":0"),
        ("SISMEMBER x a", ":0"),
        ("SMISMEMBER s a x c", "[:1 :0 :1]"),
        ("SMISMEMBER x a b", "[:0 :0]"),
        ("SREM s a x a", ":1"),
        ("SREM x a", ":0"),
        ("SREM s b c", ":2"),
        ("SCARD s", ":0"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn members_move() {
    let mut world = World::default();
    world.check(&[
        ("SADD s a b", ":2"),
        ("HSET h a 1", ":1"),
        ("SMOVE s d a", ":1"),
        ("SMOVE s d x", ":0"),
        ("SMOVE x h a", ":0"),
        ("SMOVE s h a", WRONG_TYPE),
        ("SMOVE s h x", WRONG_TYPE),
        ("SMOVE h s a", WRONG_TYPE),
        ("SMOVE s s b", ":1"),
        ("SMOVE s s x", ":0"),
        ("SADD d b", ":1"),
        ("SMOVE s d b", ":1"),
        ("SCARD s", ":0"),
        ("SMEMBERS d", "~[a b]"),
        ("SMOVE d s a", ":1"),
        ("SMOVE d s b", ":1"),
        ("SMEMBERS s", "~[a b]"),
        ("SREM s a b", ":2"),
        ("HDEL h a", ":1"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn sets_are_combined() {
    let mut world = World::default();
    world.check(&[
        ("SADD a 1 2 3 4", ":4"),
        ("SADD b 3 4 5", ":3"),
        ("SADD c 4 6", ":2"),
        ("HSET h f v", ":1"),
        ("SINTER a", "~[1 2 3 4]"),
        ("SINTER a b", "~[3 4]"),
        ("SINTER a b c", "~[4]"),
        ("SINTER a x", "~[]"),
        ("SINTER x h", WRONG_TYPE),
        ("SUNION a b c x", "~[1 2 3 4 5 6]"),
        ("SUNION x", "~[]"),
        ("SUNION x h", WRONG_TYPE),
        ("SDIFF a b", "~[1 2]"),
        ("SDIFF a b c", "~[1 2]"),
        ("SDIFF a a", "~[]"),
        ("SDIFF x a", "~[]"),
        ("SDIFF a x", "~[1 2 3 4]"),
        ("SDIFF x h", WRONG_TYPE),
        ("SINTERSTORE h a b", ":2"),
        ("SMEMBERS h", "~[3 4]"),
        ("SUNIONSTORE a a b", ":5"),
        ("SMEMBERS a", "~[1 2 3 4 5]"),
        ("SDIFFSTORE a a b", ":2"),
        ("SMEMBERS a", "~[1 2]"),
        ("SINTERSTORE a a x", ":0"),
        ("SCARD a", ":0"),
        ("SDIFFSTORE b x", ":0"),
        ("SUNIONSTORE c x", ":0"),
        ("SINTERSTORE h x h", ":0"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn an_intersection_is_counted() {
    let negative = "-ERR LIMIT can't be negative";
    let no_keys = "-ERR numkeys should be greater than 0";
    World::default().check(&[
        ("SADD a 1 2 3 4", ":4"),
        ("SADD b 2 3 4 5", ":4"),
        ("HSET h f v", ":1"),
        ("SINTERCARD 2 a b", ":3"),
        ("SINTERCARD 2 a x", ":0"),
        ("SINTERCARD 1 a LIMIT 2", ":2"),
        ("SINTERCARD 1 a LIMIT 0", ":4"),
        ("SINTERCARD 1 a limit 1 LIMIT 3", ":3"),
        ("SINTERCARD 2 a b LIMIT 9", ":3"),
        ("SINTERCARD 0 a", no_keys),
        ("SINTERCARD -1 a", no_keys),
        ("SINTERCARD x a", no_keys),
        (
            "SINTERCARD 2 a",
            "-ERR Number of keys can't be greater than number of args",
        ),
        ("SINTERCARD 1 a b", "-ERR syntax error"),
        ("SINTERCARD 1 a LIMIT", "-ERR syntax error"),
        ("SINTERCARD 1 a LIMIT -1", negative),
        ("SINTERCARD 1 h LIMIT x", negative),
        ("SINTERCARD 1 h", WRONG_TYPE),
    ]);
}

fn members(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Array(replies) | Reply::Set(replies) => replies.iter().map(text).collect(),
        _ => panic!("{reply:?}"),
    }
}

/// Returns a set of the numbers from 0 on.
fn numbers(n: usize) -> World {
    let mut world = World::default();
    let numbers: Vec<String> = (0..n).map(|number| number.to_string()).collect();
    assert_eq!(
        world.run(&format!("SADD s {}", numbers.join(" "))),
        Reply::count(n)
    );
    world
}

#[test]
fn random_members_are_different_unless_they_may_repeat() {
    for len in [1, 2, 10, 128, 129, 1000] {
        let mut world = numbers(len);
        for count in [1, 2, 9, 100, 500, 2000] {
            let found = members(&world.run(&format!("SRANDMEMBER s {count}")));
            let distinct: BTreeSet<_> = found.iter().collect();
            assert_eq!(
                (found.len(), distinct.len()),
                (count.min(len), count.min(len))
            );
            let found = members(&world.run(&format!("SRANDMEMBER s -{count}")));
            assert_eq!(found.len(), count);
            assert!(
                found
                    .iter()
                    .all(|member| member.parse::<usize>().unwrap() < len)
            );
        }
    }
}

#[test]
fn random_members_are_about_even() {
    for len in [10, 1000] {
        let mut world = numbers(len);
        let mut counts = vec![0; len];
        for _ in 0..100 {
            for member in members(&world.run(&format!("SRANDMEMBER s -{len}"))) {
                counts[member.parse::<usize>().unwrap()] += 1;
            }
            for _ in 0..10 {
                counts[text(&world.run("SRANDMEMBER s")).parse::<usize>().unwrap()] += 1;
            }
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!((40..=250).contains(least) && *most <= 250, "{least} {most}");
    }
}

#[test]
fn members_are_popped() {
    for len in [1, 10, 129, 600] {
        let mut world = numbers(len);
        let mut popped = vec![text(&world.run("SPOP s"))];
        popped.extend(members(&world.run("SPOP s 3")));
        popped.extend(members(&world.run("SPOP s 100")));
        assert_eq!(world.run("SCARD s"), Reply::count(len - popped.len()));
        popped.extend(members(&world.run("SPOP s 100000")));
        let distinct: BTreeSet<_> = popped.iter().collect();
        assert_eq!((popped.len(), distinct.len()), (len, len));
        world.check(&[("SPOP s", "_"), ("SPOP s 2", "~[]")]);
        assert!(world.left().is_empty());
    }
}

#[test]
fn counts_are_checked() {
    let not_positive = "-ERR value is out of range, must be positive";
    World::default().check(&[
        ("SADD s a", ":1"),
        ("HSET h f v", ":1"),
        ("SRANDMEMBER x", "_"),
        ("SRANDMEMBER x 3", "[]"),
        ("SRANDMEMBER x -9999999", "[]"),
        ("SRANDMEMBER h", WRONG_TYPE),
        (
            "SRANDMEMBER h x",
            "-ERR value is not an integer or out of range",
        ),
        ("SRANDMEMBER s 1 2", "-ERR syntax error"),
        (
            "SRANDMEMBER s -9223372036854775808",
            "-ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        ),
        (
            "SRANDMEMBER s -1000001",
            "-ERR value is out of range, at most 1000000 elements that may repeat",
        ),
        ("SPOP h -1", not_positive),
        ("SPOP h x", not_positive),
        ("SPOP h 0", WRONG_TYPE),
        ("SPOP h 1 2", "-ERR syntax error"),
        ("SPOP s 0", "~[]"),
    ]);
}

#[test]
fn sets_are_walked_over() {
    let mut world = numbers(500);
    let mut cursor = "0".to_owned();
    let mut found = Vec::new();
    loop {
        let Reply::Array(reply) = world.run(&format!("SSCAN s {cursor} COUNT 7")) else {
            panic!("not an array");
        };
        cursor = text(&reply[0]);
        found.extend(members(&reply[1]));
        if cursor == "0" {
            break;
        }
    }
    let distinct: BTreeSet<_> = found.iter().collect();
    assert_eq!((found.len(), distinct.len()), (500, 500));
    world.check(&[
        ("HSET h f v", ":1"),
        ("SSCAN s 0 MATCH 49[9] COUNT 1000", "[0 [499]]"),
        ("SSCAN x 0", "[0 []]"),
        ("SSCAN x 0 FOO", "[0 []]"),
        ("SSCAN h 0 FOO", WRONG_TYPE),
        ("SSCAN h x", "-ERR invalid cursor"),
        ("SSCAN s 0 FOO", "-ERR syntax error"),
        ("SSCAN s 0 NOVALUES", "-ERR syntax error"),
        ("SSCAN s 0 COUNT 0", "-ERR syntax error"),
        ("SSCAN s 0 COUNT -1", "-ERR syntax error"),
        (
            "SSCAN s 0 COUNT x",
            "-ERR value is not an integer or out of range",
        ),
    ]);
}

#[test]
fn other_types_are_refused() {
    let mut world = World::default();
    world.check(&[("HSET h f v", ":1")]);
    for line in [
        "SADD h a",
        "SREM h a",
        "SCARD h",
        "SMEMBERS h",
        "SISMEMBER h a",
        "SMISMEMBER h a",
    ] {
        world.check(&[(line, WRONG_TYPE)]);
    }
}

#[test]
fn only_what_changes_is_touched() {
    let mut world = World::default();
    for (line, touched) in [
        ("SADD s a b", vec!["s"]),
        ("SADD s a", vec![]),
        ("SREM s x", vec![]),
        ("SREM s b", vec!["s"]),
        ("SMOVE s d x", vec![]),
        ("SMOVE s s a", vec![]),
        ("SMOVE s d a", vec!["s", "d"]),
        ("SRANDMEMBER d", vec![]),
        ("SPOP d 0", vec![]),
        ("SPOP x", vec![]),
        ("SINTERSTORE x s d", vec![]),
        ("SUNIONSTORE x s d", vec!["x"]),
        ("SPOP d", vec!["d"]),
        ("SDIFFSTORE x d", vec!["x"]),
    ] {
        world.run(line);
        assert_eq!(world.touched, touched, "{line}");
    }
}
