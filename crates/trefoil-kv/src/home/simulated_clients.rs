//! What clients of a simulated cluster know, and what they find: writers and readers, those who buy seats,
//! and those who follow.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use trefoil::{
    Call, Database, Event, Options, Reply, Result, Selection, StartAt, Step, Subscription,
    Transaction,
};

/// The type of the events that a [`Ledger`] is about.
const WRITTEN: &str = "Happened";

/// What clients know of one namespace.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The positions of what was acknowledged, by the number of the write.
    acknowledged: BTreeMap<u64, u64>,
    /// What was certainly not done.
    refused: BTreeSet<u64>,
    /// Whether seats were sold or certainly not, by the number of the booking.
    sales: BTreeMap<u64, bool>,
    /// The events of writes up to this one may have been removed, if there is one.
    cleared_up_to: Option<u64>,
}

impl Ledger {
    pub(super) fn acknowledge(&mut self, number: u64, position: u64) {
        self.acknowledged.insert(number, position);
    }

    pub(super) fn refuse(&mut self, number: u64) {
        self.refused.insert(number);
    }

    pub(super) fn note_sale(&mut self, number: u64, is_sold: bool) {
        self.sales.insert(number, is_sold);
    }

    /// All events were removed. The seats stay.
    pub(super) fn clear(&mut self) {
        self.acknowledged.clear();
        self.cleared_up_to = None;
    }

    /// All events may have been removed, after this many writes.
    pub(super) fn may_be_cleared(&mut self, n_writes: u64) {
        self.cleared_up_to = Some(n_writes);
    }

    pub(super) fn n_acknowledged(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    /// Returns the last position that is certainly there.
    pub(super) fn last(&self) -> u64 {
        let after = self.cleared_up_to.map_or(0, |number| number + 1);
        let certain = self.acknowledged.range(after..);
        certain.map(|(_, position)| *position).max().unwrap_or(0)
    }

    /// Checks what somebody has read against what was acknowledged before.
    pub(super) fn check(&mut self, events: &[Event]) {
        let mut found = BTreeMap::new();
        for (event, position) in events.iter().zip(1..) {
            assert_eq!(event.position(), position, "positions are dense");
            if event.event_type() != WRITTEN {
                continue;
            }
            let data = std::str::from_utf8(event.data()).unwrap();
            let number: u64 = data.parse().unwrap();
            assert!(found.insert(number, position).is_none(), "{number} twice");
            assert!(!self.refused.contains(&number), "{number} was refused");
        }
        self.find_out(&found);
        for (number, position) in &self.acknowledged {
            assert_eq!(found.get(number), Some(position), "{number} of {self:?}");
        }
    }

    /// Finds out whether events were removed, if that is not known.
    fn find_out(&mut self, found: &BTreeMap<u64, u64>) {
        let Some(last) = self.cleared_up_to.take() else {
            return;
        };
        // All of them, or none.
        if !{ found.range(..=last) }.any(|(number, _)| self.acknowledged.contains_key(number)) {
            self.acknowledged.retain(|number, _| *number > last);
        }
    }

    /// Checks that nothing of the seats contradicts anything, and that each sale is there or not.
    pub(super) fn check_seats(&self, database: &Database) {
        let bookings = self
            .sales
            .keys()
            .map(|number| format!("SEATS.BOOKING b{number}"));
        let lines = std::iter::once("SEATS.CHECK 1".to_owned()).chain(bookings);
        let calls: Vec<Call> = lines.map(|line| call(&line)).collect();
        // Who lost the namespace meanwhile says nothing.
        let Ok(replies) = database.look(&calls) else {
            return;
        };
        assert_eq!(replies[0], Reply::Array(Vec::new()));
        for ((number, is_sold), reply) in self.sales.iter().zip(&replies[1..]) {
            let is_there = *reply != Reply::Nil;
            assert_eq!(is_there, *is_sold, "booking {number}: {reply:?}");
        }
    }
}

fn call(line: &str) -> Call {
    let words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
    let commands = Options::default().commands;
    commands.call(words.collect()).unwrap().unwrap()
}

/// Buys a seat. Returns whether there was one.
pub(super) fn book(database: &Database, number: u64) -> Result<bool> {
    let lines = [
        "SEATS.INIT 1 A ROWS 4 SEATS 10 PRICE 50".to_owned(),
        format!("SEATS.RESERVE 1 A b{number} u{number} BEST 1"),
        format!("SEATS.FINALIZE b{number} u{number}"),
    ];
    let steps = lines.iter().map(|line| Step::Call(call(line)));
    let transaction = Transaction::default().with_steps(steps).lenient();
    let executed = database.transact(transaction)?;
    Ok(!matches!(executed.replies[1], Reply::Error(_)))
}

/// Somebody who follows a namespace, over all its moves.
#[derive(Debug, Default)]
pub(super) struct SimulatedFollower {
    /// The data of all events so far, in order.
    seen: Vec<Bytes>,
    subscription: Option<Subscription>,
}

impl SimulatedFollower {
    /// Takes what is new. If the subscription has ended, the next one goes on where it was.
    pub(super) fn step(&mut self, database: impl FnOnce() -> Option<Database>) {
        if self.subscription.is_none() {
            let mut all = Selection::all();
            all.from = StartAt::Position(self.seen.len() as u64 + 1);
            self.subscription = database().map(|database| database.subscribe(all));
        }
        let Some(subscription) = &mut self.subscription else {
            return;
        };
        loop {
            match subscription.next_timeout(Duration::ZERO) {
                Ok(events) if events.is_empty() => return,
                Ok(events) => {
                    for event in events {
                        assert_eq!(event.position(), self.seen.len() as u64 + 1, "no gap");
                        self.seen.push(Bytes::copy_from_slice(event.data()));
                    }
                }
                Err(_) => {
                    self.subscription = None;
                    return;
                }
            }
        }
    }

    /// Checks that it has seen what there is.
    pub(super) fn check(&self, events: &[Event]) {
        let seen = self.seen.iter().map(|data| &**data);
        let there = events.iter().map(Event::data);
        assert!(
            there.take(self.seen.len()).eq(seen),
            "something else was seen"
        );
        assert!(self.seen.len() <= events.len(), "what was seen is there");
    }
}
