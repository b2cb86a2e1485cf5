//! What must be, may be and must not be in the database, from what its clients were told.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use super::writers::{Outcome, Place, Sent, place};
use crate::harness::Client;

/// The books of the clients.
#[derive(Default)]
pub(super) struct Ledger {
    /// Where acknowledged events went: (key, part) by global position.
    acknowledged: BTreeMap<u64, (Value, Place)>,
    /// Commits without an answer, by key.
    unknown: HashMap<String, Value>,
    refused: HashSet<String>,
    /// All rows as they were read, in the order of their positions.
    history: Vec<Value>,
    ids: HashSet<String>,
    versions: HashMap<String, i64>,
    /// Keys of commits that were found in the history.
    found: HashSet<String>,
    /// How many commits were written although nobody was told.
    survivors: usize,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Ledger {
    pub(super) fn len(&self) -> usize {
        self.history.len()
    }

    /// How many commits were written although nobody was told.
    pub(super) fn survivors(&self) -> usize {
        self.survivors
    }

    pub(super) fn some_stream(&self) -> Option<(String, i64)> {
        let race = self.versions.get("race-1")?;
        Some(("race-1".to_owned(), *race))
    }

    pub(super) fn take(&mut self, sent: Vec<Sent>) {
        for Sent { key, call, outcome } in sent {
            match outcome {
                Outcome::Acknowledged(places) => {
                    for (part, place) in places.into_iter().enumerate() {
                        let mark = json!({"key": key, "part": part});
                        self.acknowledged.insert(place.global, (mark, place));
                    }
                }
                Outcome::Refused => drop(self.refused.insert(key)),
                Outcome::Unknown => drop(self.unknown.insert(key, call)),
            }
        }
    }

    /// An event that the test itself wrote.
    pub(super) fn take_check(&mut self, stream: &str, answer: &Value, data: &Value) {
        let place = place(stream, answer);
        self.acknowledged
            .insert(place.global, (data.clone(), place));
    }

    /// Reads what is new, or everything, and holds it against the books.
    pub(super) fn verify(&mut self, client: &mut Client, whole: bool) {
        if whole {
            let before = read(client, 1, Some(self.history.len()));
            assert!(before == self.history, "history changed");
        }
        let known = self.history.len() as u64;
        let fresh = read(client, known + 1, None);
        self.check_commits(&fresh);
        for (row, global) in fresh.into_iter().zip(known + 1..) {
            self.check_row(&row, global);
            self.history.push(row);
        }
        let last = self
            .acknowledged
            .last_key_value()
            .map_or(0, |(global, _)| *global);
        assert!(
            self.history.len() as u64 >= last,
            "acknowledged up to {last}, and it is not there"
        );
    }

    fn check_row(&mut self, row: &Value, global: u64) {
        assert_eq!(row[4], global, "positions are dense");
        assert!(self.ids.insert(text(&row[0])), "an id twice: {row}");
        let stream = text(&row[1]);
        let version = self.versions.entry(stream.clone()).or_insert(-1);
        *version += 1;
        assert_eq!(row[3], *version, "{stream} is gapless");
        let Some((mark, place)) = self.acknowledged.get(&global) else {
            let key = text(&row[5]["key"]);
            assert!(
                self.unknown.contains_key(&key),
                "from nowhere, or refused: {row}"
            );
            return;
        };
        assert_eq!(
            (&place.stream, place.position),
            (&stream, *version as u64),
            "{row}"
        );
        for (name, value) in mark.as_object().unwrap() {
            assert_eq!(
                &row[5][name], value,
                "another event at an acknowledged position: {row}"
            );
        }
    }

    /// The events of a commit are all there and side by side.
    fn check_commits(&mut self, rows: &[Value]) {
        let mut rows = rows.iter().filter(|row| row[5]["parts"].is_u64());
        while let Some(first) = rows.next() {
            let (key, parts) = (text(&first[5]["key"]), first[5]["parts"].as_u64().unwrap());
            assert_eq!(first[5]["part"], 0, "half a commit: {first}");
            assert!(self.found.insert(key.clone()), "{key} was written twice");
            self.survivors += usize::from(self.unknown.contains_key(&key));
            assert!(
                !self.refused.contains(&key),
                "{key} was refused and is there"
            );
            for part in 1..parts {
                let row = rows
                    .next()
                    .unwrap_or_else(|| panic!("{key} ends after {part} parts"));
                let expected = (Value::from(key.as_str()), Value::from(part));
                assert_eq!(
                    (row[5]["key"].clone(), row[5]["part"].clone()),
                    expected,
                    "half a commit"
                );
            }
        }
    }

    /// Sends commits again that were cut off. Those that have an id are written once, whether the
    /// first attempt was or not.
    pub(super) fn retry(&mut self, client: &mut Client) {
        for (key, call) in std::mem::take(&mut self.unknown) {
            let has_id = call[1]["id"].is_string() || call[3]["id"].is_string();
            if !has_id {
                continue;
            }
            let answer = client.rpc(&call).ok();
            let places: Vec<Place> = match answer["events"].as_array() {
                Some(events) => events
                    .iter()
                    .map(|e| place(e["stream"].as_str().unwrap(), e))
                    .collect(),
                None => vec![place(call[1].as_str().unwrap(), &answer)],
            };
            let was_there = places[0].global <= self.history.len() as u64;
            assert_eq!(
                was_there,
                self.found.contains(&key),
                "{key} was answered with {places:?}"
            );
            let outcome = Outcome::Acknowledged(places);
            self.take(vec![Sent { key, call, outcome }]);
        }
    }
}

/// Rows from a global position on, page by page.
fn read(client: &mut Client, from: u64, at_most: Option<usize>) -> Vec<Value> {
    let mut rows: Vec<Value> = Vec::new();
    loop {
        let left = at_most.map_or(10_000, |limit| (limit - rows.len()).min(10_000));
        let options = json!({"position": from + rows.len() as u64, "batchSize": left});
        let page = client.rpc(&json!(["category.get", "", options])).ok();
        let page = page.as_array().unwrap();
        rows.extend_from_slice(page);
        if page.len() < 10_000 {
            return rows;
        }
    }
}
