//! Commits, one after the other or many at a time: each must be answered as the model decides.

use proptest::test_runner::TestCaseError;
use trefoil::{Commit, Committed, NewEvent, Payload, Result, Selection, Tracking};

use super::driver::{Check, Driver, kind, same};
use super::ops::*;
use crate::model::{Model, Outcome, Record};
use crate::waiting::wait_for_all;

impl Driver {
    pub(super) fn commit(&mut self, commit: Commit) -> Check {
        let answer = self.database.commit(commit.clone());
        self.judge(&self.model.clone(), commit, answer)
    }

    /// Commits that are under way at the same time take effect in some order: what was written
    /// tells its place by its number, what was not must be right at one moment in between.
    pub(super) fn commit_together(&mut self, commits: Vec<Commit>) -> Check {
        let asked = commits.iter().cloned();
        let answers = wait_for_all(asked.map(|commit| self.database.commit_async(commit)));
        let number = |answer: &Result<Committed>| match answer {
            Ok(committed) if !committed.replayed => Some(committed.commit),
            _ => None,
        };
        let mut answered: Vec<_> = commits.into_iter().zip(answers).collect();
        answered.sort_by_key(|(_, answer)| number(answer).unwrap_or(u64::MAX));
        let n_written = answered.partition_point(|(_, answer)| number(answer).is_some());
        let others = answered.split_off(n_written);
        let mut moments = vec![self.model.clone()];
        for (commit, answer) in answered {
            self.judge(&self.model.clone(), commit, answer)?;
            moments.push(self.model.clone());
        }
        for (commit, answer) in others {
            let mut judged = Ok(());
            for moment in &moments {
                judged = self.judge(moment, commit.clone(), answer.clone());
                if judged.is_ok() {
                    break;
                }
            }
            judged?;
        }
        Ok(())
    }

    /// Holds an answer against what the model says of the commit at that moment.
    fn judge(&mut self, moment: &Model, commit: Commit, answer: Result<Committed>) -> Check {
        let decided = moment.decide(&commit, self.options.event_data_bytes_max);
        match (answer, decided) {
            (Err(actual), Outcome::Refused(expected))
                if expected.iter().any(|error| kind(error) == kind(&actual)) =>
            {
                Ok(())
            }
            (Ok(committed), Outcome::Replayed(appended)) => {
                same("replayed", committed.replayed, true)?;
                let tracking = commit.tracking.as_ref();
                if tracking.is_some_and(|tracking| self.model.track_again(tracking)) {
                    // That is a commit of its own.
                    self.commit_number = self.commit_number.map(|number| number + 1);
                }
                let last = appended.last().map(|last| last.position);
                same("position", Some(committed.position), last)?;
                same("replayed commit", committed.events, appended)
            }
            (Ok(committed), Outcome::Fresh(records)) => self.committed(commit, &committed, records),
            (answer, decided) => {
                let text = format!("{commit:?}\n  database: {answer:?}\n  model: {decided:?}");
                Err(TestCaseError::fail(text))
            }
        }
    }

    /// Takes ids and times, which only the database can know, from its answers; the rest must be
    /// as the model says.
    fn committed(
        &mut self,
        mut commit: Commit,
        answer: &Committed,
        mut fresh: Vec<Record>,
    ) -> Check {
        same("replayed", answer.replayed, false)?;
        if let Some(before) = self.commit_number.filter(|_| !self.commits_itself) {
            same("commit number", answer.commit, before + 1)?;
        }
        self.commit_number = Some(answer.commit);
        let from = Selection::all()
            .from_position(self.model.head() + 1)
            .limit(fresh.len());
        let stored = self.ok("read of the commit", self.database.read(&from))?;
        same("events of the commit", stored.len(), fresh.len())?;
        same("events of the answer", answer.events.len(), fresh.len())?;
        for (index, record) in fresh.iter_mut().enumerate() {
            let new = &mut commit.events[index];
            record.id = *new.id.get_or_insert(answer.events[index].id);
            record.time = stored[index].time();
            if record.time < self.clock {
                return Err(TestCaseError::fail("time went backwards"));
            }
            self.clock = record.time;
            same("answer", &answer.events[index], &record.appended())?;
            same("stored event", &Record::of(&stored[index]), record)?;
        }
        self.model.apply(&commit, fresh);
        same("position of the commit", answer.position, self.model.head())?;
        if !commit.events.is_empty() {
            self.answered.push(commit);
        }
        Ok(())
    }

    pub(super) fn resend(&mut self, which: usize, how: &Resend) -> Check {
        let Some(index) = which.checked_rem(self.answered.len()) else {
            return Ok(());
        };
        let mut commit = self.answered[index].clone();
        match how {
            Resend::Same => {}
            Resend::WithFailingCondition => commit = commit.expect_version(STREAMS[0], 1_000_000),
            Resend::Reversed => commit.events.reverse(),
            Resend::WithoutLast => drop(commit.events.pop()),
            Resend::WithNewEvent => commit
                .events
                .push(NewEvent::new(STREAMS[0], TYPES[0], "{}")),
            Resend::ToOtherStream => commit.events[0].stream = Some("elsewhere-1".to_owned()),
            Resend::WithOtherData => commit.events[0].data = Payload::json("[]"),
            Resend::WithTagsTurned => commit.events[0].tags.reverse(),
            Resend::WithNewTracking(source) => {
                let recorded = self.model.tracked.get(SOURCES[*source]);
                let position = recorded.map_or(3, |recorded| recorded.saturating_add(1));
                commit.tracking = Some(Tracking::new(SOURCES[*source], position));
            }
            Resend::Repeatable => commit = commit.with_repeatable_ids(),
        }
        self.commit(commit)
    }

    pub(super) fn check(&self, specs: &[ConditionSpec]) -> Check {
        let conditions = self.conditions_of(specs);
        let expected = self.model.check(&conditions);
        match self.database.check(&conditions) {
            Ok(()) if expected.is_empty() => Ok(()),
            Err(error) if expected.iter().any(|other| kind(other) == kind(&error)) => Ok(()),
            answer => {
                let text = format!("{conditions:?}\n  database: {answer:?}\n  model: {expected:?}");
                Err(TestCaseError::fail(text))
            }
        }
    }
}
