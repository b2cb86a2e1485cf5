//! Redaction: what an event says is removed for ever, and a stub stays in its place.
//!
//! A redaction is an entry of the state, and a second one says that the log still has the event as it
//! was. Those are in memory, too: whoever reads such an event gets the stub. The background puts
//! the stub into the log and takes the terms out of the index that the event does not have any more.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::RwLock;
use trefoil_core::{Direction, Error, Event, EventId, Result, Timestamp, put_varint, take_varint};
use trefoil_state::Space as _;
use trefoil_storage::{StoredItem, Upkeep};

use super::entries::{REMOVAL, read};
use crate::Database;
use crate::database::engine::Engine;
use crate::index::TermKind;
use crate::read::{decode, fetch_all};
use crate::state::{DurableView, View};
use crate::time::NEVER;
use crate::write::Work;

/// What the keys of redactions begin with, and those of redactions that the log has yet to follow.
const REDACTION: u8 = b'r';
const PENDING: u8 = b'q';

/// How many milliseconds a redaction waits for others, so that they are done together.
const DELAY: u64 = 5_000;
/// After how many milliseconds it is tried again if something failed.
const RETRY: u64 = 10_000;
/// The same if the log is damaged where the event is.
const RETRY_DAMAGED: u64 = 10 * 60 * 1000;
/// How many redactions are done together.
const TOGETHER_MAX: usize = 1000;

/// What is removed of an event, and when that was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Redaction {
    /// In milliseconds since 1970.
    pub(crate) time: u64,
    /// Whether the tags go as well.
    pub(crate) drops_tags: bool,
    /// The id of the event: in another log the position may be another one's.
    pub(crate) id: EventId,
}

impl Redaction {
    fn encode(self) -> Bytes {
        let mut out = Vec::new();
        put_varint(&mut out, self.time);
        put_varint(&mut out, u64::from(self.drops_tags));
        out.extend_from_slice(self.id.as_bytes());
        out.into()
    }

    pub(super) fn decode(mut value: &[u8]) -> Option<Self> {
        Some(Self {
            time: take_varint(&mut value)?,
            drops_tags: take_varint(&mut value)? != 0,
            id: EventId::from_slice(value).ok()?,
        })
    }

    /// Returns whether it is this event that is redacted: in a log that took the place of another one the
    /// position may be another event's.
    fn is_of(self, event: &Event) -> bool {
        event.id() == self.id
    }

    /// Returns the bytes of what stays of an event.
    pub(crate) fn stub(self, event: &Event) -> Bytes {
        let nanos = i64::try_from(self.time.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        event.redacted(Timestamp(nanos), !self.drops_tags)
    }
}

/// What is to be redacted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RedactionWork {
    pub(crate) position: u64,
    pub(crate) id: EventId,
    pub(crate) drops_tags: bool,
}

/// Returns whether an entry says that an event is redacted.
pub(crate) fn is_redaction(key: &[u8]) -> bool {
    key.starts_with(&[REMOVAL, REDACTION])
}

/// Returns all events that are redacted, by their positions.
pub(crate) fn all_redactions(entries: &DurableView) -> Result<BTreeMap<u64, Redaction>> {
    scan(entries, REDACTION)
}

/// Returns the redactions that entries of a kind tell of.
fn scan(entries: &DurableView, kind: u8) -> Result<BTreeMap<u64, Redaction>> {
    let mut found = BTreeMap::new();
    let (from, to) = ([REMOVAL, kind], [REMOVAL, kind + 1]);
    for entry in entries.scan(&from, &to, Direction::Forwards) {
        let (key, value) = entry?;
        let redaction = read(Some(&value), "an event", Redaction::decode)?;
        found.extend(position_of(&key, kind).zip(redaction));
    }
    Ok(found)
}

fn key(kind: u8, position: u64) -> Bytes {
    let mut key = vec![REMOVAL, kind];
    key.extend_from_slice(&position.to_be_bytes());
    key.into()
}

/// Returns the position that a key of this kind is about.
fn position_of(key: &[u8], kind: u8) -> Option<u64> {
    let position = key.strip_prefix(&[REMOVAL, kind])?;
    position.try_into().ok().map(u64::from_be_bytes)
}

impl View {
    /// Notes that an event is redacted. Returns whether that is new.
    pub(crate) fn redact(&mut self, work: RedactionWork, now: u64) -> Result<bool> {
        let entry = key(REDACTION, work.position);
        let before = self.get(&entry)?;
        let before = read(before.as_deref(), "an event", Redaction::decode)?;
        // What is said of another event that was here does not count.
        let before = before.filter(|before| before.id == work.id);
        let drops_tags = work.drops_tags || before.is_some_and(|before| before.drops_tags);
        if before.is_some_and(|before| before.drops_tags == drops_tags) {
            return Ok(false);
        }
        let time = before.map_or(now, |before| before.time);
        let redaction = Redaction {
            time,
            drops_tags,
            id: work.id,
        };
        self.redact_again(work.position, redaction)?;
        Ok(true)
    }

