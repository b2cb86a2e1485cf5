//! `trefoil state`: any command on the state.
//!
//! It goes the way of a commit with one command, so that one URL and one token do for everything.

use std::ffi::OsString;
use std::io::Read as _;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::commit::{CommitRequest, StateReply, StateWord};
use crate::client::ConnectionArguments;
use crate::output::{CommandOutput, OutputFormat};

const EXAMPLES: &str = "The words of the command are those that redis-cli takes. Flags of trefoil come before them. On a
terminal the reply has its type, through a pipe it is the bytes alone. Commands of a connection or of
the server (MULTI, SUBSCRIBE, CLIENT, INFO, EVENT.READ …) need a Redis client.

Examples:
  trefoil state SET greeting hello EX 60
  trefoil state --output json HGETALL stats:1
  trefoil state -x SET picture < picture.png
  trefoil state SCAN 0 MATCH 'seat:*' COUNT 100";

/// Runs a command on the state and prints its reply.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Read the last word of the command from standard input
    #[arg(long = "stdin", short = 'x')]
    last_from_stdin: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
    /// The command and its arguments
    #[arg(
        value_name = "WORD",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

#[derive(Deserialize)]
struct Answer {
    state: [Box<RawValue>; 1],
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let mut words: Vec<StateWord<'_>> = { self.words.iter() }
            .map(|word| StateWord::from(word.as_os_str()))
            .collect();
        if self.last_from_stdin {
            let mut last = Vec::new();
            let read = std::io::stdin().read_to_end(&mut last);
            read.context("cannot read the last word from standard input")?;
            words.push(StateWord(last.into()));
        }
        let request = CommitRequest {
            state: vec![words],
            ..CommitRequest::default()
        };
        let client = self.connection.client()?;
        let Answer { state: [reply] } = client.call(&("commit", request))?;
        let is_terminal = output.look.is_terminal();
        match output.format {
            OutputFormat::Table => {
                let reply: StateReply = serde_json::from_str(reply.get())?;
                match is_terminal {
                    true => output.line(reply.typed())?,
                    false => output.bytes_line(&reply.raw())?,
                }
            }
            OutputFormat::Csv if reply.get().starts_with('[') => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(reply.get())?;
                items.iter().try_for_each(|item| output.item(item))?;
            }
            _ => output.value(&reply)?,
        }
        Ok(())
    }
}
