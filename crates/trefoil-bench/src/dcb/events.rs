//! The events of the measurement, the same for every store.
//!
//! - The data of an event is a JSON object of exactly 256 bytes. There are 32,768 different ones.
//! - There are 10,000 entities. An event has the tag of its entity, `entity:17`.

use bytes::Bytes;
use fastrand::Rng;
use trefoil_grpc::{AppendCondition, Event, Query, QueryItem};

use crate::body;

/// How many entities there are.
pub(crate) const ENTITIES: usize = 10_000;
/// How many bytes of data an event has.
pub(crate) const DATA_BYTES: usize = 256;

const SEED: u64 = 0x6463_6220;
const BODIES: usize = 1 << 15;

/// Types and data of events.
#[derive(Debug)]
pub(crate) struct Bodies(Vec<(&'static str, Bytes)>);

impl Bodies {
    pub(crate) fn new() -> Self {
        let mut random = Rng::with_seed(SEED);
        Self((0..BODIES).map(|_| body(&mut random)).collect())
    }

    /// The type of the event with a number.
    pub(crate) fn event_type(&self, number: u64) -> &'static str {
        self.0[number as usize % BODIES].0
    }

    /// The event with a number; equal numbers give equal events.
    pub(crate) fn event(&self, number: u64, tags: Vec<String>) -> Event {
        let (event_type, data) = &self.0[number as usize % BODIES];
        Event {
            event_type: (*event_type).to_owned(),
            tags,
            data: data.clone(),
            ..Event::default()
        }
    }
}

/// A generated body, filled up to the size that all have.
fn body(random: &mut Rng) -> (&'static str, Bytes) {
    const FILL: &[u8] = br#","trace":""#;
    loop {
        let (event_type, mut body) = body::generate(random);
        let Some(missing) = DATA_BYTES.checked_sub(body.len() + FILL.len() + 1) else {
            continue;
        };
        body.pop();
        body.extend_from_slice(FILL);
        body.extend((0..missing).map(|_| b"0123456789abcdef"[random.usize(..16)]));
        body.extend_from_slice(b"\"}");
        return (event_type, body.into());
    }
}

pub(crate) fn entity_tag(entity: usize) -> String {
    format!("entity:{entity}")
}

/// A query with one item.
pub(crate) fn query<const TYPES: usize, const TAGS: usize>(
    types: [&str; TYPES],
    tags: [&str; TAGS],
) -> Query {
    let item = QueryItem {
        types: types.map(str::to_owned).into(),
        tags: tags.map(str::to_owned).into(),
    };
    Query { items: vec![item] }
}

/// Fails if an event after a position matches.
pub(crate) fn condition(query: Query, after: u64) -> AppendCondition {
    AppendCondition {
        fail_if_events_match: Some(query),
        after: Some(after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bodies_are_json_of_the_same_size() {
        let bodies = Bodies::new();
        for (_, data) in &bodies.0 {
            assert_eq!(data.len(), DATA_BYTES);
        }
        let value: serde_json::Value = serde_json::from_slice(&bodies.0[0].1).unwrap();
        assert!(value["trace"].is_string());
    }
}
