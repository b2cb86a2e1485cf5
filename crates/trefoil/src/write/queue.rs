//! The queue of commits that wait for the writer, and who leads it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use trefoil_core::limits::{COMMIT_QUEUE_BYTES_MAX, COMMIT_QUEUE_MAX};
use trefoil_core::{Committed, Error, Result};
use trefoil_state::Allowance;
use trefoil_storage::GroupLimits;

use super::caller::{Caller, Post};
use super::clean::Cleaned;
use super::execute::CheckedTransaction;
use super::import::ImportBatch;
use super::pace::GroupPace;
use crate::read::condition::CheckedCommit;
use crate::removal::{
    DroppedStream, PolicyWork, Redaction, RedactionWork, RemovalWork, RetentionWork,
};
use crate::time::agenda::Chore;
use crate::time::clock::Clock;
use crate::write::transaction::Executed;

/// Something to be written, and who waits for the answer.
#[derive(Debug)]
pub(crate) enum WriteRequest {
    Write(Work, Caller<Result<Committed>>),
    Execute(Execution),
    Clean(Chore, oneshot::Sender<Result<Cleaned>>),
}

/// What is no longer needed.
pub(super) type LetGo = Vec<Box<dyn Send>>;

/// What became of transactions that were handed in together.
pub(crate) type Executions = Vec<Result<Executed>>;

/// Transactions that were handed in together. They need not come into one group.
#[derive(Debug)]
pub(crate) struct Execution {
    /// Those that are refused already keep their places among the others.
    works: Vec<Result<CheckedTransaction>>,
    /// What became of the first of them.
    pub(super) done: Executions,
    caller: Caller<Executions>,
}

impl Execution {
    pub(crate) fn new(works: Vec<Result<CheckedTransaction>>, caller: Caller<Executions>) -> Self {
        let done = Vec::with_capacity(works.len());
        Self {
            works,
            done,
            caller,
        }
    }

    /// The transactions that are still to be executed.
    pub(super) fn left(&self) -> &[Result<CheckedTransaction>] {
        self.works.get(self.done.len()..).unwrap_or_default()
    }

    /// Answers if nothing is left, or else hands itself back.
    pub(super) fn finish(self, post: &mut Post) -> Option<Self> {
        if !self.left().is_empty() {
            return Some(self);
        }
        self.caller.answer_by(post, self.done);
        None
    }
}

/// What is to be written.
#[derive(Debug)]
pub(crate) enum Work {
    Commit(CheckedCommit),
    Import(ImportBatch),
    Remove(RemovalWork),
    /// The log has nothing left of what was removed of these streams.
    Dropped(Vec<DroppedStream>),
    /// The log has removed events of these streams, whatever was noted before.
    DropAgain(Vec<String>),
    Redact(RedactionWork),
    /// These events, each of a position, are redacted, and the log has yet to follow.
    RedactAgain(Vec<(u64, Redaction)>),
    /// The log has followed these redactions, each of a position.
    Redacted(Vec<(u64, Redaction)>),
    SetPolicy(PolicyWork),
    /// Events are beyond policies.
    Retain(RetentionWork),
}

impl WriteRequest {
    /// Answers that nothing of it is done that was not done before.
    pub(super) fn refuse(self, error: &Error) {
        match self {
            Self::Write(_, caller) => caller.answer(Err(error.clone())),
            Self::Clean(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Execute(mut execution) => {
                let n_works = execution.works.len();
                execution.done.resize_with(n_works, || Err(error.clone()));
                execution.caller.answer(execution.done);
            }
        }
    }

    /// Takes out the events of a commit or an import, which are no longer needed.
    pub(super) fn take_events(&mut self) -> Option<Box<dyn Send>> {
        match self {
            Self::Write(Work::Commit(work), _) => {
                Some(Box::new(std::mem::take(&mut work.commit.events)))
            }
            Self::Write(Work::Import(import), _) => {
                Some(Box::new(std::mem::take(&mut import.events)))
            }
            Self::Write(..) | Self::Execute(_) | Self::Clean(..) => None,
        }
    }

    /// Takes out who is asked for memory for the replies, to run it without asking them.
    pub(super) fn take_allowances(&mut self) -> Vec<Option<Arc<dyn Allowance>>> {
        let works = self.works_mut().iter_mut().flatten();
        works
            .map(|work| work.transaction.allowance.take())
            .collect()
    }

    /// Puts back what was taken out.
    pub(super) fn put_allowances(&mut self, allowances: Vec<Option<Arc<dyn Allowance>>>) {
        let works = self.works_mut().iter_mut().flatten();
        for (work, allowance) in works.zip(allowances) {
            work.transaction.allowance = allowance;
        }
    }

    fn works_mut(&mut self) -> &mut [Result<CheckedTransaction>] {
        match self {
            Self::Execute(execution) => &mut execution.works,
            Self::Write(..) | Self::Clean(..) => &mut [],
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Write(Work::Commit(work), _) => {
                work.commit.events.iter().map(|event| event.size()).sum()
            }
            Self::Write(Work::Import(import), _) => {
                let events = import.events.iter();
                events.map(|event| event.event.size()).sum()
            }
            Self::Execute(execution) => {
                let works = execution.works.iter().flatten();
                works.map(|work| work.transaction.size()).sum()
            }
            Self::Write(Work::Remove(work), _) => work.stream.len(),
            Self::Write(
                Work::Dropped(_)
                | Work::DropAgain(_)
                | Work::Redact(_)
                | Work::RedactAgain(_)
                | Work::Redacted(_)
                | Work::SetPolicy(_)
                | Work::Retain(_),
                _,
            )
            | Self::Clean(..) => 0,
        }
    }

    /// How many commits it may become.
    fn n_commits(&self) -> usize {
        match self {
            Self::Write(..) | Self::Clean(..) => 1,
            Self::Execute(execution) => execution.left().len(),
        }
    }
}

/// How much waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) n_requests: usize,
    /// How many commits they may become.
    pub(crate) n_commits: usize,
    pub(crate) bytes: usize,
}

