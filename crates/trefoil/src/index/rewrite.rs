//! Writing a run again without postings: those of events that the log has dropped, and those of terms
//! that redacted events do not have any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use trefoil_core::{Result, put_varint};
use trefoil_storage::{Batch, Sink};

use super::build::{PostingWriter, merge, put_summary};
use super::postings::{Posting, TermSummary};
use super::run::{
    ID, INLINE_POSTINGS_MAX, Run, RunTerm, TERM, TIME, decode_positions, encode_positions, time_key,
};
use super::term::{TermKind, take_name};
use super::{Index, ManifestRun};

/// Says whether a posting of a kind of term at a position is kept.
pub(crate) type KeepPosting<'a> = dyn Fn(TermKind, u64) -> bool + 'a;

/// What a run has lost when it was written again.
#[derive(Debug, Default)]
pub(crate) struct RunLoss {
    /// How many events.
    pub(crate) events: u64,
    /// Of each category, how many events, and by how many it counts fewer streams.
    pub(crate) categories: BTreeMap<String, (u64, u64)>,
    /// By how many it counts fewer streams in all.
    pub(crate) streams: u64,
}

impl Index {
    /// Writes a run again with the postings that are kept. `note` gets what the run has lost, and may add
    /// to what is written together with it. No other run may be written meanwhile. Returns how many bytes
    /// the run has then; the old one is still there.
    pub(crate) fn rewrite(
        &self,
        run: &Arc<Run>,
        keeps: &KeepPosting<'_>,
        note: &mut dyn FnMut(&RunLoss, &mut Batch),
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        let (mut bytes, mut loss) = (0, RunLoss::default());
        let name = self.load_run(&mut |sink| {
            loss = RunLoss::default();
            kept_of(run, keeps, &mut loss, &mut |key, value| {
                go_on()?;
                bytes += (key.len() + value.len()) as u64;
                sink(key, value)
            })
        })?;
        let described = ManifestRun {
            name,
            first_position: run.first_position,
            last_position: run.last_position,
            events: run.n_events.saturating_sub(loss.events),
            highest_time: run.highest_time.0,
            missing: None,
        };
        let mut batch = Batch::default();
        note(&loss, &mut batch);
        // What loses events loses all that are missing.
        let has_same_events = loss.events == 0;
        self.replace_runs(std::slice::from_ref(run), described, batch, has_same_events)?;
        Ok(bytes)
    }
}

/// Hands the entries of a run with the postings that are kept to `sink`.
fn kept_of(
    run: &Arc<Run>,
    keeps: &KeepPosting<'_>,
    loss: &mut RunLoss,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let runs = std::slice::from_ref(run);
    let mut long_terms: Vec<(TermKind, String, Vec<u8>)> = Vec::new();
    merge(runs, TERM, &mut |key, values| {
        let (kind, name) = term_of(run, &key[1..])?;
        let Some((_, value)) = values.first() else {
            return Ok(());
        };
        let term = RunTerm::decode(value).ok_or_else(|| run.damaged("unreadable term"))?;
        let mut kept = KeptPostings::default();
        run.for_each_posting(kind, &name, &mut |posting| {
            if keeps(kind, posting.position) {
                kept.push(posting);
            }
            Ok(())
        })?;
        loss.note(kind, &name, &term.summary, kept.summary.n);
        if kept.summary.n == 0 {
            return Ok(());
        }
        kept.summary.new_streams = term.summary.new_streams;
        if kept.summary.n > INLINE_POSTINGS_MAX {
            kept.first.clear();
            long_terms.push((kind, name, key[1..].to_vec()));
        }
        put_summary(&key[1..], &kept.summary, &kept.first, sink)
    })?;
    for (kind, name, key) in &long_terms {
        let mut blocks = PostingWriter::new(key, *kind, sink);
        run.for_each_posting(
            *kind,
            name,
            &mut |posting| match keeps(*kind, posting.position) {
                true => blocks.push(posting),
                false => Ok(()),
            },
        )?;
        blocks.finish()?;
    }
    merge(runs, ID, &mut |key, values| {
        let mut positions = Vec::new();
        for (run, value) in values {
            decode_positions(value, &mut positions).ok_or_else(|| run.damaged("unreadable id"))?;
        }
        positions.retain(|position| keeps(TermKind::All, *position));
        match positions.is_empty() {
            true => Ok(()),
            false => sink(key.to_vec(), encode_positions(&positions)),
        }
    })?;
    let mut has_times = false;
    merge(runs, TIME, &mut |key, values| {
        let Some((_, value)) = values.first() else {
            return Ok(());
        };
        has_times = true;
        sink(key.to_vec(), value.to_vec())
    })?;
    if has_times {
        return Ok(());
    }
    // No map is empty. To look for a time from the beginning of the run on is never wrong.
    let mut position = Vec::new();
    put_varint(&mut position, run.first_position);
    sink(time_key(run.highest_time), position)
}

fn term_of(run: &Run, key: &[u8]) -> Result<(TermKind, String)> {
    let kind = key
        .first()
        .and_then(|kind| TermKind::EVERY.get(usize::from(*kind)));
    let term = kind.copied().zip(take_name(key));
    term.ok_or_else(|| run.damaged("unreadable key of a term"))
}

/// The postings of a term that are kept: what is known of them, and the first ones.
#[derive(Default)]
struct KeptPostings {
    summary: TermSummary,
    first: Vec<Posting>,
}

impl KeptPostings {
    fn push(&mut self, posting: Posting) {
        let Posting { position, ordinal } = posting;
        if self.summary.n == 0 {
            self.summary.first_position = position;
            self.summary.first_ordinal = ordinal;
        }
        self.summary.n += 1;
        self.summary.last_position = position;
        self.summary.last_ordinal = ordinal;
        if self.summary.n <= INLINE_POSTINGS_MAX {
            self.first.push(posting);
        }
    }
}

impl RunLoss {
    fn note(&mut self, kind: TermKind, name: &str, before: &TermSummary, n_kept: u64) {
        let events = before.n - n_kept;
        // A term that stays keeps its number of streams; one that goes takes it along.
        let streams = if n_kept == 0 { before.new_streams } else { 0 };
        match kind {
            TermKind::All => (self.events, self.streams) = (events, streams),
            TermKind::Category if events > 0 => {
                self.categories.insert(name.to_owned(), (events, streams));
            }
            _ => {}
        }
    }
}