    /// Notes that an event is redacted, and that the log has yet to follow, whatever it did before.
    pub(crate) fn redact_again(&mut self, position: u64, redaction: Redaction) -> Result<()> {
        self.put(key(REDACTION, position), redaction.encode())?;
        self.put(key(PENDING, position), redaction.encode())?;
        self.leave_upkeep();
        Ok(())
    }

    /// Notes that the log has followed redactions, unless they have become others meanwhile.
    pub(crate) fn end_redactions(&mut self, done: &[(u64, Redaction)]) -> Result<()> {
        for (position, redaction) in done {
            let pending = key(PENDING, *position);
            if self.get(&pending)? == Some(redaction.encode()) {
                self.set(pending, None)?;
            }
        }
        Ok(())
    }
}

/// An event that is being redacted.
#[derive(Debug)]
struct EventStub {
    redaction: Redaction,
    /// What takes its place.
    stub: StoredItem,
    /// Whether the index may have it under terms that it loses.
    may_lose_terms: bool,
}

/// What the log made of redactions.
#[derive(Debug, Default)]
pub(super) struct PlacedStubs {
    /// Those of which it has nothing left.
    done: Vec<(u64, Redaction)>,
    /// Those of events that the index may have under terms which they have lost, in the order of their
    /// positions.
    lost_terms: Vec<(u64, Redaction)>,
    /// What keeps it from the others.
    damage: Option<Error>,
}

/// A round over all redactions that the log has yet to follow, in steps.
#[derive(Debug, Default)]
pub(super) struct RedactionRound {
    /// The last position that was tried.
    after: u64,
    /// How many failed, and why the first one did.
    n_failed: u64,
    failure: Option<Error>,
}

/// The redactions that the log has yet to follow.
#[derive(Debug, Default)]
pub(crate) struct PendingRedactions {
    /// Whether anything was ever redacted: then the index may have terms that events do not have.
    has_any: AtomicBool,
    /// Whether one was added since it was asked last.
    has_new: AtomicBool,
    n_pending: AtomicUsize,
    pending: RwLock<BTreeMap<u64, Redaction>>,
}

impl PendingRedactions {
    /// Reads them from the entries.
    pub(crate) fn load(&self, entries: &DurableView) -> Result<()> {
        let (from, to) = ([REMOVAL, REDACTION], [REMOVAL, REDACTION + 1]);
        let mut any = entries.scan(&from, &to, Direction::Forwards);
        let has_any = any.next().transpose()?.is_some();
        self.has_any.store(has_any, Ordering::Release);
        let pending = scan(entries, PENDING)?;
        self.n_pending.store(pending.len(), Ordering::Release);
        self.has_new.store(!pending.is_empty(), Ordering::Release);
        *self.pending.write() = pending;
        Ok(())
    }

    /// Follows a change of an entry.
    pub(crate) fn note(&self, key: &[u8], value: Option<&[u8]>) {
        if is_redaction(key) {
            self.has_any.store(true, Ordering::Release);
        }
        if let Some(position) = position_of(key, PENDING) {
            let mut pending = self.pending.write();
            let redaction = value.and_then(Redaction::decode);
            match redaction {
                Some(redaction) => pending.insert(position, redaction),
                None => pending.remove(&position),
            };
            self.n_pending.store(pending.len(), Ordering::Release);
            self.has_new
                .fetch_or(redaction.is_some(), Ordering::Release);
        }
    }

    /// Returns whether events may lack terms that the index has for them.
    pub(crate) fn have_been(&self) -> bool {
        self.has_any.load(Ordering::Acquire)
    }

    /// Returns whether one was added since it was asked last.
    fn take_new(&self) -> bool {
        self.has_new.load(Ordering::Acquire) && self.has_new.swap(false, Ordering::AcqRel)
    }

    fn len(&self) -> usize {
        self.n_pending.load(Ordering::Acquire)
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an event as it may be shown.
    pub(crate) fn shown(&self, event: Event) -> Event {
        if self.is_empty() {
            return event;
        }
        let redaction = self.pending.read().get(&event.position()).copied();
        let redaction = redaction.filter(|redaction| redaction.is_of(&event));
        let stub =
            redaction.and_then(|redaction| Event::decode(event.position(), redaction.stub(&event)));
        stub.unwrap_or(event)
    }

    /// Returns the positions of the events, in order.
    pub(crate) fn positions(&self) -> Vec<u64> {
        self.pending.read().keys().copied().collect()
    }

    /// Returns the first of them after a position.
    pub(super) fn after(&self, position: u64) -> Vec<(u64, Redaction)> {
        let pending = self.pending.read();
        let next = pending.range(position + 1..).take(TOGETHER_MAX);
        next.map(|(position, redaction)| (*position, *redaction))
            .collect()
    }
}

impl Database {
    /// Removes what the event at a position says, for ever: its data, its metadata and, if asked, its
    /// tags. A stub stays in its place. Returns when that is durable, and whether it was not redacted so
    /// far before. Blocks the thread.
    pub fn redact(&self, position: u64, drops_tags: bool) -> Result<bool> {
        // The event is written by the engine by which it was found: the next one may have another log.
        let engine = self.engine()?;
        let work = redactable(&engine, position, drops_tags)?;
        let written = engine.write(Work::Redact(work));
        Ok(!self.confirm(written)?.replayed)
    }

