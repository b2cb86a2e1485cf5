//! Reading the state: commands that change nothing, all on the state of one moment.

use trefoil_core::{Error, Result};
use trefoil_state::{Access, Call, Failure, Keyspace, Moment, Reply, Survey};

use crate::engine::Engine;
use crate::state::View;
use crate::transaction::{Executed, Step, Transaction};

/// So many commands that each read little are read at once by whoever asks.
const SHORT_MAX: usize = 64;

/// Runs commands that only read, on the state of one moment, which is durable.
pub(crate) fn look<'a>(
    engine: &Engine,
    calls: impl Iterator<Item = &'a Call>,
) -> Result<Vec<Reply>> {
    let mut view = View::new(&engine.store);
    let moment = moment(engine);
    let look = |call: &Call| {
        if call.spec().access == Access::Write {
            return Err(Error::invalid(format!("{} may write", call.spec().name)));
        }
        match call.run(&mut Keyspace::new(&mut view, moment)?) {
            Ok(reply) => Ok(reply),
            Err(Failure::Refused(text)) => Ok(Reply::Error(text)),
            Err(Failure::Engine(error)) => Err(error),
        }
    };
    calls.map(look).collect()
}

/// The moment of a read.
fn moment(engine: &Engine) -> Moment {
    Moment {
        now: engine.clock().now().millis(),
        seed: engine.random(),
        position: 0,
    }
}

/// How many keys there are, and how many of them expire.
pub(crate) fn survey(engine: &Engine) -> Result<Survey> {
    let mut view = View::new(&engine.store);
    Keyspace::new(&mut view, moment(engine))?.survey()
}

/// Transactions that need no writer: they only read, and on no condition.
#[derive(Debug)]
pub(crate) struct Looks(Vec<Transaction>);

impl Looks {
    /// The transactions as they are if one of them needs the writer.
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

    /// Whether nobody is kept for long by running them.
    pub(crate) fn are_short(&self) -> bool {
        let calls = || self.0.iter().flat_map(calls);
        calls().nth(SHORT_MAX).is_none() && calls().all(|call| call.spec().access != Access::Read)
    }

    pub(crate) fn run(&self, engine: &Engine) -> Vec<Result<Executed>> {
        let run = |transaction: &Transaction| {
            let replies = look(engine, calls(transaction))?;
            if transaction.is_strict {
                refuse_errors(&replies)?;
            }
            Ok(Executed {
                commit: None,
                replies,
                events: Vec::new(),
                replayed: false,
            })
        };
        self.0.iter().map(run).collect()
    }
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
