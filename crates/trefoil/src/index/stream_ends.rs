//! Where streams end, for the writer.

use parking_lot::RwLockReadGuard;
use trefoil_core::{Result, stream_group_hash};

use super::layers::Layers;
use super::list::PostingList;
use super::named::ByName;
use super::tail::IndexTail;
use super::term::TermKind;

/// What appending to a stream needs to know of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamEnd {
    pub(crate) last_ordinal: u64,
    pub(crate) last_position: u64,
    /// What decides which member of a consumer group the stream belongs to.
    pub(crate) group_hash: Option<i64>,
    /// Whether all its events were removed, which the index does not know.
    pub(crate) is_empty: bool,
}

impl StreamEnd {
    /// Returns the end of a stream of which this is the newest list.
    pub(super) fn of(list: &PostingList) -> Self {
        Self {
            last_ordinal: list.last_ordinal(),
            last_position: list.last_position(),
            group_hash: list.group_hash(),
            is_empty: false,
        }
    }
}

/// About how much memory the ends of streams take that are noted before older ones are forgotten.
const GENERATION_BYTES: usize = 24 * 1024 * 1024;

/// This many streams are looked for at the same time.
const STREAMS_TOGETHER: usize = 32;

/// The ends of streams that were in tails, so that the runs need not be asked. What was noted long
/// ago is forgotten.
#[derive(Debug, Default)]
pub(super) struct KnownEnds {
    young: ByName<StreamEnd>,
    /// Those of streams that are in both count in `young`.
    old: ByName<StreamEnd>,
}

impl KnownEnds {
    pub(super) fn note(&mut self, stream: &str, end: StreamEnd) {
        if self.young.name_bytes() > GENERATION_BYTES {
            self.old = std::mem::take(&mut self.young);
        }
        let place = self.young.place(stream, || end);
        *self.young.at_mut(place) = end;
    }

    fn get(&self, stream: &str) -> Option<StreamEnd> {
        let found = self.young.get(stream).or_else(|| self.old.get(stream));
        found.copied()
    }
}

/// The ends of all streams at one moment. The tails are locked once for all that is asked: a lock
/// for each stream would make the processor wait for one answer before it looks for the next.
#[derive(Debug)]
pub(crate) struct StreamEnds<'a> {
    /// The newest first.
    pub(super) tails: Vec<RwLockReadGuard<'a, IndexTail>>,
    pub(super) layers: &'a Layers,
    pub(super) known: RwLockReadGuard<'a, KnownEnds>,
}

impl StreamEnds<'_> {
    /// Returns the ends of all these streams.
    pub(crate) fn find_all(&self, streams: &[&str]) -> Result<Vec<Option<StreamEnd>>> {
        let mut found = Vec::with_capacity(streams.len());
        for some in streams.chunks(STREAMS_TOGETHER) {
            if some.len() > 1 {
                self.touch(some);
            }
            for stream in some {
                found.push(self.find(stream)?);
            }
        }
        Ok(found)
    }

    /// Has the processor fetch what is known of these streams.
    fn touch(&self, streams: &[&str]) {
        for tail in &self.tails {
            tail.touch_streams(streams);
        }
        for ends in [&self.known.young, &self.known.old] {
            ends.touch(streams.iter().copied());
        }
    }

    /// Returns the end of a stream, if there is such a stream.
    pub(crate) fn find(&self, stream: &str) -> Result<Option<StreamEnd>> {
        let mut lists = self
            .tails
            .iter()
            .map(|tail| tail.list(TermKind::Stream, stream));
        if let Some(list) = lists.find_map(|list| list) {
            return Ok(Some(StreamEnd::of(list)));
        }
        if let Some(end) = self.known.get(stream) {
            return Ok(Some(end));
        }
        // Not noted as known: the writer may have gone on meanwhile, and whatever it appends to is
        // in a tail from then on.
        let end = self.layers.end_in_runs(stream)?;
        Ok(end.map(|(last_ordinal, last_position)| StreamEnd {
            last_ordinal,
            last_position,
            group_hash: stream_group_hash(stream),
            is_empty: false,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_end_counts_and_the_oldest_are_forgotten() {
        let end = |last_ordinal| StreamEnd {
            last_ordinal,
            last_position: 0,
            group_hash: None,
            is_empty: false,
        };
        let mut known = KnownEnds::default();
        let name = |number: usize| format!("stream-{number:0>1000}");
        let n = GENERATION_BYTES / 1000;
        for number in 0..n {
            known.note(&name(number), end(1));
            known.note("always", end(number as u64));
        }
        let last = |known: &KnownEnds, name: &str| known.get(name).map(|end| end.last_ordinal);
        assert_eq!(last(&known, "always"), Some(n as u64 - 1));
        assert_eq!(last(&known, &name(0)), Some(1));
        (n..3 * n).for_each(|number| known.note(&name(number), end(2)));
        assert_eq!(last(&known, &name(0)), None);
        assert_eq!(last(&known, &name(3 * n - 1)), Some(2));
    }
}
