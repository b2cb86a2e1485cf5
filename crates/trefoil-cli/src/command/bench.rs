//! `trefoil bench`: how fast this machine is.

use trefoil_bench::{dcb, engine, http, resp, seats};

const EXAMPLES: &str = "Examples:
  trefoil bench engine --quick
  trefoil bench http --help
  trefoil bench dcb --cells append-64,rare-type";

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
    /// Measure queries and conditional appends over gRPC, beside other stores
    #[command(after_help = "Example:\n  trefoil bench dcb --quick --umadb venv/bin/umadb")]
    Dcb(dcb::Arguments),
    /// Measure state over RESP, beside Redis
    #[command(after_help = "Example:\n  trefoil bench resp --quick --cells set,get")]
    Resp(resp::Arguments),
    /// Measure reservations of seats, beside Redis
    #[command(after_help = "Example:\n  trefoil bench seats --quick --buyers 50")]
    Seats(seats::Arguments),
}

impl Arguments {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.subject {
            Subject::Engine(arguments) => engine::run(arguments),
            Subject::Http(arguments) => http::run(arguments),
            Subject::Dcb(arguments) => dcb::run(arguments),
            Subject::Resp(arguments) => resp::run(&arguments),
            Subject::Seats(arguments) => seats::run(&arguments),
        }
    }
}
