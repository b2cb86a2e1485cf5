//! When fields of hashes expire, line by line and against a model.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::ExpiryPlace;
use crate::Keyspace;
use crate::testing::World;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

/// At which time the tests begin.
const NOW: u64 = 1_000_000_000_000;

fn world() -> World {
    let mut world = World::default();
    world.moment.now = NOW;
    world
}

#[test]
fn fields_expire() {
    let mut world = world();
    world.check(&[
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HEXPIRE h 10 FIELDS 2 a x", "[:1 :-2]"),
        ("HPEXPIRE h 20000 FIELDS 1 b", "[:1]"),
        ("HTTL h FIELDS 4 a b c x", "[:10 :20 :-1 :-2]"),
        ("HPTTL h FIELDS 2 a b", "[:10000 :20000]"),
        ("HEXPIRETIME h FIELDS 3 a c x", "[:1000000010 :-1 :-2]"),
        ("HPEXPIRETIME h FIELDS 1 a", "[:1000000010000]"),
        ("HTTL x FIELDS 2 a b", "[:-2 :-2]"),
        ("HEXPIRE x 10 FIELDS 2 a b", "[:-2 :-2]"),
        ("HPERSIST x FIELDS 2 a b", "[:-2 :-2]"),
    ]);
    world.moment.now = NOW + 9_001;
    world.check(&[("HTTL h FIELDS 1 a", "[:1]"), ("HLEN h", ":3")]);
    world.moment.now = NOW + 10_000;
    world.check(&[
        ("HTTL h FIELDS 1 a", "[:-2]"),
        ("HLEN h", ":2"),
        ("HGETALL h", "%[b=2 c=3]"),
        ("HGET h a", "_"),
        ("HEXISTS h a", ":0"),
        ("HSTRLEN h a", ":0"),
        ("HMGET h a b", "[_ 2]"),
        ("HRANDFIELD h 5 WITHVALUES", "[b=2 c=3]"),
        ("HSCAN h 0", "[0 [b 2 c 3]]"),
        ("HPERSIST h FIELDS 1 a", "[:-2]"),
        ("HPERSIST h FIELDS 3 b b c", "[:1 :-1 :-1]"),
        ("HDEL h a", ":0"),
        ("HSETNX h a 4", ":1"),
        ("HTTL h FIELDS 2 a b", "[:-1 :-1]"),
        ("HDEL h a b c", ":3"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn a_hash_is_gone_with_its_last_field() {
    let mut world = world();
    world.check(&[
        ("HSET h a 1 b 2", ":2"),
        ("HEXPIRE h 10 FIELDS 1 a", "[:1]"),
        ("HEXPIRE h 20 FIELDS 1 b", "[:1]"),
    ]);
    world.moment.now = NOW + 20_000;
    world.check(&[
        ("HLEN h", ":0"),
        ("HGETALL h", "%[]"),
        ("HDEL h b", ":0"),
        ("SADD h x", ":1"),
        ("SREM h x", ":1"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
    world.check(&[("HSETEX h EX 1 FIELDS 1 a 1", ":1")]);
    world.moment.now += 1000;
    world.check(&[
        ("HINCRBY h a 1", ":1"),
        ("HTTL h FIELDS 1 a", "[:-1]"),
        ("HDEL h a", ":1"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn expired_fields_are_purged() {
    let mut world = world();
    let key = Bytes::from_static(b"h");
    let purge = |world: &mut World| {
        let mut keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
        keyspace.purge_fields(&key, 100).unwrap();
    };
    let fields = |world: &World| {
        let first = |entry: &&Bytes| entry.windows(3).any(|part| part == [b'e', 0, 0]);
        (
            world.left().len(),
            world.left().iter().filter(|entry| first(entry)).count(),
        )
    };
    world.check(&[
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HEXPIRE h 10 FIELDS 2 a b", "[:1 :1]"),
        ("HEXPIRE h 5 FIELDS 1 b", "[:1]"),
    ]);
    // The key, three fields, two times of the hash and the first of them.
    assert_eq!(fields(&world), (7, 1));
    world.moment.now = NOW + 5_000;
    purge(&mut world);
    assert_eq!(fields(&world), (5, 1));
    purge(&mut world);
    assert_eq!(fields(&world), (5, 1));
    world.check(&[("HLEN h", ":2")]);
    world.moment.now = NOW + 10_000;
    purge(&mut world);
    assert_eq!(fields(&world), (2, 0));
    world.check(&[("HPEXPIRE h 1 FIELDS 1 c", "[:1]")]);
    world.moment.now += 1;
    purge(&mut world);
    assert_eq!(fields(&world), (0, 0));
    world.check(&[("SADD h a", ":1")]);
    purge(&mut world);
    world.check(&[("SCARD h", ":1")]);
}

#[test]
fn fields_expire_on_conditions() {
    let mut world = world();
    world.check(&[
        ("HSET h a 1 b 2", ":2"),
        ("HEXPIRE h 10 XX FIELDS 1 a", "[:0]"),
        ("HEXPIRE h 10 GT FIELDS 1 a", "[:0]"),
        ("HEXPIRE h 10 LT FIELDS 1 a", "[:1]"),
        ("HEXPIRE h 10 NX FIELDS 2 a b", "[:0 :1]"),
        ("HEXPIRE h 10 gt FIELDS 1 a", "[:0]"),
        ("HEXPIRE h 11 GT FIELDS 1 a", "[:1]"),
        ("HEXPIRE h 11 LT FIELDS 1 a", "[:0]"),
        ("HEXPIRE h 9 LT FIELDS 1 a", "[:1]"),
        ("HEXPIRE h 8 XX FIELDS 1 a", "[:1]"),
        ("HEXPIREAT h 1000000008 FIELDS 1 a", "[:1]"),
        ("HTTL h FIELDS 2 a b", "[:8 :10]"),
        ("HPEXPIREAT h 1000000000000 FIELDS 2 a a", "[:2 :-2]"),
        ("HEXPIRE h 0 FIELDS 1 b", "[:2]"),
        ("HLEN h", ":0"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn writes_keep_or_remove_an_expiry() {
    let mut world = world();
    world.check(&[
        ("HSET h a 1 b 2", ":2"),
        ("HEXPIRE h 10 FIELDS 2 a b", "[:1 :1]"),
        ("HINCRBY h a 1", ":2"),
        ("HINCRBYFLOAT h a 0.5", "2.5"),
        ("HSETNX h a 9", ":0"),
        ("HTTL h FIELDS 2 a b", "[:10 :10]"),
        ("HSET h a 1", ":0"),
        ("HTTL h FIELDS 2 a b", "[:-1 :10]"),
        ("HGETEX h FIELDS 3 a x b", "[1 _ 2]"),
        ("HTTL h FIELDS 2 a b", "[:-1 :10]"),
        ("HGETEX h EX 5 FIELDS 2 a x", "[1 _]"),
        ("HTTL h FIELDS 1 a", "[:5]"),
        ("HGETEX h PERSIST FIELDS 2 a b", "[1 2]"),
        ("HTTL h FIELDS 2 a b", "[:-1 :-1]"),
        ("HGETEX h PXAT 0 FIELDS 1 a", "[1]"),
        ("HGETDEL h FIELDS 3 a b b", "[_ 2 _]"),
        ("HGETDEL h FIELDS 2 a b", "[_ _]"),
        ("HGETEX h EX 5 FIELDS 1 a", "[_]"),
        ("HLEN h", ":0"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn fields_are_set_with_an_expiry() {
    let mut world = world();
    world.check(&[
        ("HSETEX h FXX FIELDS 1 a 1", ":0"),
        ("HSETEX h FNX EX 10 FIELDS 2 a 1 b 2", ":1"),
        ("HSETEX h PX 1 FNX FIELDS 2 c 1 b 2", ":0"),
        ("HSETEX h FXX FIELDS 2 a 5 x 1", ":0"),
        ("HTTL h FIELDS 3 a b c", "[:10 :10 :-2]"),
        ("HSETEX h FXX KEEPTTL FIELDS 1 a 3", ":1"),
        ("HSETEX h FIELDS 1 b 4", ":1"),
        ("HTTL h FIELDS 2 a b", "[:10 :-1]"),
        ("HGETALL h", "%[a=3 b=4]"),
        ("HSETEX h EXAT 1 FIELDS 2 a 1 d 1", ":1"),
        ("HGETALL h", "%[b=4]"),
        ("HSETEX h PXAT 1 FIELDS 1 b 1", ":1"),
        ("HSETEX h PXAT 1 FIELDS 1 b 1", ":1"),
        ("HLEN h", ":0"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn arguments_of_field_expiry_are_checked() {
    let mandatory = "-ERR Mandatory argument FIELDS is missing or not at the right position";
    let mismatch = "-ERR The `numfields` parameter must match the number of arguments";
    let not_positive = "-ERR Number of fields must be a positive integer";
    let negative = "-ERR invalid expire time, must be >= 0";
    let one_expiry = "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
    let arity = "-ERR wrong number of arguments for 'hsetex' command";
    world().check(&[
        ("SADD s a", ":1"),
        ("HEXPIRE s x FIELDS 1 a", WRONG_TYPE),
        (
            "HEXPIRE h x FIELDS 1 a",
            "-ERR value is not an integer or out of range",
        ),
        ("HEXPIRE h -1 FIELDS 1 a", negative),
        (
            "HEXPIRE h 70368744178 FIELDS 1 a",
            "-ERR invalid expire time in 'hexpire' command",
        ),
        (
            "HPEXPIREAT h 70368744177664 FIELDS 1 a",
            "-ERR invalid expire time in 'hpexpireat' command",
        ),
        ("HPEXPIREAT h 70368744177663 FIELDS 1 a", "[:-2]"),
        (
            "HEXPIRE h 9223372036854775807 FIELDS 1 a",
            "-ERR invalid expire time in 'hexpire' command",
        ),
        ("HEXPIRE h 1 YY FIELDS 1 a", mandatory),
        ("HEXPIRE h 1 NX XX FIELDS 1 a", mandatory),
        (
            "HEXPIRE h 1 FIELDS 0 a",
            "-ERR Parameter `numFields` should be greater than 0",
        ),
        (
            "HEXPIRE h 1 FIELDS x a",
            "-ERR Parameter `numFields` should be greater than 0",
        ),
        ("HEXPIRE h 1 FIELDS 2 a", mismatch),
        ("HEXPIRE h 1 NX FIELDS 1", mismatch),
        ("HTTL s FIELDS 0 a", WRONG_TYPE),
        ("HTTL h FIELDS 0 a", not_positive),
        ("HPTTL h FOO 0 a", mandatory),
        ("HEXPIRETIME h FIELDS 2 a", mismatch),
        ("HPERSIST h FIELDS -1 a", not_positive),
        ("HGETDEL h FIELDS 2 a", mismatch),
        ("HGETDEL s FOO 1 a", WRONG_TYPE),
        ("HGETEX h EX -1 FIELDS 1 a", negative),
        ("HGETEX h EX 1 FIELDS", not_positive),
        ("HGETEX h EX 1 PX 1 FIELDS 1 a", mandatory),
        ("HGETEX h PERSIST FIELDS 2 a", mismatch),
        ("HSETEX s FOO FIELDS 1 a 1", "-ERR unknown argument: FOO"),
        ("HSETEX s FIELDS 1 a 1", WRONG_TYPE),
        ("HSETEX h EX 1 KEEPTTL FIELDS 1 a 1", one_expiry),
        (
            "HSETEX h FNX FXX FIELDS 1 a 1",
            "-ERR Only one of FXX or FNX arguments can be specified",
        ),
        ("HSETEX h FIELDS 0 a 1", "-ERR invalid number of fields"),
        ("HSETEX h FIELDS 1 a 1 b", arity),
        ("HSETEX h FIELDS 2 a 1", arity),
        (
            "HSETEX h FNX FNX FNX FNX",
            "-ERR Only one of FXX or FNX arguments can be specified",
        ),
        ("HSETEX h FNX KEEPTTL FIELDS 1", arity),
        ("HSETEX h FNX EX 1 EX", one_expiry),
        ("HSETEX h FNX EX 0 FIELDS 1", arity),
    ]);
}

#[test]
fn a_hash_that_is_gone_is_there_for_no_command() {
    let mut world = world();
    world.check(&[
        ("HSETEX h EX 1 FIELDS 2 a 1 b 2", ":1"),
        ("EXISTS h", ":1"),
        ("COPY h c", ":1"),
        ("RENAME c d", "+OK"),
        ("HTTL d FIELDS 2 a b", "[:1 :1]"),
        ("HPERSIST d FIELDS 1 a", "[:1]"),
    ]);
    world.moment.now += 1000;
    world.check(&[
        ("EXISTS h", ":0"),
        ("TYPE h", "+none"),
        ("TTL h", ":-2"),
        ("KEYS h", "[]"),
        ("SCAN 0", "[0 [d]]"),
        ("RANDOMKEY", "d"),
        ("RENAME h x", "-ERR no such key"),
        ("COPY h x", ":0"),
        ("PERSIST h", ":0"),
        ("DEL h", ":0"),
        ("HGETALL d", "%[a=1]"),
        ("DEL d", ":1"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn a_watch_sees_fields_expire() {
    let mut world = world();
    let expiry = |world: &mut World| {
        let keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
        keyspace.expiry_of(b"h").unwrap().flatten()
    };
    assert_eq!(expiry(&mut world), None);
    world.check(&[("HSET h a 1 b 2 c 3", ":3")]);
    assert_eq!(expiry(&mut world), None);
    world.check(&[
        ("HEXPIRE h 10 FIELDS 1 a", "[:1]"),
        ("HEXPIRE h 20 FIELDS 1 b", "[:1]"),
    ]);
    assert_eq!(expiry(&mut world), Some(NOW + 10_000));
    world.moment.now = NOW + 10_000;
    assert_eq!(expiry(&mut world), Some(NOW + 20_000));
    world.check(&[("EXPIRE h 5", ":1")]);
    assert_eq!(expiry(&mut world), Some(NOW + 15_000));
}

/// What the fields of a hash should be: values and when they expire.
#[derive(Default)]
struct Model {
    fields: BTreeMap<String, (String, Option<u64>)>,
    random: u64,
}

impl Model {
    fn below(&mut self, n: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) % n
    }

    /// Returns a command that may change the fields, which are changed with it.
    fn step(&mut self, now: u64) -> String {
        let field = format!("f{}", self.below(12));
        let value = self.below(100).to_string();
        let time = now + self.below(20);
        let before = self.fields.get(&field).cloned();
        let mut set = |value: &str, expires: Option<u64>| {
            match expires {
                Some(expires) if expires <= now => self.fields.remove(&field),
                _ => self
                    .fields
                    .insert(field.clone(), (value.to_owned(), expires)),
            };
        };
        let expiry = before.as_ref().and_then(|(_, expires)| *expires);
        match time % 7 {
            0 => {
                set(&value, None);
                format!("HSET h {field} {value}")
            }
            1 => {
                set(&value, Some(time));
                format!("HSETEX h PXAT {time} FIELDS 1 {field} {value}")
            }
            2 => {
                set(&value, expiry);
                format!("HSETEX h KEEPTTL FIELDS 1 {field} {value}")
            }
            3 => {
                if let Some((value, _)) = before {
                    set(&value, Some(time));
                }
                format!("HPEXPIREAT h {time} FIELDS 1 {field}")
            }
            4 => {
                if let Some((value, _)) = before {
                    set(&value, None);
                }
                format!("HPERSIST h FIELDS 1 {field}")
            }
            5 => {
                let before = before.map_or(0, |(value, _)| value.parse::<i64>().unwrap());
                set(&(before + 1).to_string(), expiry);
                format!("HINCRBY h {field} 1")
            }
            _ => {
                self.fields.remove(&field);
                format!("HDEL h {field}")
            }
        }
    }
}

#[test]
fn fields_are_as_in_a_model() {
    let mut world = world();
    let mut model = Model::default();
    for step in 0..5000 {
        let line = model.step(world.moment.now);
        world.run(&line);
        if step % 3 == 0 {
            world.moment.now += model.below(6);
        }
        if step % 50 == 0 {
            let mut keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
            keyspace.expire(&ExpiryPlace::default(), 2).unwrap();
        }
        let now = world.moment.now;
        let is_there = |expires: Option<u64>| expires.is_none_or(|expires| expires > now);
        model.fields.retain(|_, (_, expires)| is_there(*expires));
        let expected: Vec<String> = model
            .fields
            .iter()
            .map(|(field, (value, _))| format!("{field}={value}"))
            .collect();
        let all = format!(
            "%[{}]",
            {
                let mut all = expected;
                all.sort();
                all
            }
            .join(" ")
        );
        let len = format!(":{}", model.fields.len());
        let exists = format!(":{}", usize::from(!model.fields.is_empty()));
        world.check(&[("HGETALL h", &all), ("HLEN h", &len), ("EXISTS h", &exists)]);
    }
    world.moment.now += 1000;
    let mut keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
    assert!(
        keyspace
            .expire(&ExpiryPlace::default(), 1000)
            .unwrap()
            .is_done
    );
    let times = world.left().iter().filter(|entry| entry[2] == b'e').count();
    assert_eq!(times, 0, "{:?}", world.left());
    world.run("DEL h");
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn cleaning_removes_fields_step_by_step() {
    let mut world = world();
    for number in 0..100 {
        world.check(&[(&format!("HSETEX h PX 5 FIELDS 1 f{number} 1"), ":1")]);
    }
    world.check(&[("HSET h kept 1", ":1")]);
    world.moment.now += 5;
    let mut n_rounds = 0;
    loop {
        let mut keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
        let cleaned = keyspace.expire(&ExpiryPlace::default(), 7).unwrap();
        assert!(cleaned.n <= 7);
        world.check(&[("HLEN h", ":1")]);
        n_rounds += 1;
        if cleaned.is_done {
            break;
        }
    }
    assert_eq!(n_rounds, 100_usize.div_ceil(7));
    // The key and the field that does not expire.
    assert_eq!(world.left().len(), 2);
}

#[test]
fn only_what_changes_is_touched() {
    let mut world = world();
    for (line, is_touched) in [
        ("HSET h a 1", true),
        ("HSET h a 1", true),
        ("HSETNX h a 2", false),
        ("HSETNX h b 2", true),
        ("HGET h a", false),
        ("HDEL h x", false),
        ("HINCRBY h a 0", true),
        ("HEXPIRE h 10 FIELDS 1 x", false),
        ("HEXPIRE h 10 XX FIELDS 1 a", false),
        ("HEXPIRE h 10 FIELDS 1 a", true),
        ("HPERSIST h FIELDS 1 b", false),
        ("HPERSIST h FIELDS 1 a", true),
        ("HGETEX h FIELDS 1 a", false),
        ("HGETEX h PERSIST FIELDS 1 a", false),
        ("HGETEX h EX 1 FIELDS 1 a", true),
        ("HGETDEL h FIELDS 1 x", false),
        ("HSETEX h FNX FIELDS 1 a 1", false),
        ("HSETEX h FXX FIELDS 1 a 1", true),
        ("HGETDEL h FIELDS 2 a b", true),
        ("HGETDEL h FIELDS 2 a b", false),
    ] {
        world.run(line);
        assert_eq!(!world.touched.is_empty(), is_touched, "{line}");
    }
}
