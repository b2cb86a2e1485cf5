//! `trefoil version`.

use serde_json::json;

use crate::output::CommandOutput;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The release of EventoDB whose API and flags are spoken.
const EVENTODB: &str = "0.7";

const EXAMPLES: &str = "Examples:
  trefoil version
  trefoil version --full";

/// Shows the version.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Also what it is compatible with and built for
    #[arg(long, short)]
    full: bool,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
        if !output.is_text() {
            let version = json!({"version": VERSION, "eventodb": EVENTODB, "platform": platform});
            return Ok(output.value(&version)?);
        }
        output.line(format_args!("trefoil {VERSION}"))?;
        if self.full {
            output.line(format_args!("EventoDB API {EVENTODB}"))?;
            output.line(format_args!("platform {platform}"))?;
        }
        Ok(())
    }
}
