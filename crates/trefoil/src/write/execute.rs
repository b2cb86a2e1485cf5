//! Staging a transaction: its commands run on the group's view of the state, its events follow.

use std::ops::Range;

use trefoil_core::limits::EVENTS_PER_COMMIT_MAX;
use trefoil_core::{Appended, Error, Event, Result};
use trefoil_state::{Call, CommandError, Keyspace, Meter, Reply};

use super::conditions::check_version;
use super::known::replayed;
use super::stage::Stage;
use super::staged::{Staged, StagedEvent};
use crate::read::condition::CheckedConditions;
use crate::state::StoredReplies;
use crate::write::transaction::{Executed, Guard, Step, Transaction, Wanted};

/// A transaction, and what is known of its conditions.
#[derive(Debug)]
pub(crate) struct CheckedTransaction {
    pub(crate) transaction: Transaction,
    pub(crate) checked: CheckedConditions,
}

/// What the steps of a transaction have come to.
#[derive(Default)]
struct TransactionProgress<'a> {
    replies: Vec<Reply>,
    events: Vec<StagedEvent<'a>>,
    /// What tells the transaction from the others of the group.
    number: u64,
}

impl<'a> Stage<'a> {
    /// Stages a transaction, or says why it is not executed.
    pub(crate) fn execute(&mut self, work: &'a CheckedTransaction) -> Result<Executed> {
        let CheckedTransaction {
            transaction,
            checked,
        } = work;
        if let Some(executed) = self.executed_before(transaction)? {
            return Ok(executed);
        }
        if let Some(executed) = self.appended_before(transaction)? {
            return Ok(executed);
        }
        self.check_watch(transaction)?;
        self.check_conditions(&transaction.conditions, checked)?;
        self.check_guards(&transaction.guards)?;
        self.whole_or_not(|stage| stage.run(transaction))
    }

    /// What is stored of a transaction that was executed before.
    fn executed_before(&mut self, transaction: &Transaction) -> Result<Option<Executed>> {
        let Some(name) = &transaction.id else {
            return Ok(None);
        };
        let Some(stored) = self.view().stored_replies(name)? else {
            return Ok(None);
        };
        let positions = stored.position..stored.position + stored.n_events;
        let events = self.appended_at(positions)?;
        Ok(Some(Executed {
            commit: (stored.commit > 0).then_some(stored.commit),
            events,
            replies: stored.replies,
            replayed: true,
        }))
    }

    /// What became of a transaction that only appends events, and did so before.
    fn appended_before(&mut self, transaction: &Transaction) -> Result<Option<Executed>> {
        let is_call = |step: &Step| matches!(step, Step::Call(_));
        if transaction.steps.iter().any(is_call) {
            return Ok(None);
        }
        let known = self.known_of(transaction.appended())?;
        let Some(written) = replayed(&known) else {
            return Ok(None);
        };
        self.track_again(transaction.tracking.as_ref())?;
        Ok(Some(Executed {
            commit: Some(written.commit),
            replies: written.events.iter().map(event_reply).collect(),
            events: written.events,
            replayed: true,
        }))
    }

    /// Where the events at these positions, staged or durable, went. They are all there.
    fn appended_at(&self, positions: Range<u64>) -> Result<Vec<Appended>> {
        let is_durable = |position: &u64| self.overlay.event_at(*position).is_none();
        let durable: Vec<u64> = positions.clone().filter(is_durable).collect();
        let appended = |event: Event| Appended {
            id: event.id(),
            position: event.position(),
            stream_position: event.stream_position(),
        };
        // What is staged comes after what is durable.
        let events = self.durable_events(&durable)?.into_iter().map(appended);
        let staged = positions.filter_map(|position| self.overlay.event_at(position));
        Ok(events.chain(staged.map(Staged::appended)).collect())
    }

    fn check_watch(&mut self, transaction: &Transaction) -> Result<()> {
        let Some(watch) = &transaction.watch else {
            return Ok(());
        };
        let (now, watches) = (self.moment().now, &self.store().watches);
        match watch.is_changed(watches, now, self.view().touched_before()) {
            true => Err(Error::WatchedKeyChanged),
            false => Ok(()),
        }
    }

    fn check_guards(&mut self, guards: &[Guard]) -> Result<()> {
        let moment = self.moment();
        for (guard, wanted) in guards.iter().enumerate() {
            let mut keyspace = Keyspace::new(self.view(), moment)?;
            if !holds(&mut keyspace, wanted)? {
                return Err(Error::GuardFailed { guard });
            }
        }
        Ok(())
    }

