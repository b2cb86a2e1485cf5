//! A chain: groups that are staged while the one before is being appended.
//!
//! The leader stages, makes visible and answers; another thread appends, by way of the
//! [runway](Runway). All groups of a chain are staged on one stage, so each sees those before it,
//! durable or not. That is safe because nothing leaves too early: a group is appended only if the one
//! before it is durable, and answered only when that one is answered.
//!
//! If a group fails, what is staged after it was never written. Its requests are left to the leader,
//! like any that wait: they are refused, or staged again if others may still be written.

use std::cell::OnceCell;
use std::time::Duration;

use super::append::{AppendedGroup, EndedGroup, GroupSize, MANY_EVENTS};
use super::decide::{Decisions, GroupOutcome};
use super::request::{Asker, Demand, LetGo, TakenRequests};
use super::runway::{RunBeside, Runway};
use super::stage::Stage;
use super::staged::Staged;
use super::writer::{Next, Writer};

/// How many groups a chain has at most, and after how many bytes it ends: what was handed in is kept
/// until then.
const CHAIN_GROUPS_MAX: usize = 16;
const CHAIN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Returns whether these requests should begin a chain. It makes groups smaller, and wakes a thread for
/// each: that pays if a few requests make a group. What is not ordinary is staged when everything before
/// it is durable, and very many events are best let go of while they are added to the index.
pub(super) fn is_worth_a_chain(requests: &TakenRequests) -> bool {
    requests.are_large() && requests.are_ordinary(MANY_EVENTS)
}

/// What the requests of a group demand, for as long as the chain is.
type Slot = OnceCell<Vec<Demand>>;

/// A chain that is being written.
struct Chain<'a> {
    writer: &'a Writer,
    next: &'a mut Next,
    stage: Stage<'a>,
    runway: Runway,
    /// The group that is being appended.
    ahead: Option<GroupAhead>,
    /// Those who still ask for something of the last group that was appended.
    left: Vec<Asker>,
    /// How many bytes were handed in.
    taken_bytes: usize,
    /// How many bytes were written.
    n_bytes: usize,
}

/// A group that is being appended.
struct GroupAhead {
    group: AppendedGroup,
    outcome: GroupOutcome,
    askers: Vec<Asker>,
}

/// How a step of a chain went.
enum ChainStep {
    /// The chain goes on.
    Done,
    /// The chain ends, and these still ask for something of the last group.
    Ended(Vec<Asker>),
}

impl Writer {
    /// Writes requests, and those that come meanwhile, as groups of a chain. Returns how many bytes were
    /// written. Requests that are left are for the leader.
    pub(super) fn write_chain(
        &self,
        requests: &mut TakenRequests,
        queued: Duration,
        run_beside: &RunBeside<'_>,
    ) -> usize {
        let mut next = self.next.lock();
        if let Err(error) = self.check_ready() {
            requests.refuse(&error);
            return 0;
        }
        let slots = [const { Slot::new() }; CHAIN_GROUPS_MAX];
        let (n_bytes, (slot, askers)) = self.with_durable(|durable| {
            let mut chain = Chain {
                writer: self,
                stage: self.new_stage(durable, next.start()),
                next: &mut next,
                runway: Runway::open(&self.clock, run_beside),
                ahead: None,
                left: Vec::new(),
                taken_bytes: 0,
                n_bytes: 0,
            };
            let left = chain.write(&slots, requests, queued);
            (chain.n_bytes, left)
        });
        drop(next);
        if !askers.is_empty() {
            let demands = slots.into_iter().nth(slot).and_then(OnceCell::into_inner);
            *requests = TakenRequests {
                demands: demands.unwrap_or_default(),
                askers,
            };
            requests.drop_answered();
        }
        n_bytes
    }
}

