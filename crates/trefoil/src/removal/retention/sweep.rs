//! Which events are beyond a policy.
//!
//! What is too old in a category is found by its events, from the oldest on, and each is looked at once.
//! Streams with too many events are found by name in the parts of the index that have events which were not
//! counted yet.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use hashbrown::HashSet;
use trefoil_core::{Direction, Result, Timestamp};

use super::pass::{PolicySweep, RetentionPass};
use super::policy::RetentionTarget;
use crate::database::engine::Engine;
use crate::index::{Layer, Layers, TermKind, TermLookup, names};
use crate::read::listing::first_at;
use crate::read::{decode, fetch_all};
use crate::removal::entries::stream_removal;
use crate::removal::resolve::{RemovalWork, resolve};
use crate::removal::truncate::RemoveBefore;
use crate::state::StoreReader;

/// How many streams, and about how many events and names, one step looks at.
const STREAMS_PER_STEP: usize = 256;
const LOOKS_PER_STEP: usize = 4096;
/// How many events or names are looked at together.
const PAGE: usize = 256;
/// How many events of a stream with gaps are counted at a time.
const COUNTED: usize = 4096;

/// How far a policy is applied in a pass.
#[derive(Debug)]
pub(super) enum SweepStage {
    /// What is too old is looked for.
    Age,
    /// These streams, which have got events lately, are counted.
    CountRecent(Vec<String>),
    /// Streams that have too many events are looked for in the runs of the index, after the one of this
    /// name.
    Count(String),
}

/// What is too old at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgeCut {
    /// The first position that is not.
    position: u64,
    /// The time of the event there, in milliseconds since 1970; `None` if all events are too old.
    time: Option<u64>,
}

/// One step of a pass.
pub(super) struct Sweeper<'a> {
    engine: &'a Engine,
    pass: &'a mut RetentionPass,
    layers: Arc<Layers>,
    entries: StoreReader,
    /// By stream: what is too old and what is too many may be of the same one.
    removals: BTreeMap<String, RemovalWork>,
    n_looks: usize,
}

