//! What is decided about the requests of a group: each is staged in its turn, until the group is
//! full or one panics, and answered when it is known what became of the group.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use trefoil_core::{Committed, Error, Result};

use super::caller::Post;
use super::clean::Cleaned;
use super::queue::{Work, WriteRequest};
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
/// what it left on the stage, so the ones before it are staged again on another one.
pub(super) fn attempt<'a>(
    requests: &'a [WriteRequest],
    new_stage: &dyn Fn() -> Stage<'a>,
) -> GroupAttempt<'a> {
    let mut works_max = usize::MAX;
    loop {
        let mut stage = new_stage();
        let n_works = Cell::new(0);
        let decide = || Decisions::of(requests, &mut stage, works_max, &n_works);
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
    /// Stages requests until the group is full or `works_max` of their works are staged. `n_works`
    /// is how many were begun.
    fn of<'a>(
        requests: &'a [WriteRequest],
        stage: &mut Stage<'a>,
        works_max: usize,
        n_works: &Cell<usize>,
    ) -> Self {
        let has_room = |stage: &Stage<'_>| {
            let has_room = n_works.get() < works_max && !stage.is_full();
            n_works.set(n_works.get() + usize::from(has_room));
            has_room
        };
        let mut decisions = Vec::with_capacity(requests.len());
        for request in requests {
            if !has_room(stage) {
                break;
            }
            decisions.push(match request {
                WriteRequest::Write(Work::Commit(commit), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.commit(commit)))
                }
                WriteRequest::Write(Work::Import(import), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.import(import)))
                }
                WriteRequest::Write(Work::Remove(work), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.remove(work)))
                }
                WriteRequest::Write(Work::Dropped(streams), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.end_pending(streams)))
                }
                WriteRequest::Write(Work::DropAgain(streams), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.drop_again(streams)))
                }
                WriteRequest::Write(Work::Redact(work), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.redact(*work)))
                }
                WriteRequest::Write(Work::RedactAgain(works), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.redact_again(works)))
                }
                WriteRequest::Write(Work::Redacted(done), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.end_redactions(done)))
                }
                WriteRequest::Write(Work::SetPolicy(work), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.set_policy(work)))
                }
                WriteRequest::Write(Work::Retain(work), _) => {
                    Decision::Write(Decided::on(stage, |stage| stage.retain(work)))
                }
                WriteRequest::Clean(chore, _) => {
                    Decision::Clean(Decided::on(stage, |stage| stage.clean(chore)))
                }
                WriteRequest::Execute(execution) => {
                    let mut decided = Vec::with_capacity(execution.left().len());
                    for work in execution.left() {
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
        }
        Self(decisions)
    }

    /// About how many requests something was decided.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Answers the requests that were decided about, and takes them from the others. `failure` is
    /// why the group could not be written.
    pub(super) fn send(self, requests: &mut Vec<WriteRequest>, failure: Option<&Error>) {
        let (mut unfinished, mut post) = (None, Post::default());
        for (request, decision) in requests.drain(..self.0.len()).zip(self.0) {
            match (request, decision) {
                (WriteRequest::Write(_, caller), Decision::Write(decided)) => {
                    caller.answer_by(&mut post, decided.unless(failure));
                }
                (WriteRequest::Clean(_, reply), Decision::Clean(decided)) => {
                    // The caller may have gone.
                    drop(reply.send(decided.unless(failure)));
                }
                (WriteRequest::Execute(mut execution), Decision::Execute(decided)) => {
                    let answers = decided.into_iter().map(|decided| decided.unless(failure));
                    execution.done.extend(answers);
                    unfinished = execution.finish(&mut post).map(WriteRequest::Execute);
                }
                // A decision is of the kind of its request.
                _ => {}
            }
        }
        requests.splice(..0, unfinished);
    }
}

/// Refuses the first work of the first request.
pub(super) fn refuse_first(requests: &mut Vec<WriteRequest>, error: Error) {
    if requests.is_empty() {
        return;
    }
    match requests.remove(0) {
        WriteRequest::Execute(mut execution) => {
            execution.done.push(Err(error));
            let unfinished = execution.finish(&mut Post::default());
            requests.splice(..0, unfinished.map(WriteRequest::Execute));
        }
        request => request.refuse(&error),
    }
}
