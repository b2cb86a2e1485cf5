//! `trefoil import`: NDJSON into the database.

mod file;
mod request;

pub(super) use request::{ImportFailure, ImportRequests, REQUEST_BYTES};

use crate::output::CommandOutput;

const EXAMPLES: &str = "Another database that runs is loaded by `trefoil migrate`.

Examples:
  trefoil import --input backup.ndjson.gz --gzip
  trefoil export --url http://old:8080 --token $OLD | trefoil import
  trefoil import --input all.ndjson --force --yes";

/// Loads events from NDJSON, with the positions they had.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: file::FileArguments,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        self.file.run(output)
    }
}
