//! Staging what removes expired keys, garbage, and the names of old transactions.

use trefoil_core::{NewEvent, Result};
use trefoil_state::{ExpiryPlace, GarbagePlace, Keyspace, Portion};

use super::stage::Stage;
use super::staged::StagedEvent;
use crate::time::NEVER;
use crate::time::agenda::Chore;

/// About how many entries one commit removes at most: other commits wait for it.
const EXPIRED_MAX: usize = 256;
const GARBAGE_MAX: Portion = Portion {
    entries: 512,
    bytes: 1024 * 1024,
};

/// What a step of cleaning left to do.
#[derive(Debug)]
pub(crate) struct Cleaned {
    /// When the rest is due, in milliseconds since 1970.
    pub(crate) next: u64,
    pub(crate) rest: Chore,
}

impl Stage<'_> {
    /// Does a part of a chore, as a commit of its own. Returns what is left to do.
    pub(crate) fn clean(&mut self, chore: &Chore) -> Result<Cleaned> {
        self.whole_or_not(|stage| match chore {
            Chore::Expiries { place, replies } => stage.expire(place, *replies),
            Chore::Garbage(place) => stage.collect(place),
        })
    }

    fn expire(&mut self, place: &ExpiryPlace, replies: u64) -> Result<Cleaned> {
        let moment = self.moment();
        let store = self.store();
        let retention = store.retention;
        let view = self.view();
        let until = moment.now.saturating_sub(retention) + 1;
        view.forget_replies(replies..until, EXPIRED_MAX)?;
        let mut keyspace =
            Keyspace::new(view, moment)?.to_change(&store.commands, store.event_data_bytes_max);
        let expired = keyspace.expire(place, EXPIRED_MAX)?;
        let events = keyspace.take_events();
        let oldest = view.oldest_replies(replies)?.unwrap_or(u64::MAX);
        self.stage_cleaning(events)?;
        let next = expired.next.unwrap_or(NEVER);
        Ok(Cleaned {
            next: next.min(oldest.saturating_add(retention)),
            rest: Chore::Expiries {
                place: expired.place,
                replies: oldest,
            },
        })
    }

    fn collect(&mut self, place: &GarbagePlace) -> Result<Cleaned> {
        let moment = self.moment();
        let mut keyspace = Keyspace::new(self.view(), moment)?;
        let collected = keyspace.collect(place, GARBAGE_MAX)?;
        self.stage_cleaning(Vec::new())?;
        Ok(Cleaned {
            next: if collected.is_done { NEVER } else { moment.now },
            rest: Chore::Garbage(collected.place),
        })
    }

    fn stage_cleaning(&mut self, events: Vec<NewEvent>) -> Result<()> {
        if self.view().has_changes() {
            let known = events.iter().map(|_| None).collect::<Vec<_>>();
            let made = |event| StagedEvent::Made(Box::new(event));
            self.stage_commit(events.into_iter().map(made).collect(), None, &known)?;
        }
        Ok(())
    }
}
