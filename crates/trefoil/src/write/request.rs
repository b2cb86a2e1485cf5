//! Requests to the writer: what each demands, and who asks for it.
//!
//! The two parts are kept apart. What is demanded is read for as long as its group, or the next one,
//! is being staged; who asks is answered, and gone, before that is over.

use std::sync::Arc;

use trefoil_core::{Committed, Error, Result};
use trefoil_state::Allowance;

use super::caller::{Caller, Post};
use super::clean::Cleaned;
use super::execute::CheckedTransaction;
use super::import::ImportBatch;
use crate::read::condition::CheckedCommit;
use crate::removal::{
    DroppedStream, PolicyWork, Redaction, RedactionWork, RemovalWork, RetentionWork,
};
use crate::time::agenda::Chore;
use crate::write::transaction::Executed;

/// From this many bytes on, a request costs more than what is done once for its group.
const LARGE_REQUEST_BYTES: usize = 4096;

/// Returns whether requests are large on average.
pub(super) fn are_large(n_requests: usize, bytes: usize) -> bool {
    bytes >= n_requests.max(1) * LARGE_REQUEST_BYTES
}

/// What is no longer needed.
pub(super) type LetGo = Vec<Box<dyn Send>>;

/// What became of transactions that were handed in together.
pub(crate) type Executions = Vec<Result<Executed>>;

