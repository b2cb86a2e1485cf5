//! Verifying a database: every checksum, the order of everything, and index against log.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use trefoil_core::{Error, Event, Result};
use trefoil_storage::local::{Finding, LogReport};
use trefoil_storage::{Record, Snapshot, StoredItem};

use super::compare::Comparison;
use super::removals::KnownRemovals;
use super::tool_cache;
use crate::home::{Claim, OpenedGeneration};
use crate::index::Index;
use crate::read::decode;
use crate::read::label;

/// What a database holds and what is wrong with it.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// Segments of the log.
    pub segments: u64,
    /// Records in them.
    pub records: u64,
    /// Commits in those.
    pub commits: u64,
    /// Events in those.
    pub events: u64,
    /// What the snapshot of the state is, if there is one.
    pub snapshot: Option<Snapshot>,
    /// Bytes of the log that were read.
    pub bytes: u64,
    /// Postings of the index on disk that were compared with the log.
    pub postings: u64,
    /// All that is wrong; empty for a sound database.
    pub findings: Vec<Finding>,
}

/// How far verifying is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyStep {
    /// Checking the segments of the log.
    Log {
        /// Segments that are done.
        done: u64,
        /// Segments that there are.
        total: u64,
    },
    /// Comparing the index with the log.
    Index {
        /// Events that are done.
        done: u64,
        /// Events that there are.
        total: u64,
    },
}

/// Verifies a database. It changes nothing, and finds all that is wrong rather than only the first.
/// If the log is damaged, the index is not looked at.
pub fn verify(claim: &dyn Claim, progress: &mut dyn FnMut(VerifyStep)) -> Result<VerifyReport> {
    let verified = claim.verify(&mut |step| {
        progress(VerifyStep::Log {
            done: step.segments_done,
            total: step.segments_total,
        });
    })?;
    let mut report = from_log(verified.log);
    if report.findings.is_empty() {
        let opened = claim.open(claim.facts()?.generation, &tool_cache(), &|_| Ok(0))?;
        verify_events(opened, &mut report, progress)?;
    }
    report.findings.extend(verified.beside);
    Ok(report)
}

fn from_log(log: LogReport) -> VerifyReport {
    VerifyReport {
        segments: log.segments,
        records: log.records,
        commits: log.commits,
        events: log.items,
        snapshot: log.snapshot,
        bytes: log.bytes,
        postings: 0,
        findings: log.findings,
    }
}

fn verify_events(
    opened: OpenedGeneration,
    report: &mut VerifyReport,
    progress: &mut dyn FnMut(VerifyStep),
) -> Result<()> {
    let OpenedGeneration { storage, place, .. } = opened;
    let log_file = place.join("log");
    let index = match Index::open(Arc::clone(&storage), usize::MAX, Arc::default()) {
        Ok(index) => Some(index),
        Err(Error::Damaged(damage)) => {
            report.findings.push(Finding {
                file: place.join(&damage.file),
                offset: damage.offset,
                position: damage.position,
                what: damage.what,
            });
            None
        }
        Err(error) => return Err(error),
    };
    let mut comparison = index
        .as_ref()
        .map(|index| Comparison::new(index, storage.as_ref(), place.join("maps")))
        .transpose()?;
    let removals = match &index {
        Some(index) => KnownRemovals::load(index, storage.as_ref())?,
        None => None,
    };
    let mut order = EventOrder::knowing(removals);
    let (mut done, total) = (0, report.events);
    storage.replay(0, &mut |record| {
        if record.items.has_dropped() {
            order.expect_gaps(record);
            if let Some(comparison) = &mut comparison {
                comparison.add_dropped(record);
            }
        }
        for (event, label) in events_of(record)? {
            order.check(&event, label::is_imported(label), &mut |what| {
                let (file, position) = (log_file.clone(), event.position());
                report.findings.push(Finding {
                    file,
                    offset: 0,
                    position,
                    what,
                });
            })?;
            if let Some(comparison) = &mut comparison {
                comparison.add(&event, label, &mut report.findings)?;
            }
        }
        if let Some(comparison) = &mut comparison {
            comparison.add_commits(record)?;
        }
        done += record.items.len() as u64;
        progress(VerifyStep::Index { done, total });
        Ok(())
    })?;
    if let Some(comparison) = comparison {
        report.postings = comparison.finish(&mut report.findings)?;
    }
    Ok(())
}

/// Returns the events of a record with their labels.
pub(crate) fn events_of(record: &Record) -> Result<Vec<(Event, trefoil_storage::Label)>> {
    record
        .items()
        .map(|(position, label, bytes)| {
            let bytes = bytes::Bytes::copy_from_slice(bytes);
            Ok((
                decode(StoredItem {
                    position,
                    label,
                    bytes,
                })?,
                label,
            ))
        })
        .collect()
}

/// The order that positions must have, and what must be known of what is missing.
#[derive(Debug, Default)]
pub(crate) struct EventOrder {
    last_position: u64,
    last_in_stream: HashMap<String, u64>,
    /// What was removed, if that is known.
    removals: Option<KnownRemovals>,
    /// Whether events were dropped.
    has_gaps: bool,
    /// The positions after the last event from which events were dropped.
    dropped: VecDeque<u64>,
}

impl EventOrder {
    /// Takes it that nothing else was removed.
    pub(crate) fn knowing(removals: Option<KnownRemovals>) -> Self {
        Self {
            removals,
            ..Self::default()
        }
    }

    /// Events of a record were dropped.
    pub(crate) fn expect_gaps(&mut self, record: &Record) {
        self.has_gaps = true;
        let items = (record.first_position..).zip(record.items.iter());
        let dropped = items.filter_map(|(position, item)| item.is_none().then_some(position));
        self.dropped.extend(dropped);
    }

    /// Positions ascend; only an imported one may leave a gap before it, unless events were dropped there.
    /// The same holds within each stream, which lacks only what was removed. A redacted event is a stub.
    pub(crate) fn check(
        &mut self,
        event: &Event,
        is_imported: bool,
        find: &mut dyn FnMut(String),
    ) -> Result<()> {
        let position = event.position();
        while let Some(dropped) = self.dropped.pop_front_if(|dropped| *dropped < position) {
            self.last_position = self.last_position.max(dropped);
        }
        let last = self.last_position;
        if position <= last || (position != last + 1 && !is_imported) {
            find(format!("position {position} follows position {last}"));
        }
        self.last_position = position;
        let removals = self.removals.as_ref();
        if let Some(what) = removals.and_then(|removals| removals.check_stub(event)) {
            find(what);
        }
        let (Some(stream), Some(at)) = (event.stream(), event.stream_position()) else {
            return Ok(());
        };
        let before = self.last_in_stream.get(stream).copied();
        let is_next = at == before.map_or(0, |before| before + 1);
        let may_skip = match (is_next || is_imported, removals) {
            (true, _) => true,
            (false, Some(removals)) => self.has_gaps && at <= removals.first_kept(stream)?,
            (false, None) => self.has_gaps,
        };
        match before {
            Some(before) if at <= before || !may_skip => {
                find(format!("position {at} of stream {stream} follows {before}"));
            }
            None if !may_skip => find(format!("stream {stream} begins at position {at}")),
            _ => {}
        }
        match self.last_in_stream.get_mut(stream) {
            Some(before) => *before = at,
            None => {
                self.last_in_stream.insert(stream.to_owned(), at);
            }
        }
        Ok(())
    }
}
