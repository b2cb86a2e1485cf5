//! The commands, one per file: its arguments, its examples, and what it does.

mod append;
mod audit;
mod backup;
mod categories;
mod commit;
mod completions;
mod configured;
mod context;
mod databases;
mod dev;
mod doctor;
mod export;
mod follow;
mod import;
mod info;
mod inspect;
mod man;
mod migrate;
mod moving;
mod nodes;
mod ns;
mod plan;
mod query;
mod read;
mod ready;
mod redact;
mod repair;
mod report;
mod retention;
mod seats;
mod serve;
mod source;
mod state;
mod stream;
mod streams;
mod tail;
mod terms;
mod token;
mod top;
mod verify;
mod version;
mod write;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::{self, CODES};
use crate::output::{CommandOutput, OutputFlag};

/// An event database: one durable log per namespace, seen as streams, categories and tags.
#[derive(Debug, Parser)]
#[command(name = "trefoil", disable_version_flag = true, max_term_width = 100)]
// As in Go's `flag` package, the last of several equal flags counts.
#[command(args_override_self = true)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES}"))]
pub(crate) struct Cli {
    /// Print data in this form; the default is for people
    #[arg(long, global = true, value_name = "FORMAT", value_parser = OutputFlag::format_parser())]
    output: Option<OutputFlag>,

    /// Short for --output ndjson: one JSON object per line
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: TrefoilCommand,
}

const EXAMPLES: &str = "Examples:
  trefoil dev                                    Try it: a server on this machine
  trefoil write account-1 Opened '{\"owner\":\"Ada\"}'
  trefoil read account-1
  trefoil append Enrolled --tag course:c1 --tag student:s1 --if-none type=Closed,tag=course:c1
  trefoil query --tag course:c1 --follow
  trefoil tail account --json | jq .data";

#[derive(Debug, Subcommand)]
enum TrefoilCommand {
    /// Start a server for development: known token, this machine only
    Dev(dev::Arguments),
    /// Start the server
    Serve(serve::Arguments),
    /// Create, list, inspect and delete namespaces
    Ns(ns::Arguments),
    /// Make, list, replace and revoke the tokens of a namespace
    Token(token::Arguments),
    /// Show who did what to namespaces and tokens
    Audit(audit::Arguments),
    /// Write one event
    Write(write::Arguments),
    /// Append one event with tags, under conditions
    Append(append::Arguments),
    /// Commit events and changes of the state under conditions, all or nothing
    Commit(commit::Arguments),
    /// Run a command on the state, as redis-cli does
    State(state::Arguments),
    /// Read the events of a stream, of a category, or all
    Read(read::Arguments),
    /// Find events by type and tags
    Query(query::Arguments),
    /// Follow events as they are written
    Tail(tail::Arguments),
    /// Reserve, sell and show the seats of an event
    Seats(seats::Arguments),
    /// Add, select and list servers that have a name
    Context(context::Arguments),
    /// Show what a server says about itself
    Info(info::Arguments),
    /// Show live what a server does
    Top(top::Arguments),
    /// Check a server and this machine, and say what to do
    Doctor(doctor::Arguments),
    /// Ask whether a server is ready; the exit code says it
    Ready(ready::Arguments),
    /// List the nodes of a cluster
    Nodes(nodes::Arguments),
    /// Report streams, types, categories and growth
    Report(report::Arguments),
    /// Truncate and delete streams
    Stream(stream::Arguments),
    /// Set, list and remove policies of how long events are kept
    Retention(retention::Arguments),
    /// Remove what an event says, for ever
    Redact(redact::Arguments),
    /// List streams
    Streams(streams::Arguments),
    /// List categories
    Categories(categories::Arguments),
    /// Write events as NDJSON to a file or to standard output
    Export(export::Arguments),
    /// Load events from NDJSON and keep their positions and times
    Import(import::Arguments),
    /// Load all events of a running EventoDB or UmaDB
    Migrate(migrate::Arguments),
    /// Make, list, check, restore and remove backups
    Backup(backup::Arguments),
    /// Check that everything on disk is what was written
    Verify(verify::Arguments),
    /// Rebuild the index from the log
    Repair(repair::Arguments),
    /// Copy namespaces between data directories and object storages
    Move(moving::Arguments),
    /// Show what the files of a database hold
    Inspect(inspect::Arguments),
    /// Show the version
    Version(version::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Print a man page, or write all of them
    Man(man::Arguments),
}

impl Cli {
    pub(crate) fn run(self) -> ExitCode {
        let format = match OutputFlag::format(self.output.as_ref(), self.json) {
            Ok(format) => format,
            Err(error) => return exit::report(&error, self.json),
        };
        let mut output = CommandOutput::new(format);
        let done = self.command.run(&mut output);
        let finished = output.finish(done.is_err());
        match done.and_then(|()| Ok(finished?)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => exit::report(&error, output.format.is_json()),
        }
    }
}

impl TrefoilCommand {
    fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self {
            Self::Dev(arguments) => arguments.run(output),
            Self::Serve(arguments) => arguments.run(output),
            Self::Ns(arguments) => arguments.run(output),
            Self::Token(arguments) => arguments.run(output),
            Self::Audit(arguments) => arguments.run(output),
            Self::Write(arguments) => arguments.run(output),
            Self::Append(arguments) => arguments.run(output),
            Self::Commit(arguments) => arguments.run(output),
            Self::State(arguments) => arguments.run(output),
            Self::Read(arguments) => arguments.run(output),
            Self::Query(arguments) => arguments.run(output),
            Self::Tail(arguments) => arguments.run(output),
            Self::Seats(arguments) => arguments.run(output),
            Self::Context(arguments) => arguments.run(output),
            Self::Info(arguments) => arguments.run(output),
            Self::Top(arguments) => arguments.run(output),
            Self::Doctor(arguments) => arguments.run(output),
            Self::Ready(arguments) => arguments.run(output),
            Self::Nodes(arguments) => arguments.run(output),
            Self::Report(arguments) => arguments.run(output),
            Self::Stream(arguments) => arguments.run(output),
            Self::Retention(arguments) => arguments.run(output),
            Self::Redact(arguments) => arguments.run(output),
            Self::Streams(arguments) => arguments.run(output),
            Self::Categories(arguments) => arguments.run(output),
            Self::Export(arguments) => arguments.run(output.format.is_json()),
            Self::Import(arguments) => arguments.run(output),
            Self::Migrate(arguments) => arguments.run(output),
            Self::Backup(arguments) => arguments.run(output),
            Self::Verify(arguments) => arguments.run(output),
            Self::Repair(arguments) => arguments.run(output),
            Self::Move(arguments) => arguments.run(output),
            Self::Inspect(arguments) => arguments.run(output),
            Self::Version(arguments) => arguments.run(output),
            Self::Completions(arguments) => arguments.run(output),
            Self::Man(arguments) => arguments.run(output),
        }
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
