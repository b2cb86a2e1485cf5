//! What the benchmark asks of a store, Trefoil and baselines alike.

use anyhow::{Result, ensure};
use trefoil::NewEvent;

use crate::workload::{CATEGORY_READ, Reads, STREAM_READ};

/// A store under measurement.
pub(crate) trait System {
    /// Appends the events, all or nothing, and returns when they are durable. It may take them out
    /// of the vector; what it leaves is dropped outside the timed section.
    fn append(&mut self, events: &mut Vec<NewEvent>) -> Result<()>;

    /// Reads `limit` events of a stream from a position in it and touches every body.
    fn read_stream(&self, stream: &str, from: u64, limit: usize) -> Result<Touched>;

    /// Reads `limit` events of a category from a global position and touches every body.
    fn read_category(&self, category: &str, from: u64, limit: usize) -> Result<Touched>;
}

/// Proof that events were read: how many, and a sum over the bytes of all bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Touched {
    pub(crate) events: usize,
    pub(crate) sum: u64,
}

impl Touched {
    /// Reads every byte of a body, eight at a time: this must cost nothing beside the read itself.
    pub(crate) fn touch(&mut self, body: &[u8]) {
        self.events += 1;
        let (words, rest) = body.as_chunks::<8>();
        for word in words {
            self.sum = self.sum.wrapping_add(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.sum = self.sum.wrapping_add(u64::from(*byte));
        }
    }
}

/// The two kinds of reads that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Stream,
    Category,
}

impl Kind {
    /// How many events one read returns.
    pub(crate) fn events(self) -> usize {
        match self {
            Self::Stream => STREAM_READ,
            Self::Category => CATEGORY_READ,
        }
    }
}

/// Does the next read of a kind and checks that it found what it must.
pub(crate) fn read_next(system: &dyn System, kind: Kind, reads: &mut Reads) -> Result<Touched> {
    let limit = kind.events();
    let target = match kind {
        Kind::Stream => reads.stream(),
        Kind::Category => reads.category(),
    };
    let Some((name, from)) = target else {
        anyhow::bail!("too few events for reads of {limit}: load more");
    };
    let touched = match kind {
        Kind::Stream => system.read_stream(name, from, limit)?,
        Kind::Category => system.read_category(name, from, limit)?,
    };
    let found = touched.events;
    ensure!(
        found == limit,
        "a read of {name} from {from} found {found} events, not {limit}"
    );
    Ok(touched)
}