/// Something to be written, and who waits for the answer.
#[derive(Debug)]
pub(crate) struct WriteRequest {
    pub(super) demand: Demand,
    pub(super) asker: Asker,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Demand {
    Write(Work),
    /// Transactions that were handed in together. They need not come into one group. Those that are
    /// refused already keep their places among the others.
    Execute(Vec<Result<CheckedTransaction>>),
    Clean(Chore),
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

/// Who waits for the answer to a request of each kind.
#[derive(Debug)]
pub(crate) enum Asker {
    Write(Caller<Result<Committed>>),
    Execute(ExecutionAsker),
    Clean(oneshot::Sender<Result<Cleaned>>),
}

/// Who waits for transactions that were handed in together.
#[derive(Debug)]
pub(crate) struct ExecutionAsker {
    caller: Caller<Executions>,
    /// What became of the first of them.
    pub(super) done: Executions,
    n_works: usize,
}

impl ExecutionAsker {
    /// Answers if nothing is left, or else hands itself back.
    pub(super) fn finish(self, post: &mut Post) -> Option<Self> {
        if self.done.len() < self.n_works {
            return Some(self);
        }
        self.caller.answer_by(post, self.done);
        None
    }
}

impl Asker {
    /// Answers that nothing is done that was not done before.
    fn refuse(self, error: &Error) {
        match self {
            Self::Write(caller) => caller.answer(Err(error.clone())),
            Self::Clean(reply) => drop(reply.send(Err(error.clone()))),
            Self::Execute(mut asker) => {
                asker.done.resize_with(asker.n_works, || Err(error.clone()));
                asker.caller.answer(asker.done);
            }
        }
    }

    /// How much of what was handed in together is done.
    fn n_done(&self) -> usize {
        match self {
            Self::Execute(asker) => asker.done.len(),
            Self::Write(_) | Self::Clean(_) => 0,
        }
    }
}

/// Refuses the first work of the first who asks.
pub(super) fn refuse_first(askers: &mut Vec<Asker>, error: Error) {
    if askers.is_empty() {
        return;
    }
    match askers.remove(0) {
        Asker::Execute(mut asker) => {
            asker.done.push(Err(error));
            let unfinished = asker.finish(&mut Post::default());
            askers.splice(..0, unfinished.map(Asker::Execute));
        }
        asker => asker.refuse(&error),
    }
}

impl Demand {
    /// Takes out the events of a commit or an import, which are no longer needed.
    pub(super) fn take_events(&mut self) -> Option<Box<dyn Send>> {
        match self {
            Self::Write(Work::Commit(work)) => {
                Some(Box::new(std::mem::take(&mut work.commit.events)))
            }
            Self::Write(Work::Import(import)) => Some(Box::new(std::mem::take(&mut import.events))),
            Self::Write(_) | Self::Execute(_) | Self::Clean(_) => None,
        }
    }

    fn works_mut(&mut self) -> &mut [Result<CheckedTransaction>] {
        match self {
            Self::Execute(works) => works,
            Self::Write(_) | Self::Clean(_) => &mut [],
        }
    }

    /// Returns whether it is a commit, or transactions: nothing but the log's index and the state is
    /// asked to stage it.
    fn is_ordinary(&self) -> bool {
        matches!(self, Self::Write(Work::Commit(_)) | Self::Execute(_))
    }

    /// How many events it is handed in with.
    fn n_events(&self) -> usize {
        match self {
            Self::Write(Work::Commit(work)) => work.commit.events.len(),
            Self::Write(Work::Import(import)) => import.events.len(),
            Self::Write(_) | Self::Execute(_) | Self::Clean(_) => 0,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Write(Work::Commit(work)) => {
                work.commit.events.iter().map(|event| event.size()).sum()
            }
            Self::Write(Work::Import(import)) => {
                let events = import.events.iter();
                events.map(|event| event.event.size()).sum()
            }
            Self::Execute(works) => {
                let works = works.iter().flatten();
                works.map(|work| work.transaction.size()).sum()
            }
            Self::Write(Work::Remove(work)) => work.stream.len(),
            Self::Write(
                Work::Dropped(_)
                | Work::DropAgain(_)
                | Work::Redact(_)
                | Work::RedactAgain(_)
                | Work::Redacted(_)
                | Work::SetPolicy(_)
                | Work::Retain(_),
            )
            | Self::Clean(_) => 0,
        }
    }
}

impl WriteRequest {
    pub(crate) fn write(work: Work, caller: Caller<Result<Committed>>) -> Self {
        Self {
            demand: Demand::Write(work),
            asker: Asker::Write(caller),
        }
    }

    pub(crate) fn execute(
        works: Vec<Result<CheckedTransaction>>,
        caller: Caller<Executions>,
    ) -> Self {
        let asker = ExecutionAsker {
            caller,
            done: Vec::with_capacity(works.len()),
            n_works: works.len(),
        };
        Self {
            demand: Demand::Execute(works),
            asker: Asker::Execute(asker),
        }
    }

    pub(crate) fn clean(chore: Chore, reply: oneshot::Sender<Result<Cleaned>>) -> Self {
        Self {
            demand: Demand::Clean(chore),
            asker: Asker::Clean(reply),
        }
    }

    /// Answers that nothing of it is done that was not done before.
    pub(super) fn refuse(self, error: &Error) {
        self.asker.refuse(error);
    }

    /// Takes out who is asked for memory for the replies, to run it without asking them.
    pub(super) fn take_allowances(&mut self) -> Vec<Option<Arc<dyn Allowance>>> {
        let works = self.demand.works_mut().iter_mut().flatten();
        works
            .map(|work| work.transaction.allowance.take())
            .collect()
    }

    /// Puts back what was taken out.
    pub(super) fn put_allowances(&mut self, allowances: Vec<Option<Arc<dyn Allowance>>>) {
        let works = self.demand.works_mut().iter_mut().flatten();
        for (work, allowance) in works.zip(allowances) {
            work.transaction.allowance = allowance;
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.demand.size()
    }

    /// Returns whether staging it reads what is stored under keys.
    pub(crate) fn reads_state(&self) -> bool {
        !matches!(self.demand, Demand::Write(_))
    }

    /// How many commits it may become.
    pub(super) fn n_commits(&self) -> usize {
        match (&self.demand, &self.asker) {
            (Demand::Execute(works), asker) => works.len() - asker.n_done(),
            (Demand::Write(_) | Demand::Clean(_), _) => 1,
        }
    }
}

/// Requests that the leader has taken from the queue, in order.
#[derive(Debug, Default)]
pub(crate) struct TakenRequests {
    pub(super) demands: Vec<Demand>,
    pub(super) askers: Vec<Asker>,
}

impl TakenRequests {
    pub(super) fn push(&mut self, request: WriteRequest) {
        self.demands.push(request.demand);
        self.askers.push(request.asker);
    }

    pub(super) fn len(&self) -> usize {
        self.askers.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.askers.is_empty()
    }

    /// How much of the first of them is done, if it is several transactions.
    pub(super) fn n_done(&self) -> usize {
        self.askers.first().map_or(0, Asker::n_done)
    }

    /// Drops what those demanded who are answered: nobody asks for it any more.
    pub(super) fn drop_answered(&mut self) {
        let n_answered = self.demands.len() - self.askers.len();
        self.demands.drain(..n_answered);
    }

    /// Answers to all that nothing is done that was not done before.
    pub(super) fn refuse(&mut self, error: &Error) {
        self.demands.clear();
        self.askers.drain(..).for_each(|asker| asker.refuse(error));
    }

    pub(super) fn size(&self) -> usize {
        self.demands.iter().map(Demand::size).sum()
    }

    /// Returns whether they are large.
    pub(super) fn are_large(&self) -> bool {
        are_large(self.len(), self.size())
    }

    /// Returns whether all of them are commits and transactions, with fewer events than `events_max`.
    pub(super) fn are_ordinary(&self, events_max: usize) -> bool {
        let n_events: usize = self.demands.iter().map(Demand::n_events).sum();
        n_events < events_max && self.demands.iter().all(Demand::is_ordinary)
    }
}

impl IntoIterator for TakenRequests {
    type Item = WriteRequest;
    type IntoIter = std::iter::Map<
        std::iter::Zip<std::vec::IntoIter<Demand>, std::vec::IntoIter<Asker>>,
        fn((Demand, Asker)) -> WriteRequest,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let pairs = self.demands.into_iter().zip(self.askers);
        pairs.map(|(demand, asker)| WriteRequest { demand, asker })
    }
}
