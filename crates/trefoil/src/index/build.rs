//! Making the entries of a run, in the order of their keys: from a tail, or from older runs.
//!
//! Both go through the same two walks over the terms: first every term's summary (with its postings
//! if they are few), then the blocks of the terms that have many.

use std::sync::Arc;

use trefoil_core::{Direction, Result, put_varint};
use trefoil_storage::{Entry, Sink};

use super::list::PostingList;
use super::postings::{Posting, TermSummary, encode_block};
use super::run::{
    BLOCK, BLOCK_POSTINGS, ID, INLINE_POSTINGS_MAX, Run, RunTerm, TERM, TIME, decode_positions,
    encode_positions, time_key,
};
use super::tail::{IndexTail, POSITIONS_PER_ID_MAX};
use super::term::{TermKind, put_term};

/// Hands the entries of a run with the contents of `tail` to `sink`.
pub(crate) fn from_tail(tail: &IndexTail, sink: &mut Sink<'_>) -> Result<()> {
    // Keys sort by kind and then as names do.
    let mut terms: Vec<(TermKind, &str, &PostingList)> = Vec::new();
    for kind in TermKind::EVERY {
        let start = terms.len();
        terms.extend(tail.lists(kind).map(|(name, list)| (kind, name, list)));
        terms[start..].sort_unstable_by_key(|(_, name, _)| *name);
    }
    put_terms(&terms, sink)?;
    let mut key = Vec::new();
    for &(kind, name, list) in &terms {
        if list.len() as u64 > INLINE_POSTINGS_MAX {
            key.clear();
            put_term(&mut key, kind, name);
            let mut blocks = PostingWriter::new(&key, kind, sink);
            (0..list.len()).try_for_each(|index| blocks.push(list.posting(index)))?;
            blocks.finish()?;
        }
    }

    let mut ids: Vec<(u64, &[u64])> = tail
        .ids()
        .iter()
        .map(|(hash, positions)| (*hash, positions.as_slice()))
        .collect();
    ids.sort_unstable();
    for (hash, positions) in ids {
        let mut key = vec![ID];
        key.extend_from_slice(&hash.to_be_bytes());
        sink(key, encode_positions(positions))?;
    }
    for &(time, position) in tail.times() {
        let mut value = Vec::new();
        put_varint(&mut value, position);
        sink(time_key(time), value)?;
    }
    Ok(())
}

/// This many terms are looked at together: their lists are not in the processor's caches, and it
/// fetches those that are touched first at the same time.
const TERMS_TOGETHER: usize = 32;

/// Hands the summaries of terms, and their postings if they are few, to `sink`.
fn put_terms(terms: &[(TermKind, &str, &PostingList)], sink: &mut Sink<'_>) -> Result<()> {
    let (mut key, mut postings) = (Vec::new(), Vec::new());
    for some in terms.chunks(TERMS_TOGETHER) {
        let ends = some.iter().map(|(_, _, list)| list.last_position());
        std::hint::black_box(ends.fold(0, std::ops::BitXor::bitxor));
        for (kind, name, list) in some {
            let Some(summary) = list.summary() else {
                continue;
            };
            postings.clear();
            if summary.n <= INLINE_POSTINGS_MAX {
                postings.extend((0..list.len()).map(|index| list.posting(index)));
            }
            key.clear();
            put_term(&mut key, *kind, name);
            put_summary(&key, &summary, &postings, sink)?;
        }
    }
    Ok(())
}

/// Hands the entries of a run with the contents of `runs`, which follow each other, to `sink`.
pub(crate) fn from_runs(runs: &[Arc<Run>], sink: &mut Sink<'_>) -> Result<()> {
    let mut long_terms: Vec<Vec<u8>> = Vec::new();
    let mut postings = Vec::new();
    merge(runs, TERM, &mut |key, values| {
        let mut terms = Vec::with_capacity(values.len());
        for (run, value) in values {
            let term = RunTerm::decode(value).ok_or_else(|| run.damaged("unreadable term"))?;
            terms.push((run, term));
        }
        let summaries = terms.iter().map(|(_, term)| term.summary);
        let Some(summary) = summaries.reduce(|all, later| all.followed_by(&later)) else {
            return Ok(());
        };
        postings.clear();
        if summary.n <= INLINE_POSTINGS_MAX {
            for (run, term) in &terms {
                run.inline_postings(term, &mut postings)?;
            }
        } else {
            long_terms.push(key[1..].to_vec());
        }
        put_summary(&key[1..], &summary, &postings, sink)
    })?;
    for key in &long_terms {
        merge_blocks(runs, key, sink)?;
    }
    merge(runs, ID, &mut |key, values| {
        let mut positions = Vec::new();
        for (run, value) in values {
            decode_positions(value, &mut positions).ok_or_else(|| run.damaged("unreadable id"))?;
        }
        positions.truncate(POSITIONS_PER_ID_MAX);
        sink(key.to_vec(), encode_positions(&positions))
    })?;
    merge(runs, TIME, &mut |key, values| match values.first() {
        Some((_, value)) => sink(key.to_vec(), value.to_vec()),
        None => Ok(()),
    })
}

