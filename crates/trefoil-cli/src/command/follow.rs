//! Events from `/events` until the command is stopped, across lost connections.

use std::time::Duration;

use anyhow::Context as _;

use super::read::print;
use crate::client::{EventRow, HttpClient, QueryPairs, ServerError, SseFrames};
use crate::output::CommandOutput;

const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What is followed, and how far it has come.
pub(super) struct Follower<'a> {
    /// What `/events` is asked for.
    pub(super) parameters: QueryPairs<'a>,
    /// The global position to go on after.
    pub(super) last_seen: Option<u64>,
}

impl Follower<'_> {
    /// Prints events. Returns only with an error: a connection that is lost is taken up again.
    pub(super) fn run(
        mut self,
        client: &HttpClient,
        output: &mut CommandOutput,
    ) -> anyhow::Result<()> {
        output.require_lines()?;
        let mut pause = PAUSE_MIN;
        let mut connected = false;
        loop {
            match self.follow(client, output) {
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

    /// Prints events until the connection ends; tells whether there was one.
    fn follow(&mut self, client: &HttpClient, output: &mut CommandOutput) -> anyhow::Result<bool> {
        let body = client.get("/events", self.parameters, self.last_seen)?;
        let mut seen = false;
        for frame in SseFrames::new(body.into_reader()) {
            let Ok(frame) = frame else { break };
            let row: EventRow =
                serde_json::from_str(&frame.data).context("the server sent no event")?;
            let event = row.into_event();
            let repeated = self
                .last_seen
                .is_some_and(|last| event.global_position <= last);
            if !repeated {
                print(&event, output)?;
                output.flush()?;
            }
            self.last_seen = self.last_seen.max(Some(event.global_position));
            seen = true;
        }
        Ok(seen)
    }
}

/// What another attempt would not change: the server refused, or nobody reads what we print.
fn is_final(error: &anyhow::Error) -> bool {
    let refused = error
        .downcast_ref::<ServerError>()
        .is_some_and(|error| error.status < 500);
    refused || error.is::<std::io::Error>()
}
