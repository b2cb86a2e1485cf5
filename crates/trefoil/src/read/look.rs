//! Reading the state: commands that change nothing, all on the state of one moment.

use bytes::Bytes;
use fastrand::Rng;
use trefoil_core::{Error, Result, Tracking};
use trefoil_state::{
    Call, CommandAccess, CommandError, CommandMoment, Keyspace, Meter, Reply, SetTimer, Survey,
};

use crate::database::engine::Engine;
use crate::read::listing::List;
use crate::state::{DurableView, trackings};
use crate::write::transaction::{Executed, Step, Transaction};

/// This many commands that each read little are run at once, on the thread of the caller.
const SHORT_MAX: usize = 64;

/// How many bytes of replies are made at once, on the thread of the caller.
const SHORT_BYTES_MAX: usize = 1024 * 1024;

/// The state of one moment, which is durable, for commands that only read. It stays as it is for as
/// long as this is held.
#[derive(Debug)]
pub struct StateSnapshot {
    view: DurableView,
    moment: CommandMoment,
}

impl StateSnapshot {
    pub(crate) fn new(engine: &Engine) -> Self {
        Self {
            view: DurableView::new(&engine.store),
            moment: moment(engine),
        }
    }

    /// Returns the same for a thread that must not wait for the disk, see
    /// [`Database::snapshot_at_hand`](crate::Database::snapshot_at_hand).
    pub(crate) fn at_hand(engine: &Engine) -> Self {
        Self {
            view: DurableView::at_hand(&engine.store),
            moment: moment(engine),
        }
    }

    /// Returns whether a read failed because something is not in memory, see
    /// [`Database::snapshot_at_hand`](crate::Database::snapshot_at_hand).
    pub fn is_short(&self) -> bool {
        self.view.is_short()
    }

    /// Returns the state of a moment, and the position of the last event then.
    pub(crate) fn with_position(engine: &Engine) -> (Self, u64) {
        let (view, position) = DurableView::at(&engine.store, || engine.writer.head());
        let moment = moment(engine);
        (Self { view, moment }, position)
    }

    /// Returns a page of all sources of tracked positions.
    pub(crate) fn trackings(&self, list: &List) -> Result<Vec<Tracking>> {
        trackings(&self.view, list)
    }

    /// Returns timers that are set, see [`Keyspace::set_timers`].
    pub(crate) fn timers(&mut self, from: &[u8]) -> Result<(Vec<SetTimer>, Option<Bytes>)> {
        let keyspace = Keyspace::new(&mut self.view, self.moment)?;
        keyspace.set_timers(from)
    }

    /// Runs a command. What its reply takes is counted by `meter`.
    pub fn look(&mut self, call: &Call, meter: &Meter<'_>) -> Result<Reply> {
        if call.spec().access == CommandAccess::Write {
            return Err(Error::invalid(format!("{} may write", call.spec().name)));
        }
        let mut keyspace = Keyspace::new(&mut self.view, self.moment)?.metered(meter);
        let reply = call.run(&mut keyspace);
        // The next command picks something else.
        self.moment.seed = Rng::with_seed(self.moment.seed).u64(..);
        // Nothing of this would be written. The commands of Redis are known to be right.
        if self.view.is_written_to && call.spec().is_of_application() {
            let name = call.spec().name;
            return Err(Error::invalid(format!("{name} writes, but says it reads")));
        }
        match reply {
            Ok(reply) => Ok(reply),
            Err(CommandError::Refused(text)) => Ok(Reply::Error(text)),
            Err(CommandError::Engine(error)) => Err(error),
        }
    }
}

/// Runs commands that only read, on the state of one moment, which is durable.
pub(crate) fn look<'a>(
    engine: &Engine,
    calls: impl Iterator<Item = &'a Call>,
    meter: &Meter<'_>,
) -> Result<Vec<Reply>> {
    look_at(&mut StateSnapshot::new(engine), calls, meter)
}