fn merge_blocks(runs: &[Arc<Run>], key: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let unreadable = || runs[0].damaged("unreadable key of a term");
    let kind = *TermKind::EVERY
        .get(usize::from(key[0]))
        .ok_or_else(unreadable)?;
    let name = super::term::take_name(key).ok_or_else(unreadable)?;
    let mut blocks = PostingWriter::new(key, kind, sink);
    for run in runs {
        run.for_each_posting(kind, &name, &mut |posting| blocks.push(posting))?;
    }
    blocks.finish()
}

/// A key, and its value in each of the runs that have it, oldest first.
pub(super) type VisitKey<'a> = dyn FnMut(&[u8], &[(&Run, bytes::Bytes)]) -> Result<()> + 'a;

/// Walks over the keys of `runs` that begin with `prefix`, in order.
pub(super) fn merge(runs: &[Arc<Run>], prefix: u8, visit: &mut VisitKey<'_>) -> Result<()> {
    let mut scans = Vec::with_capacity(runs.len());
    for run in runs.iter().map(Arc::as_ref) {
        let mut scan = run.map.scan(&[prefix], &[prefix + 1], Direction::Forwards);
        let next: Option<Entry> = scan.next().transpose()?;
        scans.push((run, scan, next));
    }
    loop {
        let heads = scans.iter().filter_map(|(_, _, next)| next.as_ref());
        let Some(key) = heads.map(|(key, _)| key.clone()).min() else {
            return Ok(());
        };
        let mut values = Vec::with_capacity(scans.len());
        for (run, scan, next) in &mut scans {
            if next.as_ref().is_some_and(|(next, _)| *next == key)
                && let Some((_, value)) = next.take()
            {
                values.push((*run, value));
                *next = scan.next().transpose()?;
            }
        }
        visit(&key, &values)?;
    }
}

/// Writes a term's summary and, unless they are many, its postings.
pub(super) fn put_summary(
    term: &[u8],
    summary: &TermSummary,
    postings: &[Posting],
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut key = Vec::with_capacity(term.len() + 1);
    key.push(TERM);
    key.extend_from_slice(term);
    let mut value = Vec::new();
    summary.encode(&mut value);
    encode_block(postings, &mut value);
    sink(key, value)
}

/// Packs the postings of one term into blocks.
pub(super) struct PostingWriter<'a, 'b> {
    term: &'a [u8],
    kind: TermKind,
    pending: Vec<Posting>,
    sink: &'a mut Sink<'b>,
}

impl<'a, 'b> PostingWriter<'a, 'b> {
    pub(super) fn new(term: &'a [u8], kind: TermKind, sink: &'a mut Sink<'b>) -> Self {
        Self {
            term,
            kind,
            pending: Vec::with_capacity(BLOCK_POSTINGS),
            sink,
        }
    }

    pub(super) fn push(&mut self, posting: Posting) -> Result<()> {
        self.pending.push(posting);
        if self.pending.len() == BLOCK_POSTINGS {
            self.finish()
        } else {
            Ok(())
        }
    }

    pub(super) fn finish(&mut self) -> Result<()> {
        let Some(last) = self.pending.last() else {
            return Ok(());
        };
        let order = if self.kind == TermKind::Stream {
            last.ordinal
        } else {
            last.position
        };
        let mut key = Vec::with_capacity(self.term.len() + 9);
        key.push(BLOCK);
        key.extend_from_slice(self.term);
        key.extend_from_slice(&order.to_be_bytes());
        let mut block = Vec::new();
        encode_block(&self.pending, &mut block);
        self.pending.clear();
        (self.sink)(key, block)
    }
}
