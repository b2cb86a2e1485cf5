//! What the clients were told, held against the log.

use std::collections::{BTreeMap, HashMap, HashSet};

use trefoil::{Query, QueryItem, Selection};

use super::reader::Sample;
use super::writer::Sent;
use crate::dcb::store::{Fact, Refusal, Seen, Store};

#[derive(Default)]
pub(super) struct Books {
    /// What must be there: the event by its position.
    acknowledged: BTreeMap<u64, Fact>,
    /// Appends without an answer, which may be there, by their keys.
    unknown: HashMap<String, Sent>,
    refused: HashSet<String>,
    /// The log as it was read, from position 1 on.
    history: Vec<Seen>,
    /// Where the appends in the log begin, by their keys.
    found: HashMap<String, u64>,
    samples: Vec<Sample>,
    n_samples: usize,
    survivors: usize,
    /// Appends that were sent again: how many had been written, and how many had not.
    repeated: (usize, usize),
}

fn key(fact: &Fact) -> &str {
    fact.data["key"].as_str().unwrap()
}

fn matches(query: &Query, fact: &Fact) -> bool {
    query.matches(&fact.kind, fact.tags.iter().map(String::as_str))
}

impl Books {
    pub(super) fn take(&mut self, sent: Vec<Sent>) {
        for sent in sent {
            match &sent.answer {
                Ok(last) => {
                    let first = last + 1 - sent.facts.len() as u64;
                    self.acknowledged.extend((first..).zip(sent.facts));
                }
                Err(Refusal::Conflict { position, .. }) => {
                    let after = sent.unless.after.unwrap_or_default();
                    assert!(position.is_none_or(|position| position > after));
                    self.refused.insert(sent.key);
                }
                Err(Refusal::Gone(_)) => drop(self.unknown.insert(sent.key.clone(), sent)),
                Err(refusal) => panic!("{refusal:?}"),
            }
        }
    }

    pub(super) fn take_samples(&mut self, samples: Vec<Sample>) {
        self.n_samples += samples.len();
        self.samples.extend(samples);
    }

    /// Reads what is new and holds it against the books; then what readers saw against it.
    pub(super) fn verify(&mut self, store: &mut dyn Store) {
        let known = self.history.len() as u64;
        let fresh = Selection::query(Query::all()).from_position(known + 1);
        let fresh = store.read(&fresh).unwrap().events;
        for (seen, position) in fresh.into_iter().zip(known + 1..) {
            assert_eq!(seen.position, position, "positions are dense");
            self.check_event(&seen);
            self.history.push(seen);
        }
        let last = self.acknowledged.last_key_value();
        let last = last.map_or(0, |(position, _)| *position);
        assert!(self.history.len() as u64 >= last, "{last} was acknowledged");
        self.check_appends(known);
        for sample in std::mem::take(&mut self.samples) {
            self.check_sample(&sample);
        }
    }

    /// Reads everything once more, and demands of each event that its condition held.
    pub(super) fn verify_all(&self, store: &mut dyn Store) {
        let everything = store.all(&Query::all()).events;
        assert!(everything == self.history, "history changed");
        for seen in &self.history {
            self.check_condition(seen);
        }
    }

    fn check_event(&self, seen: &Seen) {
        match self.acknowledged.get(&seen.position) {
            Some(fact) => assert_eq!(&seen.fact, fact, "at {}", seen.position),
            None => {
                let key = key(&seen.fact);
                assert!(!self.refused.contains(key), "{key} was refused: {seen:?}");
                let sent = self.unknown.get(key);
                let sent = sent.unwrap_or_else(|| panic!("from nowhere: {seen:?}"));
                let part = seen.fact.data["part"].as_u64().unwrap();
                assert_eq!(seen.fact, sent.facts[part as usize]);
            }
        }
    }

    /// The events of an append are all there, side by side and once.
    fn check_appends(&mut self, known: u64) {
        let mut fresh = self.history[known as usize..].iter();
        while let Some(first) = fresh.next() {
            let data = &first.fact.data;
            let (key, parts) = (key(&first.fact).to_owned(), data["parts"].as_u64().unwrap());
            assert_eq!(data["part"], 0, "a part of an append: {first:?}");
            for part in 1..parts {
                let next = fresh.next().map(|seen| &seen.fact.data);
                let is_next = next.is_some_and(|next| next["key"] == *key && next["part"] == part);
                assert!(is_next, "{key} ends before part {part}");
            }
            self.survivors += usize::from(self.unknown.contains_key(&key));
            let twice = self.found.insert(key, first.position);
            assert_eq!(twice, None, "appended twice: {first:?}");
        }
    }

    /// What a reader saw is all there was, and still is.
    fn check_sample(&self, sample: &Sample) {
        let (from, to) = (sample.from as usize, sample.to as usize);
        assert!(to <= self.history.len(), "seen and gone: {sample:?}");
        let range = self.history[from - 1..to].iter();
        let expected = range.filter(|seen| matches(&sample.query, &seen.fact));
        assert!(
            expected.eq(&sample.events),
            "the log disagrees with {sample:?}"
        );
    }

    /// No event that matches lies between the last one that the writer saw and the append.
    fn check_condition(&self, seen: &Seen) {
        let data = &seen.fact.data;
        let query = recorded_query(&seen.fact);
        let last = data["seen"].as_u64().unwrap();
        let first = seen.position - data["part"].as_u64().unwrap();
        let passed_over = self.history[last as usize..first as usize - 1]
            .iter()
            .find(|between| matches(&query, &between.fact));
        assert_eq!(passed_over, None, "{seen:?} was appended all the same");
    }

    /// Sends appends again whose answer is missing. Those that were written are answered as the
    /// first time, though their condition no longer holds; the others take their chance.
    pub(super) fn retry(&mut self, store: &mut dyn Store) {
        for (key, mut sent) in std::mem::take(&mut self.unknown) {
            if sent.facts[0].id.is_none() {
                continue;
            }
            sent.answer = store.append(&sent.facts, std::slice::from_ref(&sent.unless));
            match (self.found.get(&key), &sent.answer) {
                (Some(first), answer) => {
                    let last = first + sent.facts.len() as u64 - 1;
                    assert_eq!(answer, &Ok(last), "{key} had been written");
                    self.repeated.0 += 1;
                }
                (None, Ok(last)) => {
                    assert!(
                        *last > self.history.len() as u64,
                        "{key} had not been written"
                    );
                    self.repeated.1 += 1;
                }
                (None, Err(_)) => self.repeated.1 += 1,
            }
            self.take(vec![sent]);
        }
    }

    pub(super) fn assert_much_happened(&self) {
        let (events, refused) = (self.history.len(), self.refused.len());
        eprintln!(
            "{events} events, {refused} appends refused, {} samples, {} appends written and not \
             answered, {:?} of them sent again",
            self.n_samples, self.survivors, self.repeated
        );
        assert!(events > 300 && refused > 50 && self.n_samples > 50);
    }
}

/// The query that an event was appended under.
fn recorded_query(fact: &Fact) -> Query {
    let list = |value: &serde_json::Value| {
        let names = value.as_array().unwrap().iter();
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    };
    let items = fact.data["query"].as_array().unwrap().iter();
    items
        .map(|item| QueryItem {
            types: list(&item[0]),
            tags: list(&item[1]),
        })
        .collect()
}
