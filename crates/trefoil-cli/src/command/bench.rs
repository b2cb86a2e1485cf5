//! `trefoil bench`: how fast this machine is.

use trefoil_bench::{engine, http};

const EXAMPLES: &str = "Examples:
  trefoil bench engine --quick
  trefoil bench http --help";

/// Measures the library in this process, or a server from outside.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, clap::Subcommand)]
enum Subject {
    /// Measure the library in this process
    #[command(after_help = "Example:\n  trefoil bench engine --quick --dir /var/tmp")]
    Engine(engine::Arguments),
    /// Measure a server over HTTP
    #[command(after_help = "Example:\n  trefoil bench http --quick")]
    Http(http::Arguments),
}

impl Arguments {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.subject {
            Subject::Engine(arguments) => engine::run(arguments),
            Subject::Http(arguments) => http::run(arguments),
        }
    }
}
