//! What is decided about the requests of a group: each is staged in its turn, until the group is
//! full or one panics, and answered when it is known what became of the group.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use trefoil_core::{Committed, Error, Result};

use super::caller::Post;
use super::clean::Cleaned;
use super::request::{Asker, Demand, Work, refuse_first};
use super::stage::Stage;
use crate::write::transaction::Executed;

/// What was decided about the first of the requests of a group. Of the last of them, if it is
/// several transactions, only some may be decided about.
#[derive(Default)]
pub(super) struct Decisions(Vec<Decision>);

enum Decision {
    Write(Decided<Committed>),
    Execute(Vec<Decided<Executed>>),
    Clean(Decided<Cleaned>),
}

/// What was decided about a request.
struct Decided<T> {
    answer: Result<T>,
    /// Whether something was staged before, on which the answer may depend.
    depends_on_stage: bool,
}

impl<T> Decided<T> {
    fn on<'a>(stage: &mut Stage<'a>, decide: impl FnOnce(&mut Stage<'a>) -> Result<T>) -> Self {
        Self {
            depends_on_stage: !stage.is_empty(),
            answer: decide(stage),
        }
    }

    /// The answer. If the group could not be written, only what failed for other reasons is
    /// certain.
    fn unless(self, failure: Option<&Error>) -> Result<T> {
        match (self.answer, failure) {
            (answer, None) => answer,
            (Err(reason), _) if !self.depends_on_stage => Err(reason),
            (_, Some(error)) => Err(error.clone()),
        }
    }
}

/// A group, staged, and what was decided about its requests.
pub(super) struct GroupAttempt<'a> {
    pub(super) stage: Stage<'a>,
    pub(super) decisions: Decisions,
    /// Whether the request after those panicked.
    pub(super) has_panicked: bool,
}

/// Stages requests until the group is full. One that panics ends the group as well: it is unknown
/// what it left on the stage, so the ones before it are staged again on another one. `n_done` is how
/// much of the first of them is done.
pub(super) fn attempt<'a>(
    demands: &'a [Demand],
    n_done: usize,
    new_stage: &dyn Fn() -> Stage<'a>,
) -> GroupAttempt<'a> {
    let mut works_max = usize::MAX;
    loop {
        let mut stage = new_stage();
        let n_works = Cell::new(0);
        let decide = || Decisions::of(demands, n_done, &mut stage, works_max, &n_works);
        match catch_unwind(AssertUnwindSafe(decide)) {
            Ok(decisions) => {
                return GroupAttempt {
                    stage,
                    decisions,
                    has_panicked: works_max < usize::MAX,
                };
            }
            Err(_) => works_max = n_works.get().saturating_sub(1),
        }
    }
}

