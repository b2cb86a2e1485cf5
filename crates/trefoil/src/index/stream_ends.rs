//! Where streams end, for the writer.

use parking_lot::RwLockReadGuard;
use trefoil_core::{Result, stream_group_hash};

use super::layers::Layers;
use super::list::List;
use super::tail::Tail;
use super::term::Kind;

/// What appending to a stream needs to know of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamEnd {
    pub(crate) last_ordinal: u64,
    /// What decides which member of a consumer group the stream belongs to.
    pub(crate) group_hash: Option<i64>,
}

impl StreamEnd {
    /// The end of a stream of which this is the newest list.
    pub(super) fn of(list: &List) -> Self {
        Self {
            last_ordinal: list.last_ordinal(),
            group_hash: list.group_hash(),
        }
    }
}

/// The ends of streams that were in tails, so that the runs need not be asked.
pub(super) type KnownEnds = quick_cache::sync::Cache<String, StreamEnd, Weight>;

/// The memory for the ends of streams, and about what one takes besides its name.
const BYTES_MAX: u64 = 32 * 1024 * 1024;
const END_BYTES: u64 = 96;

/// Weighs a stream's end by the memory it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight;

impl quick_cache::Weighter<String, StreamEnd> for Weight {
    fn weight(&self, stream: &String, _: &StreamEnd) -> u64 {
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

    /// The end of a stream, if there is such a stream.
    pub(crate) fn find(&self, stream: &str) -> Result<Option<StreamEnd>> {
        let mut lists = self
            .tails
            .iter()
            .map(|tail| tail.list(Kind::Stream, stream));
        if let Some(list) = lists.find_map(|list| list) {
            return Ok(Some(StreamEnd::of(list)));
        }
        if let Some(end) = self.known.get(stream) {
            return Ok(Some(end));
        }
        // Not noted as known: the writer may have gone on meanwhile, and whatever it appends to is
        // in a tail from then on.
        let last_ordinal = self.layers.last_ordinal_in_runs(stream)?;
        Ok(last_ordinal.map(|last_ordinal| StreamEnd {
            last_ordinal,
            group_hash: stream_group_hash(stream),
        }))
    }
}
