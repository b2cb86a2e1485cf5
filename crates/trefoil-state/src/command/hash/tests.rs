//! The commands of hashes, line by line.

use proptest::collection;
use proptest::prelude::*;
use proptest::sample::select;

use crate::Reply;
use crate::testing::{World, text};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn fields_are_set_read_and_removed() {
    let mut world = World::default();
    world.check(&[
        ("HSET h a 1 b 2 a 3", ":2"),
        ("HSET h a 4 c 5", ":1"),
        ("HGET h a", "4"),
        ("HGET h x", "_"),
        ("HGET x a", "_"),
        ("HMGET h a x b", "[4 _ 2]"),
        ("HMGET x a b", "[_ _]"),
        ("HGETALL h", "%[a=4 b=2 c=5]"),
        ("HGETALL x", "%[]"),
        ("HLEN h", ":3"),
        ("HLEN x", ":0"),
        ("HEXISTS h a", ":1"),
        ("HEXISTS h x", ":0"),
        ("HEXISTS x x", ":0"),
        ("HSTRLEN h a", ":1"),
        ("HSTRLEN h x", ":0"),
        ("HSETNX h a 9", ":0"),
        ("HSETNX h d 9", ":1"),
        ("HMSET h d 8 e 7", "+OK"),
        ("HDEL h a x a", ":1"),
        ("HDEL x a", ":0"),
        ("HDEL h b c d", ":3"),
        ("HKEYS h", "[e]"),
        ("HVALS h", "[7]"),
        ("HKEYS x", "[]"),
        ("HVALS x", "[]"),
        ("HDEL h e", ":1"),
        ("HLEN h", ":0"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn arguments_are_checked() {
    World::default().check(&[
        (
            "HSET h a",
            "-ERR wrong number of arguments for 'hset' command",
        ),
        (
            "HSET h a 1 b",
            "-ERR wrong number of arguments for 'hset' command",
        ),
        (
            "HMSET h a 1 b",
            "-ERR wrong number of arguments for 'hmset' command",
        ),
        (
            "HGET h",
            "-ERR wrong number of arguments for 'hget' command",
        ),
        (
            "HINCRBY h a x",
            "-ERR value is not an integer or out of range",
        ),
        ("HLEN h", ":0"),
    ]);
    let long = "f".repeat(65_001);
    let mut world = World::default();
    world.check(&[(
        &format!("HSET h a 1 {long} 2"),
        "-ERR a key, field or member of 65001 bytes is over the limit of 65000",
    )]);
    assert!(world.left().is_empty());
}

#[test]
fn fields_count() {
    World::default().check(&[
        ("HINCRBY h a 5", ":5"),
        ("HINCRBY h a -7", ":-2"),
        ("HGET h a", "-2"),
        ("HSET h s x m 9223372036854775807", ":2"),
        ("HINCRBY h s 1", "-ERR hash value is not an integer"),
        (
            "HINCRBY h m 1",
            "-ERR increment or decrement would overflow",
        ),
        ("HGET h m", "9223372036854775807"),
        ("HINCRBYFLOAT h f 10.50", "10.5"),
        ("HINCRBYFLOAT h f 0.1", "10.6"),
        ("HINCRBYFLOAT h f -5.6", "5"),
        ("HGET h f", "5"),
        ("HINCRBYFLOAT h f 5.0e3", "5005"),
        ("HINCRBYFLOAT h s 1", "-ERR hash value is not a float"),
        ("HINCRBYFLOAT h f x", "-ERR value is not a valid float"),
        ("HINCRBYFLOAT h f nan", "-ERR value is not a valid float"),
        ("HINCRBYFLOAT h f -inf", "-ERR value is NaN or Infinity"),
        ("HSET h i inf", ":1"),
        (
            "HINCRBYFLOAT h i 1",
            "-ERR increment would produce NaN or Infinity",
        ),
    ]);
}

#[test]
fn random_fields_are_chosen() {
    let mut world = World::default();
    let out_of_range = "-ERR value is out of range";
    world.check(&[
        ("HRANDFIELD h", "_"),
        ("HRANDFIELD h 2", "[]"),
        ("HRANDFIELD h 2 WITHVALUES", "[]"),
        ("HSET h a 1", ":1"),
        ("HRANDFIELD h", "a"),
        ("HRANDFIELD h 0", "[]"),
        ("HRANDFIELD h 3", "[a]"),
        ("HRANDFIELD h -3", "[a a a]"),
        ("HRANDFIELD h -2 withvalues", "[a=1 a=1]"),
        ("HRANDFIELD h 1 FOO", "-ERR syntax error"),
        ("HRANDFIELD h 1 WITHVALUES FOO", "-ERR syntax error"),
        (
            "HRANDFIELD h x FOO",
            "-ERR value is not an integer or out of range",
        ),
        ("HRANDFIELD h 9223372036854775807 WITHVALUES", out_of_range),
        ("HRANDFIELD h 9223372036854775807", "[a]"),
        ("HSET h b 2", ":1"),
        ("HEXPIRE h 1 FIELDS 1 b", "[:1]"),
    ]);
    world.moment.now += 1000;
    world.check(&[
        ("HRANDFIELD h", "a"),
        ("HRANDFIELD h 2", "[a]"),
        ("HRANDFIELD h -3", "[a a a]"),
    ]);
}

#[test]
fn hashes_are_walked_over() {
    let mut world = World::default();
    world.check(&[("HSCAN h 0 FOO", "[0 []]")]);
    for number in 0..100 {
        world.check(&[(&format!("HSET h f{number} {number}"), ":1")]);
    }
    let mut cursor = "0".to_owned();
    let mut n_found = 0;
    loop {
        let Reply::Array(reply) = world.run(&format!("HSCAN h {cursor} COUNT 7 NOVALUES")) else {
            panic!("not an array");
        };
        let Reply::Array(found) = &reply[1] else {
            panic!("not an array");
        };
        cursor = text(&reply[0]);
        n_found += found.len();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(n_found, 100);
    world.check(&[
        ("HSCAN h 0 MATCH f99 COUNT 1000", "[0 [f99 99]]"),
        ("HSCAN h 0 MATCH f99 COUNT 1000 NOVALUES", "[0 [f99]]"),
        ("HSCAN h x", "-ERR invalid cursor"),
        ("HSCAN h 0 TYPE hash", "-ERR syntax error"),
        ("SADD s a", ":1"),
        ("HSCAN s 0 FOO", WRONG_TYPE),
    ]);
}

#[test]
fn other_types_are_refused() {
    let mut world = World::default();
    world.check(&[("SADD s a", ":1")]);
    let lines = [
        "HSET s a 1",
        "HSETNX s a 1",
        "HMSET s a 1",
        "HGET s a",
        "HMGET s a",
        "HGETALL s",
        "HDEL s a",
        "HLEN s",
        "HEXISTS s a",
        "HKEYS s",
        "HVALS s",
        "HSTRLEN s a",
        "HINCRBY s a 1",
        "HINCRBYFLOAT s a 1",
        "HRANDFIELD s",
    ];
    for line in lines {
        world.check(&[(line, WRONG_TYPE)]);
    }
}

/// Commands on the hash `h`, whose fields are few and short.
fn line() -> impl Strategy<Value = String> {
    let templates = [
        "HSET h F V",
        "HSET h F V F V F V",
        "HSETNX h F V",
        "HINCRBY h F 1",
        "HINCRBYFLOAT h F 0.5",
        "HDEL h F",
        "HDEL h F F F",
        "HGETDEL h FIELDS 1 F",
        "HGET h F",
        "HMGET h F F",
        "HGETALL h",
        "HLEN h",
        "HEXISTS h F",
        "HSTRLEN h F",
        "HKEYS h",
        "HVALS h",
        "HSCAN h 0 COUNT 2",
        "HSCAN h 2000000000 COUNT 2",
        "HRANDFIELD h 100",
        "HPEXPIRE h 5 FIELDS 1 F",
        "HPTTL h FIELDS 1 F",
        "HPERSIST h FIELDS 1 F",
        "HSETEX h PX 5 FIELDS 1 F V",
        "PEXPIRE h 5",
        "PTTL h",
        "PERSIST h",
        "COPY h c REPLACE",
        "RENAME h r",
        "RENAME r h",
        "HGETALL c",
        "TYPE h",
        "OBJECT ENCODING h",
        "DEL h",
        "EXISTS h",
        "GET h",
        "SADD h F",
        "DBSIZE",
    ];
    let field = "[a-f]{1,2}";
    let value = prop_oneof![4 => "[0-9]{1,3}", 1 => "x{60,70}"];
    (
        select(templates.to_vec()),
        collection::vec(field, 3),
        collection::vec(value, 3),
    )
        .prop_map(|(template, fields, values)| {
            let (mut fields, mut values) = (fields.into_iter(), values.into_iter());
            let word = |word: &str| match word {
                "F" => fields.next().unwrap(),
                "V" => values.next().unwrap(),
                word => word.to_owned(),
            };
            let words: Vec<String> = template.split(' ').map(word).collect();
            words.join(" ")
        })
}

proptest! {
    /// A hash whose fields have entries of their own, although it is small, answers as one whose
    /// fields are in the entry of its key.
    #[test]
    fn nobody_can_tell_a_small_hash_from_a_large_one(
        lines in collection::vec((line(), 0..3_u64), 1..60)
    ) {
        let (mut small, mut large) = (World::default(), World::default());
        small.run("HSET h a 1");
        large.run(&format!("HSET h a 1 long {}", "x".repeat(600)));
        large.run("HDEL h long");
        prop_assert!(large.entries.len() > small.entries.len());
        for (line, elapsed) in lines {
            for world in [&mut small, &mut large] {
                world.moment.now += elapsed;
            }
            prop_assert_eq!(text(&small.run(&line)), text(&large.run(&line)), "{}", line);
            prop_assert_eq!(&small.touched, &large.touched, "{}", line);
        }
        for world in [&mut small, &mut large] {
            world.moment.now += 1000;
            world.clean();
            for key in ["h", "c", "r"] {
                world.run(&format!("DEL {key}"));
            }
            prop_assert!(world.left().is_empty(), "{:?}", world.left());
        }
    }
}
