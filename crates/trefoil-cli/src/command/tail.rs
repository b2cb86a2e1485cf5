//! `trefoil tail`: events as they are written.

use super::follow::Follower;
use super::source::SourceArguments;
use crate::client::ConnectionArguments;
use crate::output::CommandOutput;

const EXAMPLES: &str =
    "If the connection breaks, it connects again and continues after the last event.

Examples:
  trefoil tail account --new
  trefoil tail account-1 --from 5
  trefoil tail --all --json | jq -c .data";

/// Follows events, from the first one on, until it is stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// Begin here: a position in the stream, else a global position
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    from: u64,
    /// Only events that are written from now on
    #[arg(long, conflicts_with = "from")]
    new: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let source = self.source.source()?;
        let client = self.connection.client()?;
        let from = self.from.to_string();
        // The present is asked for once: a connection that is lost before the first event came
        // goes on from there too.
        let head: Option<u64> = match self.new {
            true => Some(client.call(&("events.head",))?),
            false => None,
        };
        let follower = Follower {
            parameters: &[source.parameter(), ("position", &from)],
            last_seen: head,
        };
        follower.run(&client, output)
    }
}