impl<'a> Sweeper<'a> {
    pub(super) fn new(engine: &'a Engine, pass: &'a mut RetentionPass) -> Self {
        Self {
            engine,
            pass,
            layers: engine.index.layers(),
            entries: engine.store.read(),
            removals: BTreeMap::new(),
            n_looks: 0,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.removals.len() < STREAMS_PER_STEP && self.n_looks < LOOKS_PER_STEP
    }

    pub(super) fn into_removals(self) -> Vec<RemovalWork> {
        self.removals.into_values().collect()
    }

    /// Looks for some of what is beyond a policy. Returns whether that is all.
    pub(super) fn look(&mut self, sweep: &mut PolicySweep) -> Result<bool> {
        self.n_looks += 1;
        match std::mem::replace(&mut sweep.stage, SweepStage::Age) {
            SweepStage::Age => {
                if let Some(max_age) = sweep.policy.max_age
                    && !self.look_for_old(sweep, max_age)?
                {
                    return Ok(false);
                }
                let Some(max_count) = sweep.policy.max_count else {
                    return Ok(true);
                };
                sweep.stage = match &sweep.target {
                    RetentionTarget::Stream(_) => SweepStage::Count(String::new()),
                    RetentionTarget::Category(category) => {
                        let since = sweep.progress.counted_to;
                        SweepStage::CountRecent(self.recent(category, max_count, since))
                    }
                };
                Ok(false)
            }
            SweepStage::CountRecent(mut streams) => {
                let some = streams.split_off(streams.len().saturating_sub(PAGE));
                self.n_looks += some.len();
                for stream in some {
                    if let Some(max_count) = sweep.policy.max_count
                        && !self.pass.own.contains(&stream)
                    {
                        self.count_stream(&stream, max_count)?;
                    }
                }
                sweep.stage = match streams.is_empty() {
                    true => SweepStage::Count(String::new()),
                    false => SweepStage::CountRecent(streams),
                };
                Ok(false)
            }
            SweepStage::Count(after) => {
                let Some(max_count) = sweep.policy.max_count else {
                    return Ok(true);
                };
                match &sweep.target {
                    RetentionTarget::Stream(stream) => {
                        self.count_stream(stream, max_count)?;
                        Ok(true)
                    }
                    RetentionTarget::Category(category) => {
                        let since = sweep.progress.counted_to;
                        let next = self.count_category(category, max_count, since, &after)?;
                        match next {
                            None => sweep.progress.counted_to = self.pass.head,
                            Some(next) => sweep.stage = SweepStage::Count(next),
                        }
                        Ok(matches!(sweep.stage, SweepStage::Age))
                    }
                }
            }
        }
    }

    /// Returns whether nothing that is too old is left.
    fn look_for_old(&mut self, sweep: &mut PolicySweep, max_age: u64) -> Result<bool> {
        let cut = self.cut(max_age)?;
        let (kind, name) = match &sweep.target {
            RetentionTarget::Stream(stream) => {
                self.remove(stream, RemoveBefore::Position(cut.position))?;
                (TermKind::Stream, stream)
            }
            RetentionTarget::Category(category) => {
                let from = sweep.progress.aged_to.max(1);
                let next = self.look_for_old_in(category, from, cut.position)?;
                sweep.progress.aged_to = next.unwrap_or_else(|| cut.position.max(from));
                if next.is_some() {
                    return Ok(false);
                }
                (TermKind::Category, category)
            }
        };
        self.note_next(kind, name, cut, max_age)?;
        Ok(true)
    }

    /// Returns what is older than so many seconds.
    fn cut(&mut self, max_age: u64) -> Result<AgeCut> {
        if let Some(cut) = self.pass.cuts.get(&max_age) {
            return Ok(*cut);
        }
        let age = i64::try_from(max_age).unwrap_or(i64::MAX);
        let time = Timestamp(
            self.pass
                .now
                .0
                .saturating_sub(age.saturating_mul(1_000_000_000)),
        );
        let first = first_at(self.engine, time)?;
        let cut = AgeCut {
            position: first
                .as_ref()
                .map_or(self.pass.head + 1, |event| event.position()),
            time: first.map(|event| event.time().millis()),
        };
        self.pass.cuts.insert(max_age, cut);
        Ok(cut)
    }

    /// Removes what is before the cut of the streams of some events of a category. Returns from where on to
    /// look next, if there are more.
    fn look_for_old_in(&mut self, category: &str, from: u64, cut: u64) -> Result<Option<u64>> {
        let layers = Arc::clone(&self.layers);
        let mut term = TermLookup::new(&layers, TermKind::Category, category);
        let mut positions = Vec::with_capacity(PAGE);
        term.page(from, Direction::Forwards, PAGE, &mut positions)?;
        let is_full = positions.len() == PAGE;
        positions.retain(|position| *position < cut);
        self.n_looks += positions.len();
        for stream in self.streams_at(&positions)? {
            if !self.pass.own.contains(&stream) {
                self.remove(&stream, RemoveBefore::Position(cut))?;
            }
        }
        let has_more = is_full && positions.len() == PAGE;
        let last = positions.last().filter(|_| has_more);
        Ok(last.map(|last| last + 1))
    }

    /// Returns the streams of the events at these positions, as far as the log still has them.
    fn streams_at(&self, positions: &[u64]) -> Result<HashSet<String>> {
        let (mut streams, mut failure) = (HashSet::new(), None);
        self.engine
            .storage
            .read(positions, &mut |item| match decode(item) {
                Ok(event) => {
                    if let Some(stream) = event.stream()
                        && !streams.contains(stream)
                    {
                        streams.insert(stream.to_owned());
                    }
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            })?;
        failure.map_or(Ok(streams), Err)
    }

    /// Notes when the first event after the cut will be too old. The cut stays where it is until the event
    /// there is too old as well.
    fn note_next(&mut self, kind: TermKind, name: &str, cut: AgeCut, max_age: u64) -> Result<()> {
        let Some(cut_time) = cut.time else {
            return Ok(());
        };
        if let Some(time) = self.first_time(kind, name, cut.position)? {
            let due = time
                .max(cut_time)
                .saturating_add(max_age.saturating_mul(1000));
            // Only what is older than that is removed.
            self.pass.next = self.pass.next.min(due.saturating_add(1));
        }
        Ok(())
    }

    /// Returns the time of the first event of a term from a position on, in milliseconds since 1970. The
    /// index may have many before it that were dropped: if it is not among as many as one step looks at, it
    /// is taken to be as old as can be, and the next pass looks further.
    fn first_time(&mut self, kind: TermKind, name: &str, mut from: u64) -> Result<Option<u64>> {
        let (layers, storage) = (Arc::clone(&self.layers), self.engine.storage.as_ref());
        let mut term = TermLookup::new(&layers, kind, name);
        let mut page = Vec::with_capacity(PAGE);
        for _ in 0..LOOKS_PER_STEP / PAGE {
            page.clear();
            term.page(from, Direction::Forwards, PAGE, &mut page)?;
            let mut first = None;
            storage.read_labels(&page, &mut |position, _| {
                first.get_or_insert(position);
            })?;
            if let Some(event) = fetch_all(storage, first.as_slice())?.first() {
                return Ok(Some(event.time().millis()));
            }
            match page.last() {
                Some(last) if page.len() == PAGE => from = last + 1,
                _ => return Ok(None),
            }
            self.n_looks += PAGE;
        }
        Ok(Some(0))
    }

    /// Returns streams of a category that have got events at or after a position, may have too many, and are
    /// in the part of the index that is in memory.
    fn recent(&self, category: &str, max_count: u64, since: u64) -> Vec<String> {
        let prefix = format!("{category}-");
        names::in_memory(&self.layers, TermKind::Stream, &prefix, |summary| {
            summary.last_position >= since && summary.last_ordinal >= max_count
        })
    }

    /// Looks for streams of a category with too many events, of those that runs have some of at or after a
    /// position, by name after `after`. Returns the last name, if there are more.
    fn count_category(
        &mut self,
        category: &str,
        max_count: u64,
        since: u64,
        after: &str,
    ) -> Result<Option<String>> {
        let runs = self.layers.layers.iter();
        let newer = runs.filter(|layer| {
            matches!(layer, Layer::Run(_)) && layer.reaches(since, Direction::Forwards)
        });
        let newer = Layers {
            layers: newer.cloned().collect(),
        };
        if after.is_empty() && !self.pass.own.contains(category) {
            self.count_stream(category, max_count)?;
        }
        let prefix = format!("{category}-");
        let found = names::list(&newer, TermKind::Stream, &prefix, after, PAGE)?;
        self.n_looks += found.len();
        let is_last = found.len() < PAGE;
        let mut last = None;
        for (stream, summary) in found {
            let is_new = summary.last_position >= since;
            // Most streams have few events.
            if is_new && summary.last_ordinal >= max_count && !self.pass.own.contains(&stream) {
                self.count_stream(&stream, max_count)?;
            }
            last = Some(stream);
        }
        Ok(last.filter(|_| !is_last))
    }

    /// Removes the oldest events of a stream that has too many.
    fn count_stream(&mut self, stream: &str, max_count: u64) -> Result<()> {
        let layers = Arc::clone(&self.layers);
        let mut term = TermLookup::new(&layers, TermKind::Stream, stream);
        let Some(summary) = term.summary()? else {
            return Ok(());
        };
        let removed = stream_removal(&self.entries, stream)?;
        let first_kept = removed.map_or(0, |removed| removed.first_kept);
        let next_ordinal = summary.last_ordinal + 1;
        if next_ordinal.saturating_sub(first_kept) <= max_count {
            return Ok(());
        }
        if summary.is_dense() {
            return self.remove(
                stream,
                RemoveBefore::StreamPosition(next_ordinal - max_count),
            );
        }
        // Its positions have gaps.
        let (mut from, mut left) = (summary.last_position, max_count);
        let mut page = Vec::with_capacity(COUNTED);
        while left > 0 {
            let n = COUNTED.min(usize::try_from(left).unwrap_or(COUNTED));
            page.clear();
            term.page(from, Direction::Backwards, n, &mut page)?;
            left -= page.len() as u64;
            match page.last() {
                Some(last) if page.len() == n => from = last.saturating_sub(u64::from(left > 0)),
                // It has fewer.
                _ => return Ok(()),
            }
        }
        self.remove(stream, RemoveBefore::Position(from))
    }

    fn remove(&mut self, stream: &str, before: RemoveBefore) -> Result<()> {
        let Some(work) = resolve(self.engine, stream, before, None)? else {
            return Ok(());
        };
        let found = self.removals.get(stream);
        if found.is_none_or(|found| found.after.floor < work.after.floor) {
            self.removals.insert(work.stream.clone(), work);
        }
        Ok(())
    }
}
