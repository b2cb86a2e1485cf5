//! The `trefoil` command: server, client and tools in one binary.
//!
//! Data goes to standard output, everything else to standard error. Exit codes are in `exit`.

mod archive;
mod arguments;
mod backups;
mod client;
mod command;
mod contexts;
mod eventodb;
mod exit;
mod input;
mod logging;
mod output;
mod places;
mod settings;
mod supervisor;

use std::process::ExitCode;

use clap::Parser as _;

/// The server allocates and frees small pieces on many threads all the time, where the system's
/// allocator on Linux holds on to far more memory than is in use.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // What is stored, by whatever library, is its owner's alone.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let arguments = arguments::normalise(std::env::args_os());
    let is_json = output::OutputFormat::is_json_wanted(&arguments);
    match command::Cli::try_parse_from(arguments) {
        Ok(cli) => cli.run(),
        Err(error) => exit::report_usage(&error, is_json),
    }
}
