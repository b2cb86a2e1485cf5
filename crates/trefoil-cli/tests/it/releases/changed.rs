//! What an earlier release wrote is changed: lists and sorted sets, at their ends and in the middle,
//! compared with the same in memory.

use crate::harness::{Resp, Value};

/// The members of a sorted set with their scores.
type Members = Vec<(Value, f64)>;

/// What lists and sorted sets are after the changes.
pub(super) struct ChangedKeys {
    lists: Vec<(Vec<u8>, Vec<Value>)>,
    sorted_sets: Vec<(Vec<u8>, Members)>,
}

/// Changes all lists and sorted sets, many times each.
pub(super) fn change(redis: &mut Resp) -> ChangedKeys {
    let mut changed = ChangedKeys {
        lists: Vec::new(),
        sorted_sets: Vec::new(),
    };
    let keys = redis.line("KEYS *");
    for key in keys.elements().unwrap() {
        let key = key.bytes();
        match redis.call(&[b"TYPE", key]).bytes() {
            b"list" => changed.lists.push((key.to_vec(), change_list(redis, key))),
            b"zset" => {
                let members = change_sorted_set(redis, key);
                changed.sorted_sets.push((key.to_vec(), members));
            }
            _ => {}
        }
    }
    changed
}

impl ChangedKeys {
    /// Compares what is read with what was written.
    pub(super) fn check(&self, redis: &mut Resp) {
        for (key, elements) in &self.lists {
            assert_eq!(list(redis, key), *elements, "{}", key.escape_ascii());
        }
        for (key, members) in &self.sorted_sets {
            assert_eq!(sorted_set(redis, key), *members, "{}", key.escape_ascii());
        }
    }
}

fn list(redis: &mut Resp, key: &[u8]) -> Vec<Value> {
    let elements = redis.call(&[b"LRANGE", key, b"0", b"-1"]);
    elements.elements().unwrap().to_vec()
}

/// Sends a command and the key it is about.
fn send(redis: &mut Resp, command: &str, key: &[u8], rest: &[&[u8]]) -> Value {
    redis.call(&[&[command.as_bytes(), key], rest].concat())
}

/// Pushes, inserts, replaces and removes, most of it in the middle.
fn change_list(redis: &mut Resp, key: &[u8]) -> Vec<Value> {
    let mut expected = list(redis, key);
    for round in 0..12 {
        let element = format!("changed {round}");
        let element = element.as_bytes();
        let pivot = expected[expected.len() * round / 12].clone();
        let at = expected.iter().position(|other| *other == pivot).unwrap();
        let len = send(redis, "LINSERT", key, &[b"AFTER", pivot.bytes(), element]);
        expected.insert(at + 1, Value::bulk(element));
        assert_eq!(len, Value::Integer(expected.len() as i64));
        let index = expected.len() * round / 13;
        send(redis, "LSET", key, &[index.to_string().as_bytes(), b"set"]);
        expected[index] = Value::bulk("set");
        send(redis, "LPUSH", key, &[b"first", element]);
        expected.insert(0, Value::bulk("first"));
        expected.insert(0, Value::bulk(element));
        send(redis, "RPUSH", key, &[element]);
        expected.push(Value::bulk(element));
        let removed = expected[expected.len() / 3].clone();
        send(redis, "LREM", key, &[b"1", removed.bytes()]);
        let at = expected.iter().position(|other| *other == removed);
        expected.remove(at.unwrap());
        assert_eq!(send(redis, "RPOP", key, &[]), expected.pop().unwrap());
        for index in [0, expected.len() / 2, expected.len() - 1] {
            let found = send(redis, "LINDEX", key, &[index.to_string().as_bytes()]);
            assert_eq!(found, expected[index]);
        }
    }
    assert_eq!(list(redis, key), expected, "{}", key.escape_ascii());
    expected
}

fn sorted_set(redis: &mut Resp, key: &[u8]) -> Members {
    let members = send(redis, "ZRANGE", key, &[b"0", b"-1", b"WITHSCORES"]);
    let members = members.elements().unwrap().chunks(2);
    let number = |score: &Value| std::str::from_utf8(score.bytes()).unwrap().parse();
    members
        .map(|pair| (pair[0].clone(), number(&pair[1]).unwrap()))
        .collect()
}

/// Adds, moves and removes members, and asks for their ranks.
fn change_sorted_set(redis: &mut Resp, key: &[u8]) -> Members {
    let mut expected = sorted_set(redis, key);
    for round in 0..12 {
        let member = format!("changed {round}");
        let score = expected[expected.len() * round / 12].1;
        send(
            redis,
            "ZADD",
            key,
            &[score.to_string().as_bytes(), member.as_bytes()],
        );
        expected.push((Value::bulk(&member), score));
        let (moved, _) = expected.remove(expected.len() / 3);
        send(redis, "ZADD", key, &[b"-7.25", moved.bytes()]);
        expected.push((moved, -7.25));
        let (removed, _) = expected.remove(expected.len() / 2);
        send(redis, "ZREM", key, &[removed.bytes()]);
        expected.sort_by(|(a, a_score), (b, b_score)| {
            a_score.total_cmp(b_score).then_with(|| a.cmp(b))
        });
        for rank in [0, expected.len() / 2, expected.len() - 1] {
            let found = send(redis, "ZRANK", key, &[expected[rank].0.bytes()]);
            assert_eq!(found, Value::Integer(rank as i64));
        }
        let score = expected[expected.len() / 2].1;
        let n_below = expected.iter().filter(|(_, other)| *other < score).count();
        let bound = format!("({score}");
        let found = send(redis, "ZCOUNT", key, &[b"-inf", bound.as_bytes()]);
        assert_eq!(found, Value::Integer(n_below as i64));
    }
    let found = sorted_set(redis, key);
    assert_eq!(found, expected, "{}", key.escape_ascii());
    expected
}