    /// Runs a transaction whose conditions hold.
    fn run(&mut self, transaction: &'a Transaction) -> Result<Executed> {
        let mut progress = TransactionProgress {
            number: self.begin_transaction(),
            ..TransactionProgress::default()
        };
        let meter = Meter::asking(transaction.allowance.as_deref());
        for (index, step) in transaction.steps.iter().enumerate() {
            let reply = match step {
                Step::Call(call) => {
                    self.call(&mut progress, call, index, transaction.is_strict, &meter)?
                }
                Step::Append { event, expected } => {
                    let event = StagedEvent::HandedIn(event);
                    self.note_event(&mut progress, index, event, *expected)?
                }
            };
            progress.replies.push(reply);
        }
        let n_events = progress.events.len();
        if n_events > EVENTS_PER_COMMIT_MAX {
            let what = "number of events";
            return Err(Error::over_limit(what, n_events, EVENTS_PER_COMMIT_MAX));
        }
        let (events, tracking) = (progress.events, transaction.tracking.as_ref());
        let known = self.known_of(events.iter().map(|event| &**event))?;
        if let Some(name) = &transaction.id {
            self.store_replies(name, events.len() as u64, &progress.replies)?;
        }
        let has_events = !events.is_empty() || tracking.is_some();
        let executed = |commit, events| Executed {
            commit,
            replies: progress.replies,
            events,
            replayed: false,
        };
        if !has_events && !self.view().has_changes() {
            self.view().touch_only();
            return Ok(executed(None, Vec::new()));
        }
        let committed = self.stage_commit(events, tracking, &known)?;
        Ok(executed(Some(committed.commit), committed.events))
    }

    /// Runs a command. One that fails leaves nothing behind, and ends a strict transaction.
    fn call(
        &mut self,
        progress: &mut TransactionProgress<'a>,
        call: &Call,
        index: usize,
        is_strict: bool,
        meter: &Meter<'_>,
    ) -> Result<Reply> {
        let mut moment = self.moment();
        moment.position += progress.events.len() as u64;
        let store = self.store();
        let view = self.view();
        view.begin_command();
        let mut keyspace = Keyspace::new(view, moment)?
            .to_change(&store.commands, store.event_data_bytes_max)
            .metered(meter);
        match call.run(&mut keyspace) {
            Ok(reply) => {
                for event in keyspace.take_events() {
                    let event = StagedEvent::Made(Box::new(event));
                    self.note_event(progress, index, event, None)?;
                }
                Ok(reply)
            }
            Err(CommandError::Refused(text)) if is_strict => Err(Error::CommandFailed {
                index,
                text: text.into_owned(),
            }),
            Err(CommandError::Refused(text)) => {
                view.take_back_command();
                Ok(Reply::Error(text))
            }
            Err(CommandError::Engine(error)) => Err(error),
        }
    }

    /// Notes an event that is to be appended. Returns where it will go.
    fn note_event(
        &mut self,
        progress: &mut TransactionProgress<'a>,
        index: usize,
        event: StagedEvent<'a>,
        expected: Option<i64>,
    ) -> Result<Reply> {
        let position = self.next_position() + progress.events.len() as u64;
        let mut stream_position = -1;
        if let Some(stream) = &event.stream {
            let place = self.stream(stream)?;
            if let Some(expected) = expected {
                let last = self.overlay.last_noted(place, progress.number);
                check_version(index, stream, expected, last)?;
            }
            stream_position = self.overlay.note_next(place, progress.number) as i64;
        }
        progress.events.push(event);
        Ok(positions_reply(position, stream_position))
    }

    /// Keeps the replies of a transaction that has a name and comes next.
    fn store_replies(&mut self, name: &[u8], n_events: u64, replies: &[Reply]) -> Result<()> {
        let stored = StoredReplies {
            commit: self.next_commit(),
            position: self.next_position(),
            n_events,
            replies: replies.to_vec(),
        };
        let (now, retention) = (self.moment().now, self.store().retention);
        self.view().store_replies(name, now, retention, &stored)
    }
}

fn event_reply(appended: &Appended) -> Reply {
    let stream_position = appended.stream_position.map_or(-1, |at| at as i64);
    positions_reply(appended.position, stream_position)
}

fn positions_reply(position: u64, stream_position: i64) -> Reply {
    let position = Reply::Integer(position as i64);
    Reply::Array(vec![position, Reply::Integer(stream_position)])
}

/// Whether a guard holds. One that asks for the value of something of another type does not.
fn holds(keyspace: &mut Keyspace<'_>, guard: &Guard) -> Result<bool> {
    let Some(call) = guard.question() else {
        return Ok(false);
    };
    let answer = match call.run(keyspace) {
        Ok(answer) => answer,
        Err(CommandError::Refused(_)) => return Ok(false),
        Err(CommandError::Engine(error)) => return Err(error),
    };
    Ok(match (&guard.wanted, answer) {
        (Wanted::Present, answer) => answer == Reply::Integer(1),
        (Wanted::Absent, answer) => answer == Reply::Integer(0),
        (Wanted::Equal(wanted), answer) => answer == Reply::Bulk(wanted.clone()),
        (Wanted::NotEqual(unwanted), answer) => answer != Reply::Bulk(unwanted.clone()),
    })
}
