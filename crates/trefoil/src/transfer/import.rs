//! Taking lines of the state.

use bytes::Bytes;
use trefoil_core::{Error, Result, Tracking};
use trefoil_state::{Call, CommandError, SetTimer};

use super::StateLine;
use crate::Database;
use crate::write::transaction::Transaction;

/// The commands that an export uses.
const TAKEN: [&str; 8] = [
    "append",
    "hpexpireat",
    "hset",
    "pexpireat",
    "rpush",
    "sadd",
    "set",
    "zadd",
];

impl Database {
    /// Returns whether there are any keys, expired ones that are still to be cleaned included.
    pub fn has_keys(&self) -> Result<bool> {
        Ok(self.survey()?.keys > 0)
    }

    /// Takes lines that [`Self::export_state`] wrote of another database, in their order. Commands and
    /// timers take effect together or not at all, then positions are recorded that are higher than those
    /// recorded already. An error in a line is [`Error::ImportStopped`]. Blocks the thread.
    pub fn import_state(&self, lines: Vec<StateLine>) -> Result<()> {
        let mut transaction = Transaction::new();
        let (mut places, mut trackings) = (Vec::new(), Vec::new());
        for (index, line) in lines.into_iter().enumerate() {
            let stopped = |error| stopped(index, error);
            let call = match line {
                StateLine::Command(words) => self.state_call(words).map_err(stopped)?,
                StateLine::Timer(timer) => timer_call(timer).map_err(stopped)?,
                StateLine::Tracking(tracking) => {
                    trackings.push((index, tracking));
                    continue;
                }
            };
            transaction = transaction.call(call);
            places.push(index);
        }
        if !places.is_empty() {
            self.transact(transaction).map_err(|error| match error {
                Error::CommandFailed { index, text } => {
                    let line = places.get(index).copied().unwrap_or_default();
                    stopped(line, Error::invalid(text))
                }
                error => error,
            })?;
        }
        self.record(trackings)
    }

    fn state_call(&self, words: Vec<Bytes>) -> Result<Call> {
        let call = self.call(words)?;
        let name = call.spec().name;
        match TAKEN.contains(&name) {
            true => Ok(call),
            false => Err(Error::invalid(format!("{name} is no command of an export"))),
        }
    }

    fn record(&self, trackings: Vec<(usize, Tracking)>) -> Result<()> {
        let mut places = Vec::new();
        let mut transactions = Vec::new();
        for (index, tracking) in trackings {
            // Events bring their own along.
            if self.tracking(&tracking.source)? < Some(tracking.position) {
                places.push(index);
                transactions.push(Transaction {
                    tracking: Some(tracking),
                    ..Transaction::new()
                });
            }
        }
        if transactions.is_empty() {
            return Ok(());
        }
        let recorded = self.transact_all(transactions)?;
        let mut recorded = places.into_iter().zip(recorded);
        recorded.try_for_each(|(index, recorded)| {
            recorded.map(drop).map_err(|error| stopped(index, error))
        })
    }
}

fn timer_call(timer: SetTimer) -> Result<Call> {
    timer.into_call().map_err(|error| match error {
        CommandError::Refused(text) => Error::invalid(text),
        CommandError::Engine(error) => error,
    })
}

fn stopped(index: usize, error: Error) -> Error {
    let error = Box::new(error);
    Error::ImportStopped { index, error }
}
