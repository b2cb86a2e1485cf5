//! Dropping again what a log has that was dropped elsewhere: the parts of a backup may be older than a
//! truncation that its own state knows of.

use trefoil_core::Result;

use super::entries::{all_stream_removals, removed_in_total};
use super::stream::n_within;
use crate::Database;
use crate::state::DurableView;
use crate::write::Work;

/// How many streams one commit notes.
const STREAMS_PER_COMMIT: usize = 512;

impl Database {
    /// Notes all streams of which the log has removed events, whatever is known of them: the background
    /// drops them. Returns how many removed events the log does not have. Blocks the thread.
    pub(crate) fn drop_again(&self) -> Result<u64> {
        let engine = self.engine()?;
        let layers = engine.index.layers();
        let n_removed = removed_in_total(&engine.store.read())?.events;
        let entries = DurableView::new(&engine.store);
        let (mut streams, mut n_there) = (Vec::new(), 0);
        for entry in all_stream_removals(&entries) {
            let (stream, removal) = entry?;
            // The index was just made from the log.
            let n_left = match removal.floor {
                0 => 0,
                floor => n_within(&layers, &stream, 0, floor - 1)?,
            };
            if n_left > 0 {
                n_there += n_left;
                streams.push(stream);
            }
            if streams.len() == STREAMS_PER_COMMIT {
                engine.write(Work::DropAgain(std::mem::take(&mut streams)))?;
            }
        }
        if !streams.is_empty() {
            engine.write(Work::DropAgain(streams))?;
        }
        Ok(n_removed.saturating_sub(n_there))
    }
}