impl<'a> Chain<'a> {
    /// Writes groups. Returns those who still ask for something, and in which slot that is.
    fn write(
        &mut self,
        slots: &'a [Slot],
        requests: &mut TakenRequests,
        queued: Duration,
    ) -> (usize, Vec<Asker>) {
        let mut queued = queued;
        for (index, slot) in slots.iter().enumerate() {
            self.taken_bytes += requests.size();
            let n_done = requests.n_done();
            let TakenRequests { demands, askers } = std::mem::take(requests);
            let demands = slot.get_or_init(|| demands);
            let step = self.write_group((demands, n_done), askers, queued);
            let is_last = index + 1 == slots.len();
            match step {
                ChainStep::Ended(left) => return (index, left),
                ChainStep::Done if is_last => break,
                ChainStep::Done => {}
            }
            queued = match self.take_next(requests) {
                Some(waited) if requests.are_ordinary(MANY_EVENTS) => waited,
                // What is not ordinary is left to the leader.
                _ => break,
            };
        }
        self.land();
        (0, Vec::new())
    }

    /// Stages a group and has it appended. Before it is, the one before it is made visible and answered.
    fn write_group(
        &mut self,
        (demands, n_done): (&'a [Demand], usize),
        mut askers: Vec<Asker>,
        queued: Duration,
    ) -> ChainStep {
        let writer = self.writer;
        let began = writer.clock.steady();
        self.stage.begin_group(writer.clock.now());
        let Some(decisions) = Decisions::of_all(demands, n_done, &mut self.stage) else {
            // The leader finds out which of them it was.
            self.land();
            return ChainStep::Ended(askers);
        };
        let is_complete = decisions.are_complete(demands, n_done);
        let outcome = GroupOutcome {
            decisions,
            has_panicked: false,
            queued,
            began,
            staging: writer.clock.since(began),
        };
        if self.stage.is_empty() {
            // What was decided may depend on the group before.
            if !self.land() {
                return ChainStep::Ended(askers);
            }
            writer.touch_only(&mut self.stage);
            writer.answer(outcome, &mut askers, Ok(EndedGroup::default()));
            return ChainStep::Done;
        }
        let to_clean = match writer.announce(&mut self.stage) {
            Ok(to_clean) => to_clean,
            Err(error) => {
                if self.land() {
                    writer.answer(outcome, &mut askers, Err(error));
                }
                return ChainStep::Ended(askers);
            }
        };
        let front = (self.stage.finish(), self.stage.random());
        let entries = self.stage.changed_entries();
        let records = self.stage.take_group();
        let size = GroupSize::of(&records);
        self.runway.hand_over(&writer.storage, records);
        if !self.land() {
            // It was never appended.
            writer.store.watches.end();
            return ChainStep::Ended(askers);
        }
        let group = AppendedGroup {
            prepared: writer.index.prepare(self.stage.events(), Staged::indexed),
            front,
            entries,
            to_clean,
            size,
            // It is done while the group is appended.
            preparing: Duration::ZERO,
        };
        self.ahead = Some(GroupAhead {
            group,
            outcome,
            askers,
        });
        if is_complete {
            return ChainStep::Done;
        }
        self.land();
        ChainStep::Ended(std::mem::take(&mut self.left))
    }

    /// Takes the next requests, if the chain may go on: while a group is being appended if some wait
    /// already, or else after it. Returns how long the first of them has waited.
    fn take_next(&mut self, requests: &mut TakenRequests) -> Option<Duration> {
        let writer = self.writer;
        // What is full must be frozen, which cannot be done while a group is on its way.
        let is_full = writer.index.is_tail_full() || writer.store.is_full();
        if is_full || self.taken_bytes >= CHAIN_BYTES_MAX {
            return None;
        }
        let mut take = || {
            let Writer { queue, pace, .. } = writer;
            queue.next_group(pace, writer.limits, requests)
        };
        if let Some(waited) = take() {
            return Some(waited);
        }
        match self.land() {
            true => take(),
            false => None,
        }
    }

    /// Waits for the group that is being appended, if there is one, makes it visible and answers.
    /// Returns whether it went well.
    fn land(&mut self) -> bool {
        let Some(GroupAhead {
            group,
            outcome,
            mut askers,
        }) = self.ahead.take()
        else {
            return true;
        };
        let writer = self.writer;
        let departure = self.runway.wait();
        let next = &mut *self.next;
        let ended = self
            .stage
            .while_landing(|| writer.end_group(next, (group, LetGo::new()), departure, &outcome));
        let is_well = ended.is_ok();
        self.n_bytes += writer.answer(outcome, &mut askers, ended);
        self.left = askers;
        is_well
    }
}
