//! A client that reads while others write and remembers what it saw.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use trefoil::{Query, Selection};

use super::query;
use crate::dcb::store::{Seen, Store};

/// Between two reads; without it, readers in one process with the writers would be all there is.
const PAUSE: Duration = Duration::from_millis(1);

/// What one read answered: all events that match from `from` to `to`, both included.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) query: Query,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) events: Vec<Seen>,
}

pub(super) struct Reader {
    store: Box<dyn Store>,
    random: Rng,
}

impl Reader {
    pub(super) fn new(store: Box<dyn Store>, random: Rng) -> Self {
        Self { store, random }
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> Vec<Sample> {
        let mut samples = Vec::new();
        let mut head = 0;
        while !stop.load(Ordering::SeqCst) {
            let Some(sample) = self.sample(head) else {
                break;
            };
            assert!(sample.to >= head, "the head went back");
            head = sample.to;
            samples.push(sample);
            thread::sleep(PAUSE);
        }
        samples
    }

    /// The last events, or those that a query matches in the newest part of the log; `None` if the
    /// server is gone.
    fn sample(&mut self, head: u64) -> Option<Sample> {
        if self.random.u64(..2) == 0 {
            let last = Selection::query(Query::all()).backwards().limit(10);
            let mut events = self.store.read(&last).ok()?.events;
            events.reverse();
            let ends = |seen: Option<&Seen>| seen.map_or(0, |seen| seen.position);
            return Some(Sample {
                query: Query::all(),
                from: ends(events.first()).max(1),
                to: ends(events.last()),
                events,
            });
        }
        let query = query(&mut self.random);
        let from = head.saturating_sub(self.random.u64(..400)).max(1);
        let read = Selection::query(query.clone()).from_position(from);
        let answer = self.store.read(&read).ok()?;
        Some(Sample {
            query,
            from,
            to: answer.after(),
            events: answer.events,
        })
    }
}