/// Requests in the order in which they came.
#[derive(Debug)]
pub(crate) struct Queue {
    clock: Clock,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<WriteRequest>,
    /// How many commits they may become.
    n_commits: usize,
    /// The bytes of what is waiting.
    bytes: usize,
    /// Since when the first of it has been waiting, by the steady clock.
    since: Option<Duration>,
    has_leader: bool,
    /// Why nothing more is taken.
    closed: Option<Error>,
}

impl Queue {
    /// A queue that measures by this clock how long requests wait.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            state: Mutex::default(),
        }
    }

    /// Adds a request. Returns whether the caller now leads the queue and must see to it that it
    /// is drained.
    pub(crate) fn push(&self, request: WriteRequest) -> Result<bool> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Err(reason.clone());
        }
        if state.waiting.len() >= COMMIT_QUEUE_MAX {
            return Err(Error::Overloaded(format!(
                "{COMMIT_QUEUE_MAX} commits are waiting, the limit of the queue"
            )));
        }
        // A request that is larger than the limit may still wait alone.
        let bytes = request.size();
        if state.bytes > 0 && state.bytes + bytes > COMMIT_QUEUE_BYTES_MAX {
            return Err(Error::Overloaded(format!(
                "{} bytes are waiting, the limit of the queue is {COMMIT_QUEUE_BYTES_MAX}",
                state.bytes
            )));
        }
        state.bytes += bytes;
        state.n_commits += request.n_commits();
        state.waiting.push_back(request);
        state.since.get_or_insert_with(|| self.clock.steady());
        Ok(!std::mem::replace(&mut state.has_leader, true))
    }

    /// Returns how much waits.
    pub(crate) fn backlog(&self) -> Backlog {
        let state = self.state.lock();
        Backlog {
            n_requests: state.waiting.len(),
            n_commits: state.n_commits,
            bytes: state.bytes,
        }
    }

    /// Takes the next group for the leader. Returns how long the first of it has waited; if there is
    /// none, the caller is no longer the leader.
    pub(crate) fn next_group(
        &self,
        pace: &GroupPace,
        limits: GroupLimits,
        group: &mut Vec<WriteRequest>,
    ) -> Option<Duration> {
        let mut state = self.state.lock();
        let (mut n_commits, mut bytes) = (0, 0);
        let requests_max = pace.requests_max(state.waiting.len());
        while group.len() < requests_max && n_commits < limits.commits && bytes < limits.bytes {
            let Some(request) = state.waiting.pop_front() else {
                break;
            };
            let size = request.size();
            bytes += size;
            n_commits += request.n_commits();
            state.bytes -= size;
            group.push(request);
        }
        state.n_commits -= n_commits;
        state.has_leader = !group.is_empty();
        let since = state.since.take().filter(|_| state.has_leader)?;
        let now = self.clock.steady();
        state.since = (!state.waiting.is_empty()).then_some(now);
        Some(now.saturating_sub(since))
    }

    /// The leader stops, and puts back what is left of its last group. Returns whether somebody
    /// else must lead because more is waiting.
    pub(crate) fn step_down(&self, left: Vec<WriteRequest>) -> bool {
        let mut state = self.state.lock();
        for request in left.into_iter().rev() {
            state.bytes += request.size();
            state.n_commits += request.n_commits();
            state.waiting.push_front(request);
        }
        state.has_leader = !state.waiting.is_empty();
        if state.has_leader {
            state.since.get_or_insert_with(|| self.clock.steady());
        }
        state.has_leader
    }

    /// Takes nothing more from now on. What is waiting is still written.
    pub(crate) fn close(&self, reason: Error) {
        self.state.lock().closed.get_or_insert(reason);
    }

    /// The leader is gone without having finished: it is unknown what it wrote, so nothing more is
    /// taken, and what waits is refused.
    pub(crate) fn abandon(&self, reason: &Error) {
        let mut state = self.state.lock();
        state.closed = Some(reason.clone());
        state.has_leader = false;
        (state.n_commits, state.bytes) = (0, 0);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting
            .into_iter()
            .for_each(|request| request.refuse(reason));
    }

    /// Takes nothing more, and lets nothing be written that waits: see
    /// [`Error::Poisoned`](trefoil_core::Error::Poisoned).
    pub(crate) fn poison(&self, reason: String) {
        self.state.lock().closed = Some(Error::Poisoned(reason));
    }

    /// Why nothing may be written before the namespace is opened again, if that is so.
    pub(crate) fn poisoned(&self) -> Option<Error> {
        let state = self.state.lock();
        let poisoned = |error: &&Error| matches!(error, Error::Poisoned(_));
        state.closed.as_ref().filter(poisoned).cloned()
    }

    /// How many commits wait.
    #[cfg(test)]
    pub(super) fn n_waiting_writes(&self) -> usize {
        let is_write = |request: &&WriteRequest| matches!(request, WriteRequest::Write(..));
        self.state.lock().waiting.iter().filter(is_write).count()
    }

    /// Returns whether there is no leader and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        !state.has_leader && state.waiting.is_empty()
    }
}
