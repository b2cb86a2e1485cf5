//! Values that have many entries, written in rounds: what the first round writes is in a snapshot,
//! what the last one changes is only in the log.

use super::contents::FAR;
use crate::harness::{Resp, Value};

/// How many elements a large collection gets in each round.
const ELEMENTS: usize = 700;

/// Writes a round.
pub(super) fn write(redis: &mut Resp, round: usize) {
    strings(redis, round);
    named(redis, round);
    sorted_sets(redis, round);
    lists(redis, round);
}

/// Sends a command that must succeed.
fn send(redis: &mut Resp, words: &[&str]) {
    let reply = redis.call(words);
    let shown = &words[..words.len().min(4)];
    assert!(!matches!(reply, Value::Error(_)), "{shown:?}: {reply:?}");
}

/// Sends a command with many words at once.
fn send_all(redis: &mut Resp, head: &[&str], rest: &[String]) {
    let rest = rest.iter().map(String::as_str);
    let words: Vec<&str> = head.iter().copied().chain(rest).collect();
    send(redis, &words);
}

/// Strings that grow and bitmaps with gaps, above and below the size of a chunk.
fn strings(redis: &mut Resp, round: usize) {
    let part = "0123456789".repeat(300);
    for n in 0..3 {
        send(redis, &["APPEND", "grown", &part]);
        send(redis, &["APPEND", "small-grown", &n.to_string()]);
    }
    for n in 0..40 {
        let bit = (n * 7_919 + round * 311) % 160_000;
        send(redis, &["SETBIT", "sparse", &bit.to_string(), "1"]);
        let seat = format!("#{}", (n * 613 + round * 17) % 50_000);
        send(redis, &["BITFIELD", "seat-map", "SET", "u2", &seat, "2"]);
    }
    let begin = (round * 5_000).to_string();
    send(redis, &["SETRANGE", "ranged", &begin, "over the edge"]);
    let key = format!("expires-{round}");
    send(redis, &["SET", &key, "far", "PXAT", FAR]);
}

/// A hash of which some fields expire, and a set.
fn named(redis: &mut Resp, round: usize) {
    let numbers = || (0..ELEMENTS / 4).map(|n| n * (round + 1));
    let fields = numbers().flat_map(|n| [format!("field-{n}"), format!("value {round} {n}")]);
    send_all(redis, &["HSET", "large-hash"], &fields.collect::<Vec<_>>());
    let some: Vec<String> = (0..10)
        .map(|n| format!("field-{}", 3 * n + round))
        .collect();
    let expire = ["HPEXPIREAT", "large-hash", FAR, "FIELDS", "10"];
    send_all(redis, &expire, &some);
    send_all(redis, &["HDEL", "large-hash"], &["field-0".to_owned()]);
    let members: Vec<String> = numbers().map(|n| format!("member-{n}")).collect();
    send_all(redis, &["SADD", "large-set"], &members);
    send_all(redis, &["SREM", "large-set"], &members[5..9]);
}

/// Sorted sets with scores of every kind, with one score for all, and with scores that grow.
fn sorted_sets(redis: &mut Resp, round: usize) {
    let numbers = || 0..ELEMENTS;
    let scattered = numbers().flat_map(|n| {
        let score = (n * 7_919 % 1_009) as f64 / 8.0 - 60.0;
        [score.to_string(), format!("scattered-{}", n + round * 500)]
    });
    let scattered: Vec<String> = scattered.collect();
    send_all(redis, &["ZADD", "zset-scattered"], &scattered);
    let ends = [
        "ZADD",
        "zset-scattered",
        "-inf",
        "low",
        "inf",
        "high",
        "-0",
        "none",
    ];
    send(redis, &ends);
    let same = numbers().flat_map(|n| ["5".to_owned(), format!("name-{}", n * (round + 1))]);
    send_all(redis, &["ZADD", "zset-same"], &same.collect::<Vec<_>>());
    let growing = numbers().map(|n| 1_700_000_000_000 + (round * ELEMENTS + n) * 1_000);
    let growing = growing.flat_map(|time| [time.to_string(), format!("at {time}")]);
    send_all(
        redis,
        &["ZADD", "zset-growing"],
        &growing.collect::<Vec<_>>(),
    );
    for key in ["zset-scattered", "zset-same", "zset-growing"] {
        send(redis, &["ZREMRANGEBYRANK", key, "100", "110"]);
    }
}

/// Lists that grow at both ends and in the middle, some elements longer than a chunk.
fn lists(redis: &mut Resp, round: usize) {
    let right: Vec<String> = (0..ELEMENTS)
        .map(|n| format!("right {round} {n}"))
        .collect();
    let left: Vec<String> = (0..ELEMENTS / 2)
        .map(|n| format!("left {round} {n}"))
        .collect();
    send_all(redis, &["RPUSH", "list-both"], &right);
    send_all(redis, &["LPUSH", "list-both"], &left);
    send_all(redis, &["RPUSH", "list-right"], &right);
    send_all(redis, &["LPUSH", "list-left"], &left);
    let pivot = format!("right {round} 300");
    send(
        redis,
        &["LINSERT", "list-both", "BEFORE", &pivot, "inserted"],
    );
    send(
        redis,
        &["LREM", "list-both", "1", &format!("left {round} 20")],
    );
    send(redis, &["LPOP", "list-left", "7"]);
    let long = format!("long {round} ").repeat(900);
    send(redis, &["RPUSH", "list-long", &long, "short", &long]);
    let copy = format!("list-copy-{round}");
    send(redis, &["COPY", "list-both", &copy]);
    send(redis, &["PEXPIREAT", &copy, FAR]);
}