    /// The async form of [`Self::redact`].
    pub async fn redact_async(&self, position: u64, drops_tags: bool) -> Result<bool> {
        let engine = self.engine()?;
        let finder = Arc::clone(&engine);
        let work = self.elsewhere(move |_| redactable(&finder, position, drops_tags));
        let written = engine.write_async(Work::Redact(work.await?)).await;
        Ok(!self.confirm(written)?.replayed)
    }
}

/// Returns what redacts the event at a position, if there is one: also if it was removed, for as long as
/// the log has it.
fn redactable(engine: &Engine, position: u64, drops_tags: bool) -> Result<RedactionWork> {
    let found = fetch_all(engine.storage.as_ref(), &[position])?;
    let event = found.first().ok_or_else(|| no_event(position))?;
    Ok(RedactionWork {
        position,
        id: event.id(),
        drops_tags,
    })
}

/// Returns that there is nothing to redact at a position.
pub(crate) fn no_event(position: u64) -> Error {
    Error::invalid(format!("there is no event at position {position}"))
}

impl Engine {
    /// Returns when redactions are to be followed.
    pub(crate) fn redact_deadline(&self) -> u64 {
        self.removal.redact_due.load(Ordering::Relaxed)
    }

    /// Notes that something is to be redacted, if that is new.
    pub(crate) fn note_redactions(&self) {
        if self.store.redactions.take_new() {
            self.bring_redacting_forward();
        }
    }

    fn bring_redacting_forward(&self) {
        let due = self.clock().now().millis() + DELAY;
        self.removal.redact_due.fetch_min(due, Ordering::Relaxed);
    }

    /// It is tried again after a while, unless what follows finds out when.
    pub(crate) fn put_off_redacting(&self, now: u64) {
        self.removal
            .redact_due
            .store(now + RETRY, Ordering::Relaxed);
    }

    /// Follows all redactions.
    pub(crate) fn follow_all_redactions(self: &Arc<Self>) -> Result<()> {
        *self.removal.redaction_round.lock() = RedactionRound::default();
        while self.follow_redactions()? == Upkeep::More {}
        Ok(())
    }

    /// Follows some redactions. A round over all of them goes on past those that fail, and says so when it
    /// is over.
    pub(crate) fn follow_redactions(self: &Arc<Self>) -> Result<Upkeep> {
        // If something else fails, the next round begins anew.
        let mut round = std::mem::take(&mut *self.removal.redaction_round.lock());
        let pending = self.store.redactions.after(round.after);
        if let Some((last, _)) = pending.last() {
            round.after = *last;
            if let Err(error) = self.follow_some(&pending, &mut round) {
                self.set_overdue_redactions(self.store.redactions.len() as u64);
                return Err(error);
            }
            *self.removal.redaction_round.lock() = round;
            return Ok(Upkeep::More);
        }
        self.set_overdue_redactions(round.n_failed);
        let due = match &round.failure {
            None => NEVER,
            Some(_) => self.clock().now().millis() + RETRY_DAMAGED,
        };
        self.removal.redact_due.store(due, Ordering::Relaxed);
        // One may have come in between.
        if self.store.redactions.len() as u64 > round.n_failed {
            self.bring_redacting_forward();
        }
        round.failure.map_or(Ok(Upkeep::Done), Err)
    }

    /// Counts the redactions that failed when they were tried last.
    pub(crate) fn set_overdue_redactions(&self, n_overdue: u64) {
        let all = &self.background.stats.overdue_redactions;
        self.removal.overdue_redactions.set(n_overdue, all);
    }

    /// Puts stubs into the log, and takes terms out of the index that the events do not have any more.
    fn follow_some(
        self: &Arc<Self>,
        pending: &[(u64, Redaction)],
        round: &mut RedactionRound,
    ) -> Result<()> {
        // The terms of what is only in memory would be written to disk later.
        self.checkpoint()?;
        let followed = self.put_stubs(pending)?;
        self.forget_terms(&followed.lost_terms)?;
        round.n_failed += (pending.len() - followed.done.len()) as u64;
        round.failure = round.failure.take().or(followed.damage);
        if !followed.done.is_empty() {
            self.write(Work::Redacted(followed.done))?;
        }
        Ok(())
    }

