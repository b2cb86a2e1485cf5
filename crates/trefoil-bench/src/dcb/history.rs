//! The history that reads find, appended in a fixed order before anything is measured.
//!
//! Entities take turns, so that the events of one lie far apart. Every event has the tag of its
//! entity and one of two more, which therefore never meet; a few have a third, and one has a type
//! that no other has.

use std::ops::Range;

use anyhow::{Result, bail, ensure};
use trefoil_grpc::{AppendRequest, Event};

use super::connection::{Answer, Request};
use super::events::{Bodies, ENTITIES, entity_tag};
use super::load::Client;

/// The type that occurs once.
pub(crate) const RARE_TYPE: &str = "SystemInstalled";
/// A tag on few events, each of which is even, too.
pub(crate) const RARE_TAG: &str = "audit:sampled";
/// Two tags of which every event has one.
pub(crate) const EVEN_TAG: &str = "parity:even";
pub(crate) const ODD_TAG: &str = "parity:odd";

/// The last event of an entity.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Last {
    pub(crate) position: u64,
    pub(crate) event_type: &'static str,
}

/// Events in a fixed order, appended one batch after the other without conditions.
#[derive(Debug)]
pub(crate) struct History<'a> {
    bodies: &'a Bodies,
    plan: Plan,
    appended: u64,
    /// The numbers of the batch that is on its way.
    batch: Range<u64>,
    /// By entity.
    pub(crate) last: Vec<Last>,
    pub(crate) rare_position: u64,
    pub(crate) head: u64,
}

/// Which events of a history are marked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The number of the event with the type that occurs once.
    pub(crate) rare_type_at: u64,
    /// How many events there are to one that has [`RARE_TAG`]; an even number.
    pub(crate) rare_tag_every: u64,
    /// At each of these sizes, 50 events spread evenly over the history up to it have a tag of
    /// their own.
    pub(crate) spread_over: &'static [u64],
}

/// How many events have the tag [`spread_tag`].
pub(crate) const SPREAD: u64 = 50;
const BATCH: u64 = 1000;

/// The tag of events that are spread evenly over the first `size` ones.
pub(crate) fn spread_tag(size: u64) -> String {
    format!("spread:{size}")
}

impl<'a> History<'a> {
    pub(crate) fn new(bodies: &'a Bodies, plan: Plan) -> Self {
        Self {
            bodies,
            plan,
            appended: 0,
            batch: 0..0,
            last: vec![Last::default(); ENTITIES],
            rare_position: 0,
            head: 0,
        }
    }

    /// How many requests append what is missing up to `size` events.
    pub(crate) fn requests_up_to(&self, size: u64) -> u64 {
        size.saturating_sub(self.appended) / BATCH
    }

    fn event(&self, number: u64) -> Event {
        let entity = number as usize % ENTITIES;
        let is_even = number.is_multiple_of(2);
        let parity = if is_even { EVEN_TAG } else { ODD_TAG };
        let mut tags = vec![entity_tag(entity), parity.to_owned()];
        if number.is_multiple_of(self.plan.rare_tag_every) {
            tags.push(RARE_TAG.to_owned());
        }
        let sizes = self.plan.spread_over.iter();
        let spread = sizes.filter(|size| number < **size && number.is_multiple_of(*size / SPREAD));
        tags.extend(spread.map(|size| spread_tag(*size)));
        let mut event = self.bodies.event(number, tags);
        if number == self.plan.rare_type_at {
            event.event_type = RARE_TYPE.to_owned();
        }
        event
    }
}

impl Client for History<'_> {
    fn next(&mut self) -> Request {
        self.batch = self.appended..self.appended + BATCH;
        Request::Append(AppendRequest {
            events: self
                .batch
                .clone()
                .map(|number| self.event(number))
                .collect(),
            ..AppendRequest::default()
        })
    }

    fn answered(&mut self, answer: Answer) -> Result<u64> {
        let Answer::Appended(head) = answer else {
            bail!("an append without a condition was answered with {answer:?}");
        };
        ensure!(
            head >= self.head + BATCH,
            "{BATCH} events after position {} end at {head}",
            self.head
        );
        self.head = head;
        for (number, position) in self.batch.clone().zip(head + 1 - BATCH..) {
            self.last[number as usize % ENTITIES] = Last {
                position,
                event_type: self.bodies.event_type(number),
            };
            if number == self.plan.rare_type_at {
                self.rare_position = position;
            }
        }
        self.appended = self.batch.end;
        Ok(BATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_marks_as_many_events_as_it_promises() {
        let bodies = Bodies::new();
        let plan = Plan {
            rare_type_at: 500,
            rare_tag_every: 1_000,
            spread_over: &[10_000, 20_000],
        };
        let mut history = History::new(&bodies, plan);
        let mut counts = std::collections::HashMap::new();
        for batch in 0..20 {
            let Request::Append(append) = history.next() else {
                panic!("a history only appends");
            };
            for event in append.events {
                *counts.entry(event.event_type).or_insert(0) += 1;
                for tag in event.tags {
                    *counts.entry(tag).or_insert(0) += 1;
                }
            }
            history
                .answered(Answer::Appended((batch + 1) * BATCH))
                .unwrap();
        }
        let expected = [
            (RARE_TYPE, 1),
            (RARE_TAG, 20),
            (EVEN_TAG, 10_000),
            (ODD_TAG, 10_000),
            ("entity:0", 2),
            ("spread:10000", SPREAD),
            ("spread:20000", SPREAD),
        ];
        for (name, count) in expected {
            assert_eq!(counts[name], count, "{name}");
        }
        assert_eq!(history.rare_position, 501);
        assert_eq!(history.last[0].position, 10_001);
        assert!(history.answered(Answer::Refused).is_err());
    }
}
