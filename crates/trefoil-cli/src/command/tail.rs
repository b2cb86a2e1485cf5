//! `trefoil tail`: events as they are written.

use std::time::Duration;

use anyhow::Context as _;

use super::read::print;
use super::source::{Source, SourceArguments};
use crate::client::{CategoryRow, Client, Connection, Frames, ServerError};
use crate::output::Output;

const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(10);

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
        let client = self.connection.client()?;
        let mut follower = Follower {
            source: self.source.source()?,
            from: (!self.new).then(|| self.from.to_string()),
            last_seen: None,
        };
        let mut pause = PAUSE_MIN;
        let mut connected = false;
        loop {
            match follower.follow(&client, output) {
                Ok(seen) => {
                    connected = true;
                    pause = if seen { PAUSE_MIN } else { pause };
                }
                Err(error) if !connected || is_final(&error) => return Err(error),
                Err(_) => {}
            }
            eprintln!("connection lost, trying again in {pause:?}");
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// What another attempt would not change: the server refused, or nobody reads what we print.
fn is_final(error: &anyhow::Error) -> bool {
    let refused = error
        .downcast_ref::<ServerError>()
        .is_some_and(|error| error.status < 500);
    refused || error.is::<std::io::Error>()
}

struct Follower {
    source: Source,
    /// `None` for what comes from now on.
    from: Option<String>,
    last_seen: Option<u64>,
}

impl Follower {
    /// Prints events until the connection ends; tells whether there was one.
    fn follow(&mut self, client: &Client, output: &mut Output) -> anyhow::Result<bool> {
        let query = match &self.from {
            // Only a subscription to everything begins at the present, so that it is chosen here.
            None => vec![Source::All.parameter()],
            Some(from) => vec![self.source.parameter(), ("position", from.as_str())],
        };
        let body = client.get("/events", &query, self.last_seen)?;
        let mut seen = false;
        for frame in Frames::new(body.into_reader()) {
            let Ok(frame) = frame else { break };
            let row: CategoryRow =
                serde_json::from_str(&frame.data).context("the server sent no event")?;
            let event = row.into_event();
            let repeated = self
                .last_seen
                .is_some_and(|last| event.global_position <= last);
            if !repeated && self.source.contains(&event.stream) {
                print(&event, output)?;
                output.flush()?;
            }
            self.last_seen = self.last_seen.max(Some(event.global_position));
            seen = true;
        }
        Ok(seen)
    }
}
