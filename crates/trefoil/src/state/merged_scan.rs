//! Several scans over entries as one: newer ones over older ones.

use bytes::Bytes;
use trefoil_core::{Direction, Result};

/// One of the scans that are merged, and the entry it is at.
pub(super) struct ScanSource<'a> {
    scan: Box<dyn Iterator<Item = Result<(Bytes, Option<Bytes>)>> + 'a>,
    next: Option<Result<(Bytes, Option<Bytes>)>>,
}

impl<'a> ScanSource<'a> {
    pub(super) fn new(
        mut scan: Box<dyn Iterator<Item = Result<(Bytes, Option<Bytes>)>> + 'a>,
    ) -> Self {
        let next = scan.next();
        Self { scan, next }
    }

    pub(super) fn changed(
        entries: impl DoubleEndedIterator<Item = (&'a Bytes, &'a Option<Bytes>)> + 'a,
        direction: Direction,
    ) -> Self {
        let own = |(key, value): (&Bytes, &Option<Bytes>)| Ok((key.clone(), value.clone()));
        match direction {
            Direction::Forwards => Self::new(Box::new(entries.map(own))),
            Direction::Backwards => Self::new(Box::new(entries.rev().map(own))),
        }
    }
}

/// Several scans as one: of entries with one key, that of the first source counts.
pub(super) struct MergedScan<'a> {
    pub(super) sources: Vec<ScanSource<'a>>,
    pub(super) direction: Direction,
}

impl MergedScan<'_> {
    /// Returns the key that comes next, or an error.
    fn next_key(&mut self) -> Option<Result<Bytes>> {
        let mut first: Option<&Bytes> = None;
        for source in &mut self.sources {
            match &source.next {
                Some(Err(_)) => return source.next.take().map(|next| next.map(|(key, _)| key)),
                Some(Ok((key, _))) => {
                    let is_first = first.is_none_or(|first| match self.direction {
                        Direction::Forwards => key < first,
                        Direction::Backwards => key > first,
                    });
                    if is_first {
                        first = Some(key);
                    }
                }
                None => {}
            }
        }
        first.cloned().map(Ok)
    }
}

impl Iterator for MergedScan<'_> {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let key = match self.next_key()? {
                Ok(key) => key,
                Err(error) => return Some(Err(error)),
            };
            let mut counts = None;
            for source in &mut self.sources {
                if matches!(&source.next, Some(Ok((other, _))) if *other == key) {
                    let entry = std::mem::replace(&mut source.next, source.scan.next());
                    if let (None, Some(Ok((_, value)))) = (&counts, entry) {
                        counts = Some(value);
                    }
                }
            }
            if let Some(Some(value)) = counts {
                return Some(Ok((key, value)));
            }
        }
    }
}
