//! Staging what removes expired keys, garbage, and the names of old transactions.

use trefoil_core::Result;
use trefoil_state::{Cleaned, Keyspace};

use super::stage::Stage;
use super::staged::StagedEvent;

/// At most about how many entries one commit removes.
const ENTRIES_MAX: usize = 2048;

impl Stage<'_> {
    /// Removes some of what is due, as a commit of its own. Answers what is left to do.
    pub(crate) fn clean(&mut self) -> Result<Cleaned> {
        self.whole_or_not(Self::clean_some)
    }

    fn clean_some(&mut self) -> Result<Cleaned> {
        let moment = self.moment();
        let retention = self.store().retention;
        let view = self.view();
        let forgotten = view.forget(moment.now.saturating_sub(retention), ENTRIES_MAX)?;
        let mut keyspace = Keyspace::new(view, moment)?;
        let mut cleaned = keyspace.clean(ENTRIES_MAX)?;
        let events = keyspace.take_events();
        cleaned.is_done &= forgotten < ENTRIES_MAX;
        let oldest = view.oldest_remembered()?;
        let oldest = oldest.map(|time| time.saturating_add(retention));
        cleaned.next = cleaned.next.into_iter().chain(oldest).min();
        if view.has_changes() {
            let known = events.iter().map(|_| None).collect::<Vec<_>>();
            let made = |event| StagedEvent::Made(Box::new(event));
            self.stage_commit(events.into_iter().map(made).collect(), None, &known)?;
        }
        Ok(cleaned)
    }
}
