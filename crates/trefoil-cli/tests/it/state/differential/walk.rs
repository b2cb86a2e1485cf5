//! The `SCAN` family: a walk to its end finds everything, whatever its order.

use std::collections::BTreeSet;

use super::driver::{Outcome, check};
use super::world::{Words, World};
use crate::harness::Value;

/// Walks on both servers and compares what was found.
pub(super) fn scan(world: &mut World, connection: usize, words: &Words) -> Outcome {
    let [redis, trefoil] = world.both(connection, words);
    if !matches!(redis, Value::Array(_)) || !matches!(trefoil, Value::Array(_)) {
        return check(redis == trefoil, words, &redis, &trefoil);
    }
    let mut found = [BTreeSet::new(), BTreeSet::new()];
    let mut cursors = [
        take_page(words, &redis, &mut found[0]),
        take_page(words, &trefoil, &mut found[1]),
    ];
    while cursors.iter().any(|cursor| cursor != b"0") {
        for server in 0..2 {
            if cursors[server] != b"0" {
                let next = with_cursor(words, &cursors[server]);
                let reply = world.both(connection, &next)[server].clone();
                cursors[server] = take_page(words, &reply, &mut found[server]);
            }
        }
    }
    let [redis, trefoil] = found.map(|all| Value::Array(all.into_iter().collect()));
    check(redis == trefoil, words, &redis, &trefoil)
}

fn with_cursor(words: &Words, cursor: &[u8]) -> Words {
    let place = if is_of_keys(words) { 1 } else { 2 };
    let mut words = words.clone();
    words[place] = cursor.to_vec();
    words
}

fn is_of_keys(words: &Words) -> bool {
    words[0] == b"SCAN"
}

/// Adds a page to what was found and returns the cursor of the next.
fn take_page(words: &Words, reply: &Value, found: &mut BTreeSet<Value>) -> Vec<u8> {
    let Some([cursor, Value::Array(page)]) = reply.elements() else {
        panic!("{words:?} answered {reply:?}");
    };
    let elements: Vec<Value> = match words[0].as_slice() {
        b"HSCAN" => page
            .chunks(2)
            .map(|pair| Value::Array(pair.to_vec()))
            .collect(),
        b"ZSCAN" => page.chunks(2).map(scored).collect(),
        _ => page.clone(),
    };
    found.extend(elements);
    cursor.bytes().to_vec()
}

/// A member and its score as a number: how Redis writes a large one depends on the size of the set.
fn scored(pair: &[Value]) -> Value {
    let [member, score] = pair else {
        panic!("a member without a score: {pair:?}");
    };
    let score: f64 = String::from_utf8_lossy(score.bytes()).parse().unwrap();
    // Adding zero takes the sign from a zero that has one.
    let score = Value::Double(format!("{:e}", score + 0.0));
    Value::Array(vec![member.clone(), score])
}
