//! `trefoil import`: NDJSON, or the events of another database, into this one.

mod file;
mod request;
mod umadb;

use crate::output::CommandOutput;

const EXAMPLES: &str = "Examples:
  trefoil import --input backup.ndjson.gz --gzip
  trefoil export --url http://old:8080 --token $OLD | trefoil import
  trefoil import --input all.ndjson --force --yes
  trefoil import umadb http://127.0.0.1:50051";

/// Loads events, with the positions they had: from NDJSON, or from another database.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    database: Option<ImportedDatabase>,
    #[command(flatten)]
    file: file::FileArguments,
}

#[derive(Debug, clap::Subcommand)]
enum ImportedDatabase {
    /// Load the events of a running UmaDB
    Umadb(umadb::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.database {
            None => self.file.run(output),
            Some(ImportedDatabase::Umadb(arguments)) => arguments.run(output),
        }
    }
}
