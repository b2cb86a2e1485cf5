//! Dropping again what a log has that was dropped elsewhere: the parts of a backup may be older than a
//! truncation that its own state knows of.

use trefoil_core::{Direction, Result};

use super::entries::{StreamRemoval, all_stream_removals};
use crate::Database;
use crate::index::{Layers, TermKind, TermLookup};
use crate::state::DurableView;
use crate::write::Work;

/// How many streams one commit notes.
const STREAMS_PER_COMMIT: usize = 512;

impl Database {
    /// Notes all streams of which the log has removed events, whatever is known of them: the background
    /// drops them. Blocks the thread.
    pub(crate) fn drop_again(&self) -> Result<()> {
        let engine = self.engine()?;
        let layers = engine.index.layers();
        let entries = DurableView::new(&engine.store);
        let mut streams = Vec::new();
        for entry in all_stream_removals(&entries) {
            let (stream, removal) = entry?;
            if has_removed(&layers, &stream, &removal)? {
                streams.push(stream);
            }
            if streams.len() == STREAMS_PER_COMMIT {
                engine.write(Work::DropAgain(std::mem::take(&mut streams)))?;
            }
        }
        match streams.is_empty() {
            true => Ok(()),
            false => engine.write(Work::DropAgain(streams)).map(drop),
        }
    }
}

/// Returns whether the index, which was just made from the log, has events of a stream that were removed.
fn has_removed(layers: &Layers, stream: &str, removal: &StreamRemoval) -> Result<bool> {
    let mut term = TermLookup::new(layers, TermKind::Stream, stream);
    let mut first = Vec::with_capacity(1);
    term.page(1, Direction::Forwards, 1, &mut first)?;
    Ok(first.first().is_some_and(|first| *first < removal.floor))
}
