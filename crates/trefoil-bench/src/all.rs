//! `cargo xtask bench all`: what the page on performance shows of servers, in one run.

use anyhow::Result;
use clap::Args;

use crate::machine::Machine;
use crate::options::Options;
use crate::report::Report;
use crate::{dcb, http, resp};

/// Measures events over gRPC beside UmaDB and Tephra, state over RESP beside Redis and Valkey, and
/// requests over HTTP.
///
/// Prints every table as it is measured, and at the end summaries with a column per system and the
/// targets. Takes about half an hour, with --quick about five minutes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
}

/// Runs the measurement and prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let options = &arguments.options;
    let machine = Machine::this();
    let mut report = Report::new(options.json);
    report.line(&machine.text());
    dcb::measure(options, &dcb::Selection::summary(), &mut report)?;
    resp::measure(options, &resp::Selection::summary(), &mut report)?;
    http::measure(options, &http::Selection::summary(), &mut report)?;
    report.finish(&options.context(&machine))
}
