//! What a commit must lead to: it is a repetition, it is refused, or its events are placed.

use std::collections::BTreeMap;

use trefoil::{Appended, Commit, Condition, Error, Ids, NewEvent, Timestamp, Tracking};

use super::{Model, Record};

/// What a commit must lead to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// These are appended; ids and times that the engine makes are still missing.
    Fresh(Vec<Record>),
    /// Nothing is written: the answer is the one of the first time.
    Replayed(Vec<Appended>),
    /// Nothing is written: the answer is one of these errors. Which of several conditions that
    /// fail is named, and which of several events that it rules out, is not promised.
    Refused(Vec<Error>),
}

impl Model {
    /// Decides a commit without applying it: a repetition first, then conditions, then ids, then
    /// the tracked position.
    pub(crate) fn decide(&self, commit: &Commit, data_bytes_max: usize) -> Outcome {
        if let Err(error) = commit.validate(data_bytes_max) {
            return Outcome::Refused(vec![error]);
        }
        let has_unique_ids = commit.ids == Ids::Unique;
        if let Some(appended) = self.replay(commit).filter(|_| has_unique_ids) {
            return Outcome::Replayed(appended);
        }
        let mut refusals = self.check(&commit.conditions);
        if refusals.is_empty() && has_unique_ids {
            refusals.extend(self.check_ids(commit));
        }
        if refusals.is_empty() {
            refusals.extend(self.check_tracking(commit));
        }
        if refusals.is_empty() {
            return Outcome::Fresh(self.place(commit));
        }
        Outcome::Refused(refusals)
    }

    /// Takes over what the database made of a commit.
    pub(crate) fn apply(&mut self, commit: &Commit, records: Vec<Record>) {
        self.events.extend(records);
        if let Some(tracking) = &commit.tracking {
            self.tracked
                .insert(tracking.source.clone(), tracking.position);
        }
    }

    /// Records the tracked position of a repetition, if it is a new one. Answers whether it is.
    pub(crate) fn track_again(&mut self, tracking: &Tracking) -> bool {
        let recorded = self.tracked.get(&tracking.source);
        let is_new = recorded.is_none_or(|recorded| *recorded < tracking.position);
        if is_new {
            self.tracked
                .insert(tracking.source.clone(), tracking.position);
        }
        is_new
    }

    /// Every id is known, of the same events and in the same order.
    fn replay(&self, commit: &Commit) -> Option<Vec<Appended>> {
        let mut appended: Vec<Appended> = Vec::new();
        for event in &commit.events {
            let known = self.with_id(event.id?)?;
            let in_order = appended
                .last()
                .is_none_or(|before| before.position < known.position);
            if !known.is_same(event) || !in_order {
                return None;
            }
            appended.push(known.appended());
        }
        (!appended.is_empty()).then_some(appended)
    }

    /// All that can be said against a commit with these conditions.
    pub(crate) fn check(&self, conditions: &[Condition]) -> Vec<Error> {
        let numbered = conditions.iter().enumerate();
        numbered
            .flat_map(|(index, condition)| self.check_one(index, condition))
            .collect()
    }

    fn check_one(&self, index: usize, condition: &Condition) -> Vec<Error> {
        match condition {
            Condition::StreamVersion { stream, expected } => {
                let actual = self.version(stream).map_or(-1, |version| version as i64);
                let conflict = (actual != *expected).then(|| Error::VersionConflict {
                    condition: index,
                    stream: stream.clone(),
                    expected: *expected,
                    actual,
                });
                conflict.into_iter().collect()
            }
            Condition::NoMatch {
                source,
                query,
                after,
            } => {
                let counts = |event: &&Record| {
                    after.is_none_or(|after| event.position > after)
                        && event.is_of(source)
                        && event.is_meant_by(query)
                };
                let failed = |event: &Record| Error::ConditionFailed {
                    condition: index,
                    position: event.position,
                };
                self.events.iter().filter(counts).map(failed).collect()
            }
            other => panic!("the model knows no condition {other:?}"),
        }
    }

    fn check_tracking(&self, commit: &Commit) -> Option<Error> {
        let tracking = commit.tracking.as_ref()?;
        let recorded = *self.tracked.get(&tracking.source)?;
        (tracking.position <= recorded).then(|| Error::TrackingConflict {
            source_name: tracking.source.clone(),
            position: tracking.position,
            recorded,
        })
    }

    fn check_ids(&self, commit: &Commit) -> Option<Error> {
        let ids = commit.events.iter().filter_map(|event| event.id);
        let known = ids.filter_map(|id| self.with_id(id)).next()?;
        let (id, position) = (known.id, known.position);
        Some(Error::DuplicateId { id, position })
    }

    fn place(&self, commit: &Commit) -> Vec<Record> {
        let mut next = BTreeMap::<&str, u64>::new();
        let place = |(event, position): (_, u64)| {
            let event: &NewEvent = event;
            let mut at = 0;
            if let Some(stream) = event.stream.as_deref() {
                let begin = || self.version(stream).map_or(0, |version| version + 1);
                let next = next.entry(stream).or_insert_with(begin);
                at = *next;
                *next += 1;
            }
            let record = Record::new(event, position, at, Timestamp::default());
            record.tracking(commit.tracking.clone())
        };
        commit
            .events
            .iter()
            .zip(self.head() + 1..)
            .map(place)
            .collect()
    }
}
