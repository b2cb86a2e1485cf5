//! `trefoil ready`: whether a server can do its work. It is for programs that look after others and have no
//! HTTP client, such as the health check of a container.

use anyhow::bail;

use crate::client::Address;
use crate::output::CommandOutput;

const EXAMPLES: &str =
    "The server is asked for /ready, which needs no token. The exit code is 0 if it is ready.

Examples:
  trefoil ready
  trefoil ready --url http://127.0.0.1:8081";

/// Returns at once: 0 if the server is ready, 1 if it is not or cannot be reached.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    address: Address,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        // Nobody is told a token who need not know it.
        let client = self.address.client(Some(""))?;
        if let Some(reason) = client.not_ready()? {
            bail!("the server is not ready: {reason}");
        }
        match output.is_text() {
            true => output.line("ready")?,
            false => output.value(&serde_json::json!({"status": "ready"}))?,
        }
        Ok(())
    }
}
