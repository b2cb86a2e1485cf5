//! Sequences of commands, whole transactions, restarts and expiries.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;

use super::compare::How;
use super::grammar::{Command, command};
use super::pools::pool;

/// One step of a sequence.
#[derive(Clone)]
pub(super) enum Step {
    /// A command on one of the two connections.
    Command(usize, Command),
    /// A key expires, really, while everybody waits.
    Expire(Vec<u8>),
    /// Trefoil writes a checkpoint.
    Checkpoint,
    /// Trefoil is killed and started again; both connections are new afterwards.
    Restart,
}

/// How a failing sequence is printed: like lines for `redis-cli`.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(connection, command) => write!(f, "{connection}> {command:?}"),
            Self::Expire(key) => write!(f, "PEXPIRE \"{}\" 1, and wait", key.escape_ascii()),
            Self::Checkpoint => write!(f, "checkpoint"),
            Self::Restart => write!(f, "kill -9 and restart"),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for word in &self.words {
            write!(f, "\"{}\" ", word.escape_ascii())?;
        }
        write!(f, "({:?})", self.how)
    }
}

/// A sequence.
pub(super) fn sequence(length: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(group(), 1..length).prop_map(|groups| groups.concat())
}

fn group() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![
        400 => step().prop_map(|step| vec![step]),
        30 => transaction(),
        6 => pool("key").prop_map(|key| vec![Step::Expire(key)]),
        6 => Just(vec![Step::Checkpoint]),
        3 => Just(vec![Step::Restart]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let connection = prop_oneof![5 => Just(0), 1 => Just(1)];
    (connection, command()).prop_map(|(connection, command)| Step::Command(connection, command))
}

/// `[WATCH] [a command of the other] MULTI commands EXEC`
fn transaction() -> impl Strategy<Value = Vec<Step>> {
    let watched = prop::option::of(vec(pool("key"), 1..3));
    let between = prop::option::of(command());
    let end = prop_oneof![8 => Just("EXEC"), 1 => Just("DISCARD")];
    (watched, between, vec(step(), 1..6), end).prop_map(|(watched, between, inside, end)| {
        let mut steps = Vec::new();
        if let Some(keys) = watched {
            let watch = [vec![b"WATCH".to_vec()], keys].concat();
            steps.push(exact(watch));
        }
        steps.extend(between.map(|command| Step::Command(1, command)));
        steps.push(exact(vec![b"MULTI".to_vec()]));
        steps.extend(inside);
        steps.push(exact(vec![end.as_bytes().to_vec()]));
        steps
    })
}

fn exact(words: Vec<Vec<u8>>) -> Step {
    let how = How::Exact;
    Step::Command(0, Command { how, words })
}
