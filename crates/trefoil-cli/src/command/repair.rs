//! `trefoil repair`: a new index from the log.

use serde_json::json;
use trefoil::Options;
use trefoil::tools::repair;

use super::databases::{ClosedDatabase, DatabaseArguments, for_each};
use crate::output::{CommandOutput, count_progress};

const EXAMPLES: &str = "Stop the server first. The log is read, never changed, except that an \
unfinished write at its end is cut off and kept aside, as at any start.

Examples:
  trefoil repair data/default
  trefoil verify data || trefoil repair data";

/// Throws the index away and rebuilds it from the log.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    databases: DatabaseArguments,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let is_json = output.format.is_json();
        output.begin_list();
        for_each(&self.databases.find()?.databases, is_json, |database| {
            repair_one(database, output)
        })
    }
}

fn repair_one(database: &ClosedDatabase, output: &mut CommandOutput) -> anyhow::Result<()> {
    let bar = count_progress()?;
    bar.set_message(format!("commits of {}", database.name));
    let options = Options::default().with_replay_listener({
        let bar = bar.clone();
        move |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        }
    });
    let repaired = database.claim().and_then(|claim| repair(claim, &options));
    bar.finish_and_clear();
    let events = repaired?.events;
    match output.is_text() {
        false => output.item(&json!({"database": database.name, "events": events}))?,
        true => output.line(format_args!(
            "{}  {events} events indexed again",
            database.name
        ))?,
    }
    Ok(output.flush()?)
}
