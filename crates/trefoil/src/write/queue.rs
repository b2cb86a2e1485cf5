//! The queue of commits that wait for the writer, and who leads it.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use trefoil_core::limits::{COMMIT_QUEUE_BYTES_MAX, COMMIT_QUEUE_MAX};
use trefoil_core::{Error, Result};
use trefoil_storage::GroupLimits;

use super::pace::GroupPace;
#[cfg(test)]
use super::request::Demand;
use super::request::{TakenRequests, WriteRequest, are_large};
use crate::time::clock::Clock;

/// How much waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) n_requests: usize,
    /// How many commits they may become.
    pub(crate) n_commits: usize,
    pub(crate) bytes: usize,
}

impl Backlog {
    /// Returns whether the requests are large.
    pub(crate) fn has_large_requests(&self) -> bool {
        are_large(self.n_requests, self.bytes)
    }
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

    /// Takes the next group for the leader. Returns how long the first of it has waited; `None` if
    /// nothing waits.
    pub(crate) fn next_group(
        &self,
        pace: &GroupPace,
        limits: GroupLimits,
        group: &mut TakenRequests,
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
        let since = state.since.take()?;
        let now = self.clock.steady();
        state.since = (!state.waiting.is_empty()).then_some(now);
        Some(now.saturating_sub(since))
    }

    /// The leader stops, and puts back what is left of its last group. Returns whether somebody
    /// must lead on because more is waiting.
    pub(crate) fn step_down(&self, left: TakenRequests) -> bool {
        let mut state = self.state.lock();
        let left: Vec<WriteRequest> = left.into_iter().collect();
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
        let is_write = |request: &&WriteRequest| matches!(request.demand, Demand::Write(_));
        self.state.lock().waiting.iter().filter(is_write).count()
    }

    /// Returns whether there is no leader and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        !state.has_leader && state.waiting.is_empty()
    }
}