fn look_at<'a>(
    snapshot: &mut StateSnapshot,
    calls: impl Iterator<Item = &'a Call>,
    meter: &Meter<'_>,
) -> Result<Vec<Reply>> {
    calls.map(|call| snapshot.look(call, meter)).collect()
}

/// Returns the moment of a read.
fn moment(engine: &Engine) -> CommandMoment {
    CommandMoment {
        now: engine.clock().now().millis(),
        seed: engine.random(),
        position: 0,
    }
}

/// Returns how many keys there are, and how many of them expire.
pub(crate) fn survey(engine: &Engine) -> Result<Survey> {
    let mut view = DurableView::new(&engine.store);
    Keyspace::new(&mut view, moment(engine))?.survey()
}

/// Transactions that need no writer: they only read, and on no condition.
#[derive(Debug)]
pub(crate) struct Looks(Vec<Transaction>);

impl Looks {
    /// Returns the transactions as they are if one of them needs the writer.
    pub(crate) fn new(
        transactions: Vec<Result<Transaction>>,
    ) -> Result<Self, Vec<Result<Transaction>>> {
        let is_look = |transaction: &Result<Transaction>| {
            transaction.as_ref().is_ok_and(|transaction| {
                transaction.is_read_only()
                    && transaction.conditions.is_empty()
                    && transaction.guards.is_empty()
                    && transaction.watch.is_none()
            })
        };
        match transactions.iter().all(is_look) {
            true => Ok(Self(transactions.into_iter().flatten().collect())),
            false => Err(transactions),
        }
    }

    /// Returns whether nobody is kept for long by running them.
    fn are_short(&self) -> bool {
        let calls = || self.0.iter().flat_map(calls);
        calls().nth(SHORT_MAX).is_none()
            && calls().all(|call| call.spec().access != CommandAccess::Read)
    }

    /// Runs them, with as much memory for replies as each is allowed.
    pub(crate) fn run(&self, engine: &Engine) -> Vec<Result<Executed>> {
        let run = |transaction: &Transaction| {
            let meter = Meter::asking(transaction.allowance.as_deref());
            run(&mut StateSnapshot::new(engine), transaction, &meter)
        };
        self.0.iter().map(run).collect()
    }

    /// Runs them if they are short and so are their replies, and nothing has to be waited for.
    pub(crate) fn run_if_short(&self, engine: &Engine) -> Option<Vec<Result<Executed>>> {
        if !self.are_short() {
            return None;
        }
        let meter = Meter::within(SHORT_BYTES_MAX);
        let mut executed = Vec::with_capacity(self.0.len());
        for transaction in &self.0 {
            let mut snapshot = StateSnapshot::at_hand(engine);
            executed.push(run(&mut snapshot, transaction, &meter));
            if snapshot.is_short() || meter.is_exceeded() {
                return None;
            }
        }
        Some(executed)
    }
}

fn run(
    snapshot: &mut StateSnapshot,
    transaction: &Transaction,
    meter: &Meter<'_>,
) -> Result<Executed> {
    let replies = look_at(snapshot, calls(transaction), meter)?;
    if transaction.is_strict {
        refuse_errors(&replies)?;
    }
    Ok(Executed {
        commit: None,
        replies,
        events: Vec::new(),
        replayed: false,
    })
}

/// Says which of a strict transaction's commands failed, if one did.
fn refuse_errors(replies: &[Reply]) -> Result<()> {
    for (index, reply) in replies.iter().enumerate() {
        if let Reply::Error(text) = reply {
            let text = text.clone().into_owned();
            return Err(Error::CommandFailed { index, text });
        }
    }
    Ok(())
}

fn calls(transaction: &Transaction) -> impl Iterator<Item = &Call> {
    transaction.steps.iter().filter_map(|step| match step {
        Step::Call(call) => Some(call),
        Step::Append { .. } => None,
    })
}
