//! Benchmarks of Trefoil beside the raw limits of the disk and beside other stores, in one run.
//!
//! [`engine`] measures the library in this process; [`http`], [`dcb`], [`resp`] and [`seats`]
//! measure the server from outside, [`cluster`] several of them, [`all`] the first three of them in one run.
//! [`size`] measures what it needs, [`growth`] what operations cost as data outgrows memory, [`subscribers`] what
//! those cost who follow events.
//! Figures are comparable within one run on one machine, not across machines: every table therefore
//! carries its own raw limit and its own baselines.

#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures by the real clock"
)]

mod all;
mod body;
mod closed_loop;
mod cluster;
mod dcb;
mod engine;
mod fjall_baseline;
mod growth;
mod http;
mod latency;
mod machine;
mod options;
mod outcome;
mod place;
mod raw;
mod report;
mod resp;
mod running;
mod seats;
mod size;
#[cfg(feature = "baselines")]
mod sqlite_baseline;
mod subscribers;
mod system;
mod trefoil_engine;
mod usage;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The library is measured with the allocator that the server has.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Measures the library in this process, or a server from outside.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Measure the library in this process
    #[command(after_help = "Example:\n  cargo xtask bench engine --quick --dir /var/tmp")]
    Engine(engine::Arguments),
    /// Measure what the page on performance shows of servers: all protocols, beside their peers
    #[command(after_help = "Example:\n  cargo xtask bench all --quick --dir /var/tmp")]
    All(all::Arguments),
    /// Measure a server over HTTP
    #[command(after_help = "Example:\n  cargo xtask bench http --quick")]
    Http(http::Arguments),
    /// Measure queries and conditional appends over gRPC, beside other stores
    #[command(after_help = "Example:\n  cargo xtask bench dcb --quick --cells append --clients 64")]
    Dcb(dcb::Arguments),
    /// Measure several nodes on one bucket, of which one is killed or stopped
    #[command(after_help = "Example:\n  cargo xtask bench cluster --bucket s3://bucket/bench")]
    Cluster(cluster::Arguments),
    /// Measure state over RESP, beside Redis and Valkey
    #[command(after_help = "Example:\n  cargo xtask bench resp --quick --cells set,get")]
    Resp(resp::Arguments),
    /// Measure reservations of seats, beside Redis
    #[command(after_help = "Example:\n  cargo xtask bench seats --quick --buyers 50")]
    Seats(seats::Arguments),
    /// Measure what namespaces, connections, events and keys need
    #[command(after_help = "Example:\n  cargo xtask bench size --dir /var/tmp")]
    Size(size::Arguments),
    /// Measure appends while many follow events
    #[command(after_help = "Example:\n  cargo xtask bench subscribers --dir /var/tmp")]
    Subscribers(subscribers::Arguments),
    /// Measure what operations cost as data outgrows caches and memory
    #[command(after_help = "Example:\n  cargo xtask bench growth --quick --parts keys")]
    Growth(growth::Arguments),
}

fn main() -> ExitCode {
    match run(Cli::parse().subject) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(subject: Subject) -> anyhow::Result<()> {
    match subject {
        Subject::Engine(arguments) => engine::run(arguments),
        Subject::All(arguments) => all::run(&arguments),
        Subject::Http(arguments) => http::run(&arguments),
        Subject::Dcb(arguments) => dcb::run(&arguments),
        Subject::Cluster(arguments) => cluster::run(&arguments),
        Subject::Resp(arguments) => resp::run(&arguments),
        Subject::Seats(arguments) => seats::run(&arguments),
        Subject::Size(arguments) => size::run(&arguments),
        Subject::Subscribers(arguments) => subscribers::run(&arguments),
        Subject::Growth(arguments) => growth::run(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
