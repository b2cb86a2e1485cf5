//! Commands whose replies are chosen at random: as many as Redis chooses, and all of them there.

use super::compare::How;
use super::driver::{Outcome, check};
use super::world::{Words, World};
use crate::harness::Value;

/// A random choice that changes nothing.
pub(super) fn pick(world: &mut World, connection: usize, words: &Words) -> Outcome {
    let [redis, trefoil] = world.both(connection, words);
    check(How::Pick.agree(&redis, &trefoil), words, &redis, &trefoil)?;
    let all = everything(world, connection, words);
    let chosen = chosen(words, &trefoil);
    check_choice(words, &chosen, &all)
}

/// A random choice that is removed. Afterwards the two sets are made equal again.
pub(super) fn take(world: &mut World, connection: usize, words: &Words) -> Outcome {
    let all = everything(world, connection, words);
    let [redis, trefoil] = world.both(connection, words);
    check(How::Take.agree(&redis, &trefoil), words, &redis, &trefoil)?;
    let (theirs, ours) = (chosen(words, &redis), chosen(words, &trefoil));
    check_choice(words, &ours, &all)?;
    if ours.len() < all.len() {
        for (name, members) in [("SADD", theirs), ("SREM", ours)] {
            let mut change = vec![name.as_bytes().to_vec(), words[1].clone()];
            change.extend(members.iter().map(|member| member.bytes().to_vec()));
            if !members.is_empty() {
                world.redis(connection, &change);
            }
        }
    }
    Ok(())
}

/// Everything that can be chosen, as Redis has it.
fn everything(world: &mut World, connection: usize, words: &Words) -> Vec<Value> {
    let line = match (words[0].as_slice(), words.len()) {
        (b"RANDOMKEY", _) => "KEYS *",
        (b"HRANDFIELD", 4) => "HGETALL key",
        (b"HRANDFIELD", _) => "HKEYS key",
        (b"ZRANDMEMBER", 4) => "ZRANGE key 0 -1 WITHSCORES",
        (b"ZRANDMEMBER", _) => "ZRANGE key 0 -1",
        _ => "SMEMBERS key",
    };
    let key = words.get(1).cloned().unwrap_or_default();
    let question = super::world::words(line).into_iter();
    let question = question.map(|word| if word == b"key" { key.clone() } else { word });
    let all = world.redis(connection, &question.collect());
    chosen(words, &all)
}

/// The elements of a reply; pairs, if it has pairs.
fn chosen(words: &Words, reply: &Value) -> Vec<Value> {
    let has_pairs = words.len() == 4;
    match reply {
        Value::Map(pairs) => {
            let pair =
                |(name, value): &(Value, Value)| Value::Array(vec![name.clone(), value.clone()]);
            pairs.iter().map(pair).collect()
        }
        Value::Array(all) | Value::Set(all) => match all.first() {
            Some(Value::Bulk(_)) if has_pairs => all
                .chunks(2)
                .map(|pair| Value::Array(pair.to_vec()))
                .collect(),
            _ => all.clone(),
        },
        Value::Bulk(_) => vec![reply.clone()],
        _ => Vec::new(),
    }
}

/// Every chosen element is there; none is chosen twice unless the number is negative.
fn check_choice(words: &Words, chosen: &[Value], all: &[Value]) -> Outcome {
    let list = |values: &[Value]| Value::Array(values.to_vec());
    let is_there = chosen.iter().all(|element| all.contains(element));
    check(is_there, words, &list(all), &list(chosen))?;
    let may_repeat = words.get(2).is_some_and(|count| count.starts_with(b"-"));
    let mut distinct = chosen.to_vec();
    distinct.sort();
    distinct.dedup();
    let is_right = may_repeat || distinct.len() == chosen.len();
    check(is_right, words, &list(all), &list(chosen))
}
