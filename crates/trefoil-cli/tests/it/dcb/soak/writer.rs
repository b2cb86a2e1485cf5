//! A client that appends under random conditions and remembers what it was told.

use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use serde_json::json;
use trefoil::{EventId, Query, Selection};

use super::{query, tags, type_name};
use crate::dcb::store::{Fact, Refusal, Store, Unless};

/// An append that was sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) key: String,
    pub(super) facts: Vec<Fact>,
    pub(super) unless: Unless,
    /// The position of its last event, if it was appended.
    pub(super) answer: Result<u64, Refusal>,
}

pub(super) struct Writer {
    store: Box<dyn Store>,
    random: Rng,
    round: u64,
    number: u64,
}

impl Writer {
    pub(super) fn new(store: Box<dyn Store>, random: Rng, round: u64, number: u64) -> Self {
        Self {
            store,
            random,
            round,
            number,
        }
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> Vec<Sent> {
        let mut sent = Vec::new();
        for n in 0.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let query = query(&mut self.random);
            let last = Selection::query(query.clone()).backwards().limit(1);
            let Ok(last) = self.store.read(&last) else {
                break;
            };
            let seen = last.positions().first().copied().unwrap_or_default();
            let key = format!("{}/{}/{n}", self.round, self.number);
            let facts = self.facts(&key, &query, seen);
            let unless = Unless::after(&query, seen);
            let answer = self.store.append(&facts, std::slice::from_ref(&unless));
            let cut_off = matches!(answer, Err(Refusal::Gone(_)));
            sent.push(Sent {
                key,
                facts,
                unless,
                answer,
            });
            if cut_off {
                break;
            }
        }
        sent
    }

    /// One or two events; those of every third writer have ids, so that they can be sent again.
    fn facts(&mut self, key: &str, query: &Query, seen: u64) -> Vec<Fact> {
        let parts = 1 + self.random.u64(..2);
        let items: Vec<_> = query
            .items
            .iter()
            .map(|item| json!([item.types, item.tags]))
            .collect();
        let mut facts = Vec::new();
        for part in 0..parts {
            let kind = type_name(&mut self.random);
            let data = json!({"key": key, "part": part, "parts": parts,
                "query": items, "seen": seen});
            let mut fact = Fact::new(&kind, tags(&mut self.random)).with(data);
            if self.number.is_multiple_of(3) {
                let (high, low) = (self.random.u64(..), self.random.u64(..));
                let random = u128::from(high) << 64 | u128::from(low);
                // Version 4, so that it cannot look like one that the server made.
                let id = random & !(0xf << 76) | 4 << 76;
                fact.id = Some(EventId::from_u128(id));
            }
            facts.push(fact);
        }
        facts
    }
}
