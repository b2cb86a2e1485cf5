//! The state behind the events of an export, sent while it is read.

use futures_util::stream::{self, StreamExt as _};
use trefoil::{OpenDatabase, StateExport};

use crate::budget::Share;
use crate::error::Result;
use crate::limits::{ANSWER_BUFFER_BYTES, ANSWER_CHUNK_MEMORY};
use crate::reading::cut;
use crate::response::{Chunks, HttpBody};
use crate::service::reading;
use crate::state_record::put_state_line;

/// The state on its way to a client.
pub(super) struct StateReading {
    database: OpenDatabase,
    state: StateExport,
    share: Share,
    is_over: bool,
}

impl StateReading {
    pub(super) fn new(database: OpenDatabase, state: StateExport, share: &Share) -> Self {
        Self {
            database: database.staying(),
            state,
            share: share.clone(),
            is_over: false,
        }
    }

    /// Reads lines until there are enough for a part of the answer. Blocks the thread.
    fn read(&mut self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        while out.len() < ANSWER_BUFFER_BYTES && !self.is_over {
            match self.state.next_lines()? {
                Some(lines) => lines.iter().for_each(|line| put_state_line(&mut out, line)),
                None => self.is_over = true,
            }
        }
        Ok(out)
    }

    fn chunks(self) -> Chunks {
        let next = |state: Option<Self>| async move {
            let mut state = state?;
            let mut reservation = state.share.reserve_in_turn(ANSWER_CHUNK_MEMORY).await;
            let database = state.database.clone();
            let read = reading(&database, move || state.read().map(|out| (state, out))).await;
            match read.and_then(|read| read) {
                Ok((state, out)) => {
                    reservation.shrink_to(out.len());
                    reservation.grow_anyway(out.len());
                    let left = (!state.is_over).then_some(state);
                    Some((Ok(reservation.hold(out)), left))
                }
                Err(failure) => Some((Err(cut(&failure)), None)),
            }
        };
        stream::unfold(Some(self), next).boxed()
    }
}

/// Sends the state after the events.
pub(super) fn append(events: HttpBody, state: StateReading) -> HttpBody {
    let events = match events {
        HttpBody::Whole(events) => stream::once(async { Ok(events) }).boxed(),
        HttpBody::Stream(events) => events,
    };
    HttpBody::Stream(events.chain(state.chunks()).boxed())
}
