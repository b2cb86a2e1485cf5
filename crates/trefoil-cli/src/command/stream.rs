//! `trefoil stream`: removing events of streams.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::ConnectionArguments;
use crate::input::confirm;
use crate::output::CommandOutput;

const EXAMPLES: &str =
    "Removed events are gone for every reader at once. The stream keeps its version.

Examples:
  trefoil stream truncate account-1 --before 100
  trefoil stream truncate account-1 --before-time 2026-01-01T00:00:00Z
  trefoil stream delete account-1 --yes";

/// Truncates and deletes streams.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: StreamAction,
}

#[derive(Debug, clap::Subcommand)]
enum StreamAction {
    /// Remove the events of a stream before a place
    #[command(
        after_help = "Example:\n  trefoil stream truncate account-1 --before 100",
        override_usage = "trefoil stream truncate <STREAM> --before <POSITION> [OPTIONS]"
    )]
    Truncate(Truncate),
    /// Remove all events of a stream
    #[command(after_help = "Example:\n  trefoil stream delete account-1 --yes")]
    Delete(Delete),
}

#[derive(Debug, clap::Args)]
struct Truncate {
    /// The stream
    stream: String,
    #[command(flatten)]
    place: TruncatePlace,
    /// Only if this is the position of the stream's last event
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true)]
    expected_version: Option<i64>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// Where the events begin that are kept.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct TruncatePlace {
    /// The position in the stream of the first event that is kept
    #[arg(long, value_name = "POSITION")]
    before: Option<u64>,
    /// Remove the events before this global position
    #[arg(long, value_name = "POSITION")]
    before_global: Option<u64>,
    /// Remove the events before this time
    #[arg(long, value_name = "TIME")]
    before_time: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Delete {
    /// The stream
    stream: String,
    /// Only if this is the position of the stream's last event
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true)]
    expected_version: Option<i64>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Serialize, Deserialize)]
struct RemovedEvents {
    removed: u64,
    version: Option<u64>,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.action {
            StreamAction::Truncate(arguments) => arguments.run(output),
            StreamAction::Delete(arguments) => arguments.run(output),
        }
    }
}

impl Truncate {
    fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let TruncatePlace {
            before,
            before_global,
            before_time,
        } = self.place;
        let mut place = Map::new();
        let given = [
            ("position", before.map(Value::from)),
            ("globalPosition", before_global.map(Value::from)),
            ("time", before_time.map(Value::from)),
            ("expectedVersion", self.expected_version.map(Value::from)),
        ];
        for (name, value) in given {
            place.extend(value.map(|value| (name.to_owned(), value)));
        }
        let client = self.connection.client()?;
        let removed = client.call(&("stream.truncate", &self.stream, place))?;
        report(&self.stream, &removed, output)
    }
}

impl Delete {
    fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        confirm(
            &format!("Delete all events of stream '{}'?", self.stream),
            self.yes,
        )?;
        let options = match self.expected_version {
            Some(version) => json!({"expectedVersion": version}),
            None => json!({}),
        };
        let removed = client.call(&("stream.delete", &self.stream, options))?;
        report(&self.stream, &removed, output)
    }
}

fn report(stream: &str, removed: &RemovedEvents, output: &mut CommandOutput) -> anyhow::Result<()> {
    if !output.is_text() {
        return Ok(output.value(removed)?);
    }
    let RemovedEvents { removed, version } = removed;
    let version = version.map_or_else(|| "-".to_owned(), |version| version.to_string());
    Ok(output.line(format!("{stream}@{version}  {removed} removed"))?)
}