impl Decisions {
    /// Stages requests until the group is full. `None` if one panics: it is unknown then what is on the
    /// stage.
    pub(super) fn of_all<'a>(
        demands: &'a [Demand],
        n_done: usize,
        stage: &mut Stage<'a>,
    ) -> Option<Self> {
        let decide = || Self::of(demands, n_done, stage, usize::MAX, &Cell::new(0));
        catch_unwind(AssertUnwindSafe(decide)).ok()
    }

    /// Stages requests until the group is full or `works_max` of their works are staged. `n_works`
    /// is how many were begun.
    fn of<'a>(
        demands: &'a [Demand],
        n_done: usize,
        stage: &mut Stage<'a>,
        works_max: usize,
        n_works: &Cell<usize>,
    ) -> Self {
        let has_room = |stage: &Stage<'_>| {
            let has_room = n_works.get() < works_max && !stage.is_full();
            n_works.set(n_works.get() + usize::from(has_room));
            has_room
        };
        let mut decisions = Vec::with_capacity(demands.len());
        let mut n_done = n_done;
        for demand in demands {
            if !has_room(stage) {
                break;
            }
            decisions.push(match demand {
                Demand::Write(Work::Commit(commit)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.commit(commit)))
                }
                Demand::Write(Work::Import(import)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.import(import)))
                }
                Demand::Write(Work::Remove(work)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.remove(work)))
                }
                Demand::Write(Work::Dropped(streams)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.end_pending(streams)))
                }
                Demand::Write(Work::DropAgain(streams)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.drop_again(streams)))
                }
                Demand::Write(Work::Redact(work)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.redact(*work)))
                }
                Demand::Write(Work::RedactAgain(works)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.redact_again(works)))
                }
                Demand::Write(Work::Redacted(done)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.end_redactions(done)))
                }
                Demand::Write(Work::SetPolicy(work)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.set_policy(work)))
                }
                Demand::Write(Work::Retain(work)) => {
                    Decision::Write(Decided::on(stage, |stage| stage.retain(work)))
                }
                Demand::Clean(chore) => {
                    Decision::Clean(Decided::on(stage, |stage| stage.clean(chore)))
                }
                Demand::Execute(works) => {
                    let left = works.get(n_done..).unwrap_or_default();
                    let mut decided = Vec::with_capacity(left.len());
                    for work in left {
                        if !decided.is_empty() && !has_room(stage) {
                            break;
                        }
                        decided.push(Decided::on(stage, |stage| match work {
                            Ok(work) => stage.execute(work),
                            Err(refusal) => Err(refusal.clone()),
                        }));
                    }
                    Decision::Execute(decided)
                }
            });
            n_done = 0;
        }
        Self(decisions)
    }

    /// Returns whether all of that was decided about.
    pub(super) fn are_complete(&self, demands: &[Demand], n_done: usize) -> bool {
        // Only of the last of them some may be left.
        let is_whole = match (demands.last(), self.0.last()) {
            (Some(Demand::Execute(works)), Some(Decision::Execute(decided))) => {
                let n_before = if demands.len() == 1 { n_done } else { 0 };
                n_before + decided.len() == works.len()
            }
            _ => true,
        };
        self.0.len() == demands.len() && is_whole
    }

    /// About how many requests something was decided.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Answers those about whose requests something was decided, and takes them from the others. One
    /// stays who handed in several transactions of which some are left. `failure` is why the group could
    /// not be written.
    pub(super) fn send(self, askers: &mut Vec<Asker>, failure: Option<&Error>) {
        let (mut unfinished, mut post) = (None, Post::default());
        for (asker, decision) in askers.drain(..self.0.len()).zip(self.0) {
            match (asker, decision) {
                (Asker::Write(caller), Decision::Write(decided)) => {
                    caller.answer_by(&mut post, decided.unless(failure));
                }
                (Asker::Clean(reply), Decision::Clean(decided)) => {
                    // The caller may have gone.
                    drop(reply.send(decided.unless(failure)));
                }
                (Asker::Execute(mut asker), Decision::Execute(decided)) => {
                    let answers = decided.into_iter().map(|decided| decided.unless(failure));
                    asker.done.extend(answers);
                    unfinished = asker.finish(&mut post).map(Asker::Execute);
                }
                // A decision is of the kind of its request.
                _ => {}
            }
        }
        askers.splice(..0, unfinished);
    }
}

/// What was decided about the requests of a group.
pub(super) struct GroupOutcome {
    pub(super) decisions: Decisions,
    /// Whether the request after those panicked.
    pub(super) has_panicked: bool,
    /// How long the first of them had waited.
    pub(super) queued: Duration,
    /// When the leader took them, by the steady clock.
    pub(super) began: Duration,
    /// How long it took to decide.
    pub(super) staging: Duration,
}

impl GroupOutcome {
    /// Answers those whose requests were decided about, and takes them from the others. Returns how
    /// many bytes were written.
    pub(super) fn answer(self, askers: &mut Vec<Asker>, ended: Result<usize>) -> usize {
        self.decisions.send(askers, ended.as_ref().err());
        if self.has_panicked {
            let text = "it panicked before anything of it was written";
            refuse_first(askers, Error::Internal(text.to_owned()));
        }
        ended.unwrap_or(0)
    }
}
