//! What the state says of removed and redacted events, against which the log is checked.

use std::collections::BTreeMap;

use trefoil_core::{Error, Event, Result};
use trefoil_storage::Storage;

use crate::database::recovery::replay_state;
use crate::index::Index;
use crate::removal::{Redaction, all_redactions, stream_removal};
use crate::state::{DurableView, StateStore, snapshot_commit};

/// What was removed and redacted up to the end of the log.
#[derive(Debug)]
pub(crate) struct KnownRemovals {
    state: StateStore,
    redactions: BTreeMap<u64, Redaction>,
    /// The positions of those that the log has yet to follow, in order.
    pending: Vec<u64>,
}

impl KnownRemovals {
    /// Reads it from the state on disk and the end of the log; `None` if opening would have to make the
    /// state again first.
    pub(super) fn load(index: &Index, storage: &dyn Storage) -> Result<Option<Self>> {
        let (checkpoint, snapshot) = (index.checkpoint_end().0, snapshot_commit(storage));
        if checkpoint < snapshot {
            return Ok(None);
        }
        let state = index.state()?;
        let replayed = storage.replay(checkpoint, &mut |record| {
            replay_state(&state, record, snapshot)
        });
        match replayed {
            // Others find and report that.
            Err(Error::Damaged(_)) => return Ok(None),
            replayed => replayed?,
        }
        Ok(Some(Self {
            redactions: all_redactions(&DurableView::new(&state))?,
            pending: state.redactions.positions(),
            state,
        }))
    }

    /// Returns the first place in a stream that is kept; 0 if nothing was removed of it.
    pub(super) fn first_kept(&self, stream: &str) -> Result<u64> {
        let removal = stream_removal(&self.state.read(), stream)?;
        Ok(removal.map_or(0, |removal| removal.first_kept))
    }

    /// Returns what is wrong with an event that should be a stub.
    pub(super) fn check_stub(&self, event: &Event) -> Option<String> {
        let position = event.position();
        let redaction = self.redactions.get(&position)?;
        if redaction.id != event.id() || self.pending.binary_search(&position).is_ok() {
            return None;
        }
        let has_tags = redaction.drops_tags && event.tags().next().is_some();
        match (event.is_redacted(), has_tags) {
            (false, _) => Some("the event was redacted and is not a stub".to_owned()),
            (true, true) => Some("the stub has tags that were redacted".to_owned()),
            (true, false) => None,
        }
    }
}
