//! Where streams end, for the writer.

use parking_lot::RwLockReadGuard;
use trefoil_core::Result;

use super::layers::Layers;
use super::tail::Tail;
use super::term::Kind;

/// The last ordinals of streams that were in tails, so that the runs need not be asked.
pub(super) type KnownEnds = quick_cache::sync::Cache<String, u64, Weight>;

/// The memory for the last ordinals of streams, and about what one takes besides its name.
const BYTES_MAX: u64 = 32 * 1024 * 1024;
const END_BYTES: u64 = 80;

/// Weighs a stream's last ordinal by the memory it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight;

impl quick_cache::Weighter<String, u64> for Weight {
    fn weight(&self, stream: &String, _: &u64) -> u64 {
        END_BYTES + stream.len() as u64
    }
}

pub(super) fn none_known() -> KnownEnds {
    KnownEnds::with_weighter((BYTES_MAX / END_BYTES) as usize, BYTES_MAX, Weight)
}

/// The ends of all streams at one moment. The tails are locked once for all that is asked: a lock
/// for each stream would make the processor wait for one answer before it looks for the next.
#[derive(Debug)]
pub(crate) struct StreamEnds<'a> {
    /// The newest first.
    pub(super) tails: Vec<RwLockReadGuard<'a, Tail>>,
    pub(super) layers: &'a Layers,
    pub(super) known: &'a KnownEnds,
}

impl StreamEnds<'_> {
    /// Has the processor fetch what is known of these streams.
    pub(crate) fn touch(&self, streams: &[&str]) {
        for tail in &self.tails {
            tail.touch_streams(streams);
        }
    }

    /// The last ordinal of a stream.
    pub(crate) fn last_ordinal(&self, stream: &str) -> Result<Option<u64>> {
        let mut lists = self
            .tails
            .iter()
            .map(|tail| tail.list(Kind::Stream, stream));
        if let Some(list) = lists.find_map(|list| list) {
            return Ok(Some(list.last_ordinal()));
        }
        if let Some(ordinal) = self.known.get(stream) {
            return Ok(Some(ordinal));
        }
        // Not noted as known: the writer may have gone on meanwhile, and whatever it appends to is
        // in a tail from then on.
        self.layers.last_ordinal_in_runs(stream)
    }
}
