//! Reads of every kind, each held against the model: at once, in pages, explained, and followed.

use std::time::Duration;

use proptest::test_runner::TestCaseError;
use trefoil::{Direction, Event, Selection, StartAt, Strategy};

use super::driver::{Check, Driver, same};
use crate::model::Record;
use crate::waiting::wait_for_all;

pub(super) fn records(events: &[Event]) -> Vec<Record> {
    events.iter().map(Record::of).collect()
}

impl Driver {
    /// Where the log ends for a read.
    fn head_for(&self, read: &Selection) -> u64 {
        let head = self.model.head();
        read.as_of.map_or(head, |as_of| as_of.min(head))
    }

    pub(super) fn read(&self, read: &Selection) -> Check {
        let expected = self.model.read(read);
        let what = format!("{read:?}");
        let explained = self.ok("explain", self.database.explain(read))?;
        if explained.strategy == Strategy::Nothing {
            same(&format!("{what}\n  {explained:?}"), &Vec::new(), &expected)?;
        }
        let (actual, head) = self.ok(&what, self.database.read_with_head(read))?;
        same(&what, records(&actual), expected)?;
        same(&what, head, self.head_for(read))
    }

    /// Reads page by page, each from where the one before ended.
    pub(super) fn read_pages(&self, read: &Selection, limit: usize, bytes: usize) -> Check {
        let what = format!("pages of {limit} events and {bytes} bytes of {read:?}");
        let (mut found, mut rest, mut before) = (Vec::new(), read.clone(), None);
        loop {
            rest.limit = limit.min(read.limit - found.len());
            let page = self.ok(&what, self.database.read_page(&rest, bytes))?;
            same(&what, page.head, self.head_for(read))?;
            same(&what, page.events.len() <= rest.limit, true)?;
            found.extend(records(&page.events));
            let Some(next) = page.next.filter(|_| found.len() < read.limit) else {
                break;
            };
            let advances = before.is_none_or(|before| match read.direction {
                Direction::Forwards => next > before,
                Direction::Backwards => next < before,
            });
            same(&format!("{what}: {before:?}, then {next}"), advances, true)?;
            before = Some(next);
            rest.from = StartAt::Position(next);
        }
        same(&what, found, self.model.read(read))
    }

    /// Takes all that a subscription has to deliver.
    pub(super) fn poll(&mut self, which: usize) -> Check {
        let Some(index) = which.checked_rem(self.following.len()) else {
            return Ok(());
        };
        let mut delivered = Vec::new();
        loop {
            let subscription = &mut self.following[index].subscription;
            // Both forms, in turn.
            let next = match delivered.len() % 2 {
                0 => wait_for_all([subscription.next_page()]).remove(0),
                _ => subscription.next_timeout(Duration::ZERO),
            };
            match self.ok("subscription", next)? {
                events if events.is_empty() => break,
                events => delivered.extend(records(&events)),
            }
        }
        let read = &self.following[index].read;
        same(
            &format!("subscription {read:?}"),
            delivered.as_slice(),
            &self.model.read(read),
        )?;
        if let Some(last) = delivered.last() {
            self.following[index].read.from = StartAt::Position(last.position + 1);
        }
        Ok(())
    }

    /// Subscriptions to what is gone say so, and only so.
    pub(super) fn end_subscriptions(&mut self) -> Check {
        for mut following in self.following.drain(..) {
            match following.subscription.next_timeout(Duration::ZERO) {
                Err(trefoil::Error::Closed(_)) => {}
                other => {
                    let text = format!("an ended subscription answered {other:?}");
                    return Err(TestCaseError::fail(text));
                }
            }
        }
        Ok(())
    }
}
