//! `trefoil migrate`: all events of another database that runs, into a namespace of this one.
//!
//! They keep their positions, so that a consumer that has stored one continues here. A migration that was
//! interrupted, or whose source has new events, goes on after the last event of the namespace. At its end
//! all of it is read again on both sides, and compared.

mod comparison;
mod eventodb;
mod transfer;
mod umadb;

use crate::output::CommandOutput;

const EXAMPLES: &str = "Run it again to go on after the last event that is here. When all is here, it is read again on \
both sides and compared.

Examples:
  trefoil migrate eventodb http://old:8080 --from-token $OLD
  trefoil migrate umadb http://127.0.0.1:50051";

/// Loads all events of another database that runs, with the positions that they have there.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    database: MigratedDatabase,
}

#[derive(Debug, clap::Subcommand)]
enum MigratedDatabase {
    /// Load the events of a namespace of a running EventoDB
    Eventodb(eventodb::Arguments),
    /// Load the events of a running UmaDB
    Umadb(umadb::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.database {
            MigratedDatabase::Eventodb(arguments) => arguments.run(output),
            MigratedDatabase::Umadb(arguments) => arguments.run(output),
        }
    }
}
