//! `trefoil redact`: removing what an event says.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::ConnectionArguments;
use crate::input::confirm;
use crate::output::CommandOutput;

const EXAMPLES: &str = "The event stays, without its data and metadata. This cannot be taken back.

Examples:
  trefoil redact 4711 --yes
  trefoil redact 4711 --tags --yes";

/// Removes what an event says, for ever.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The global position of the event
    position: u64,
    /// Remove its tags as well
    #[arg(long)]
    tags: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RedactedEvent {
    global_position: u64,
    redacted: bool,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let question = format!("Remove what the event at position {} says?", self.position);
        confirm(&question, self.yes)?;
        let event = json!({"globalPosition": self.position, "tags": self.tags});
        let redacted: RedactedEvent = client.call(&("event.redact", event))?;
        if !output.is_text() {
            return Ok(output.value(&redacted)?);
        }
        let position = redacted.global_position;
        Ok(output.line(match redacted.redacted {
            true => format!("{position}  redacted"),
            false => format!("{position}  was redacted before"),
        })?)
    }
}
