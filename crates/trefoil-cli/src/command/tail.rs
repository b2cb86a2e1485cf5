//! `trefoil tail`: events as they are written.

use super::follow::Follower;
use super::source::{Source, SourceArguments};
use crate::client::Connection;
use crate::output::Output;

const EXAMPLES: &str = "A lost connection is taken up again where it broke off.

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
    connection: Connection,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut Output) -> anyhow::Result<()> {
        let source = self.source.source()?;
        let from = self.from.to_string();
        let parameters = match self.new {
            // Only a subscription to everything begins at the present, so that it is chosen here.
            true => vec![Source::All.parameter()],
            false => vec![source.parameter(), ("position", from.as_str())],
        };
        let follower = Follower {
            parameters: &parameters,
            is_wanted: &|event| source.contains(&event.stream),
            last_seen: None,
        };
        follower.run(&self.connection.client()?, output)
    }
}
