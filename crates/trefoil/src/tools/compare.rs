//! Comparing the index on disk with the log, a window of events at a time.

use std::path::PathBuf;
use std::sync::Arc;

use trefoil_core::{Direction, Event, Result, Timestamp};
use trefoil_storage::local::Finding;
use trefoil_storage::{Label, MemoryStorage, Record, Storage};

use crate::database::recovery::replay_state;
use crate::index::{
    Index, IndexTail, IndexedEvent, Layer, Layers, POSITIONS_PER_ID_MAX, TermKind, TermLookup,
    names,
};
use crate::state::{ReadCache, STATE_END, StateStore, View, snapshot_commit};

/// How many events are indexed in memory and compared together.
const WINDOW_EVENTS: usize = 64 * 1024;

/// The runs of an index, being compared with the log.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    index: &'a Index,
    maps: PathBuf,
    runs: Layers,
    /// The last position that the runs must cover.
    last_position: u64,
    window: IndexTail,
    window_start: u64,
    /// Positions of the window whose events the log has dropped. The index may still have them.
    dropped: Vec<u64>,
    /// How many such positions there are anywhere.
    n_dropped: u64,
    /// Positions of events that are being redacted. The index may still have terms of them that the log
    /// does not have any more: the log follows first, and a crash can come in between.
    redacting: Vec<u64>,
    /// How many postings of each kind the log calls for.
    expected: [u64; TermKind::EVERY.len()],
    /// The state as the snapshot and the log have it at the last checkpoint.
    state: StateStore,
    /// The commit of the snapshot.
    snapshot: u64,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(index: &'a Index, storage: &dyn Storage, maps: PathBuf) -> Result<Self> {
        let runs: Vec<Layer> = index
            .layers()
            .runs()
            .map(|run| Layer::Run(Arc::clone(run)))
            .collect();
        let last_position = index
            .layers()
            .runs()
            .last()
            .map_or(0, |run| run.last_position);
        let memory = Arc::new(MemoryStorage::default());
        let state = StateStore::open(
            memory,
            Arc::default(),
            Arc::new(ReadCache::new(0, crate::Clock::default())),
        )?;
        state.restore(storage)?;
        Ok(Self {
            index,
            maps,
            runs: Layers { layers: runs },
            last_position,
            window: new_window(index),
            window_start: 1,
            dropped: Vec::new(),
            n_dropped: 0,
            redacting: index.state()?.redactions.positions(),
            expected: [0; TermKind::EVERY.len()],
            state,
            snapshot: snapshot_commit(storage),
        })
    }

    fn find(&self, findings: &mut Vec<Finding>, position: u64, what: String) {
        findings.push(Finding {
            file: self.maps.clone(),
            offset: 0,
            position,
            what,
        });
    }

    /// Takes what the commits of the next record change besides appending events.
    pub(super) fn add_commits(&mut self, record: &Record) -> Result<()> {
        let (checkpoint, _) = self.index.checkpoint_end();
        if record.last_commit() <= checkpoint {
            replay_state(&self.state, record, self.snapshot)?;
        }
        Ok(())
    }

    /// Takes the positions of events that a record has lost. Its other events come next.
    pub(super) fn add_dropped(&mut self, record: &Record) {
        let items = (record.first_position..).zip(record.items.iter());
        let dropped = items.filter_map(|(position, item)| item.is_none().then_some(position));
        let before = self.dropped.len();
        self.dropped.extend(dropped);
        self.n_dropped += (self.dropped.len() - before) as u64;
    }

    /// Takes the next event of the log.
    pub(super) fn add(
        &mut self,
        event: &Event,
        label: Label,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        if event.position() > self.last_position {
            return Ok(());
        }
        let correlation = event.correlation();
        let indexed = IndexedEvent::of(event, label, correlation.as_deref());
        let places = self.window.prepare(&[indexed], |event| *event);
        self.window.add(&places);
        if let Some(id) = event.given_id() {
            let hash = self.index.id_hash(&id);
            let positions = self.runs.positions_of_id(hash)?;
            let is_one_of_many = positions.len() >= POSITIONS_PER_ID_MAX;
            if !is_one_of_many && !positions.contains(&event.position()) {
                let what = format!("id {} is not in the index", event.id());
                self.find(findings, event.position(), what);
            }
        }
        if self.window.n_events() == WINDOW_EVENTS {
            self.compare_window(findings)?;
        }
        Ok(())
    }

    fn compare_window(&mut self, findings: &mut Vec<Finding>) -> Result<()> {
        let end = self.window.last_position();
        for kind in TermKind::EVERY {
            for (name, list) in self.window.lists(kind) {
                let is_unclear =
                    |position: &u64| may_be_lost(kind) && is_among(&self.redacting, *position);
                let expected: Vec<u64> = (0..list.len())
                    .map(|index| list.posting(index).position)
                    .filter(|position| !is_unclear(position))
                    .collect();
                let max = list.len() + self.dropped.len() + self.redacting.len() + 1;
                let mut found = Vec::with_capacity(max);
                let mut term = TermLookup::new(&self.runs, kind, name);
                let forwards = Direction::Forwards;
                term.page(self.window_start, forwards, max, &mut found)?;
                let is_dropped = |position: &u64| is_among(&self.dropped, *position);
                found.retain(|position| {
                    *position <= end && !is_dropped(position) && !is_unclear(position)
                });
                if found != expected {
                    let what = format!(
                        "the index has {} of {} events of {kind:?} {name:?} between positions {} \
                         and {end}",
                        found.len(),
                        expected.len(),
                        self.window_start
                    );
                    let position = expected.first().or(found.first());
                    self.find(findings, position.copied().unwrap_or(0), what);
                }
                if kind == TermKind::Stream {
                    let place = list.posting(list.len() - 1);
                    let sought = term.seek_ordinal(place.ordinal, forwards)?;
                    if sought != Some(place.position) {
                        let what = format!("position {} of stream {name:?}", place.ordinal);
                        self.find(
                            findings,
                            place.position,
                            format!("{what} is not in the index"),
                        );
                    }
                }
                self.expected[kind as usize] += expected.len() as u64;
            }
        }
        self.window_start = end + 1;
        self.dropped.retain(|position| *position > end);
        self.window = new_window(self.index);
        Ok(())
    }

    /// Compares what is left, and looks for postings that the log does not call for.
    /// Returns how many postings there are.
    pub(super) fn finish(mut self, findings: &mut Vec<Finding>) -> Result<u64> {
        self.compare_window(findings)?;
        let mut total = 0;
        for kind in TermKind::EVERY {
            let mut found = 0;
            let mut after = String::new();
            loop {
                let page = names::list(&self.runs, kind, "", &after, 10_000)?;
                found += page.iter().map(|(_, summary)| summary.n).sum::<u64>();
                let Some((last, _)) = page.last() else { break };
                if *last == after {
                    break;
                }
                after.clone_from(last);
            }
            let expected = self.expected[kind as usize];
            // An event has any number of tags, and one of each other kind at most.
            let more_max = match kind {
                TermKind::Tag if self.n_dropped > 0 => u64::MAX,
                _ => self.n_dropped,
            };
            let is_unclear = may_be_lost(kind) && !self.redacting.is_empty();
            let has_too_many = found.saturating_sub(expected) > more_max && !is_unclear;
            if found < expected || has_too_many {
                let what =
                    format!("the index has {found} postings of {kind:?}, the log has {expected}");
                self.find(findings, 0, what);
            }
            total += found;
        }
        self.compare_state(findings)?;
        Ok(total)
    }

    /// Looks for entries of the state that are not what the log makes of them.
    fn compare_state(&self, findings: &mut Vec<Finding>) -> Result<()> {
        if self.index.checkpoint_end().0 < self.snapshot {
            // Opening will make the map again.
            return Ok(());
        }
        let stored = self.index.state()?;
        let (expected, found) = (View::new(&self.state), View::new(&stored));
        let mut expected = expected.scan(&[], STATE_END, Direction::Forwards);
        let mut found = found.scan(&[], STATE_END, Direction::Forwards);
        loop {
            let (expected, found) = (expected.next().transpose()?, found.next().transpose()?);
            if expected == found && expected.is_none() {
                return Ok(());
            }
            if expected != found {
                let key = expected.or(found).map(|(key, _)| key).unwrap_or_default();
                let key = key.escape_ascii();
                let what = format!(
                    "the state is not what the snapshot and the log make of it, from {key} on"
                );
                self.find(findings, 0, what);
                return Ok(());
            }
        }
    }
}

/// Whether a redacted event can lose terms of a kind.
fn may_be_lost(kind: TermKind) -> bool {
    matches!(kind, TermKind::Tag | TermKind::Correlation)
}

/// Whether a position is among others, which are in order.
fn is_among(positions: &[u64], position: u64) -> bool {
    positions.binary_search(&position).is_ok()
}

fn new_window(index: &Index) -> IndexTail {
    IndexTail::new(index.id_seed(), 0, Timestamp(i64::MIN), Arc::default())
}
