//! `trefoil doctor`: what could go wrong, before it does, and what to do.
//!
//! ```text
//! server    what the server says: reachable, ready, versions, token, writes, room, syncs, clock
//! machine   what this machine has: room, syncs, open files, memory
//! ```

mod machine;
mod server;

use std::path::PathBuf;

use anyhow::bail;
use serde::Serialize;

use crate::client::ConnectionArguments;
use crate::output::{BAD, Column, CommandOutput, GOOD, Look, WORRYING, spinner};

const EXAMPLES: &str =
    "Each check is ok, warn or fail, with what to do. The exit code is 1 if one fails.

With --data-dir the disk of the server's data directory is measured: this writes a small file there,
syncs it, and removes it.

Examples:
  trefoil doctor
  trefoil doctor --context prod --output json
  trefoil doctor --data-dir /var/lib/trefoil";

/// Checks a server, and this machine if it is the server's.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Also measure this directory, and check the limits of this machine
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// What was checked, what was found, and what is to be done.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    check: &'static str,
    verdict: Verdict,
    found: String,
    advice: String,
}

impl Check {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, found, "")
    }

    pub(super) fn new(
        check: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            check,
            verdict,
            found: found.into(),
            advice: advice.into(),
        }
    }

    fn line(&self, look: &Look) -> String {
        let (style, word) = match self.verdict {
            Verdict::Ok => (GOOD, "ok  "),
            Verdict::Warn => (WORRYING, "warn"),
            Verdict::Fail => (BAD, "fail"),
        };
        let advice = match self.advice.is_empty() {
            true => String::new(),
            false => format!("\n      -> {}", self.advice),
        };
        let (word, check) = (look.paint(style, word), self.check);
        format!("{word}  {check}: {}{advice}", self.found)
    }
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let bar = spinner()?;
        bar.set_message("asking the server");
        let client = self.connection.client()?;
        let mut checks = server::checks(&client);
        if let Some(directory) = &self.data_dir {
            bar.set_message(format!("measuring {}", directory.display()));
            checks.extend(machine::disk(directory));
        }
        if self.data_dir.is_some() || client.is_local() {
            checks.extend(machine::limits());
        }
        bar.finish_and_clear();
        match output.is_text() {
            true => {
                for check in &checks {
                    let line = check.line(&output.look);
                    output.line(line)?;
                }
            }
            false => output.table(&checks, NO_COLUMNS)?,
        }
        let failed = checks.iter().filter(|check| check.verdict == Verdict::Fail);
        match failed.count() {
            0 => Ok(()),
            1 => bail!("1 check failed"),
            count => bail!("{count} checks failed"),
        }
    }
}

/// The lines are not a table: what is to be done is too long for a column.
const NO_COLUMNS: &[Column<Check>] = &[];