    /// Puts stubs into the log.
    pub(super) fn put_stubs(&self, pending: &[(u64, Redaction)]) -> Result<PlacedStubs> {
        let mut followed = PlacedStubs::default();
        let mut found = match self.find_redacted(pending) {
            Err(Error::Damaged(_)) => self.find_each_redacted(pending, &mut followed)?,
            found => {
                followed.done = pending.to_vec();
                found?
            }
        };
        let stubs: Vec<StoredItem> = found.iter().map(|found| found.stub.clone()).collect();
        let replaced = match stubs.is_empty() {
            true => Ok(()),
            false => self.storage.replace_items(&stubs),
        };
        match replaced {
            Err(error @ Error::Damaged(_)) => {
                followed.damage = Some(error);
                // What is in other parts of the log than the damage has been replaced.
                let is_stub = |found: &EventStub| self.has_stub(&found.stub);
                let (stubs, left): (Vec<_>, Vec<_>) = found.into_iter().partition(is_stub);
                found = stubs;
                let is_left =
                    |position: u64| left.iter().any(|left| left.stub.position == position);
                followed.done.retain(|(position, _)| !is_left(*position));
            }
            replaced => replaced?,
        }
        let lost = found.into_iter().filter(|found| found.may_lose_terms);
        followed.lost_terms = lost
            .map(|found| (found.stub.position, found.redaction))
            .collect();
        Ok(followed)
    }

    /// Finds the events of redactions, one after the other, because some are damaged.
    fn find_each_redacted(
        &self,
        pending: &[(u64, Redaction)],
        followed: &mut PlacedStubs,
    ) -> Result<Vec<EventStub>> {
        let mut found = Vec::with_capacity(pending.len());
        for one in pending {
            match self.find_redacted(std::slice::from_ref(one)) {
                Err(error @ Error::Damaged(_)) => followed.damage = Some(error),
                one_found => {
                    found.extend(one_found?);
                    followed.done.push(*one);
                }
            }
        }
        Ok(found)
    }

    /// Finds the events of redactions, as far as the log has them: what was removed meanwhile may be gone.
    fn find_redacted(&self, pending: &[(u64, Redaction)]) -> Result<Vec<EventStub>> {
        let positions: Vec<u64> = pending.iter().map(|(position, _)| *position).collect();
        let redactions: BTreeMap<u64, Redaction> = pending.iter().copied().collect();
        let (mut found, mut failure) = (Vec::with_capacity(pending.len()), None);
        self.storage.read(&positions, &mut |item| {
            let (position, label) = (item.position, item.label);
            match (decode(item), redactions.get(&position)) {
                (Ok(event), Some(redaction)) if redaction.is_of(&event) => {
                    let loses_tags = redaction.drops_tags && event.tags().next().is_some();
                    found.push(EventStub {
                        redaction: *redaction,
                        stub: StoredItem {
                            position,
                            label,
                            bytes: redaction.stub(&event),
                        },
                        // Of a stub it is not known any more what it had.
                        may_lose_terms: event.is_redacted()
                            || loses_tags
                            || event.correlation().is_some(),
                    });
                    ControlFlow::Continue(())
                }
                // Another event is not touched.
                (Ok(_), _) => ControlFlow::Continue(()),
                (Err(error), _) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failure.map_or(Ok(found), Err)
    }

    /// Returns whether the log has a stub in the place of its event.
    fn has_stub(&self, stub: &StoredItem) -> bool {
        let mut is_there = false;
        let read = self.storage.read(&[stub.position], &mut |item| {
            is_there = item.bytes == stub.bytes;
            ControlFlow::Continue(())
        });
        read.is_ok() && is_there
    }

    /// Takes terms out of the index that these events do not have any more.
    fn forget_terms(self: &Arc<Self>, lost_terms: &[(u64, Redaction)]) -> Result<()> {
        let redaction = |position: u64| {
            let at = lost_terms.binary_search_by_key(&position, |(position, _)| *position);
            at.ok().map(|at| lost_terms[at].1)
        };
        let keeps = |kind: TermKind, position: u64| match kind {
            TermKind::Correlation => redaction(position).is_none(),
            TermKind::Tag => redaction(position).is_none_or(|redaction| !redaction.drops_tags),
            _ => true,
        };
        self.merges.perform(|| {
            let layers = self.index.layers();
            for run in layers.runs() {
                let held = run.first_position..=run.last_position;
                if lost_terms
                    .iter()
                    .any(|(position, _)| held.contains(position))
                {
                    self.rewrite_run(run, &keeps)?;
                }
            }
            Ok(())
        })
    }
}
