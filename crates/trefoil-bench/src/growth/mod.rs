//! `cargo xtask bench growth`: what operations cost as data outgrows caches and memory.
//!
//! A benchmark that fits into a cache proves little, so each part goes on to where the cache ends:
//! [`keys`] to ten million keys, fields and members, [`log`] to a log that is three times as large as
//! the memory that the server may use.

mod keys;
mod limit;
mod log;
mod scattered;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::machine::Machine;
use crate::options::Options;
use crate::report::Report;

/// Measures what operations cost as data grows beyond caches and memory.
///
/// `keys` fills Trefoil and Redis, if it is there, with up to ten million keys, fields of one hash
/// and members of one sorted set. `log` appends ten million events while the server may use 1 GiB of
/// memory, which needs root and control groups, and reads the 50 events of a tag.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,

    /// Only these parts.
    #[arg(long, value_name = "PARTS", value_enum, value_delimiter = ',')]
    parts: Vec<Part>,

    /// The numbers of keys, fields and members [default: 10000,100000,1000000,10000000].
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    sizes: Vec<u64>,

    /// The number of events in the log, in thousands.
    #[arg(long, value_name = "THOUSANDS", default_value_t = 10_000)]
    events: u64,

    /// The memory that the server with the log may use, in MiB.
    #[arg(long, value_name = "MEBIBYTES", default_value_t = 1024)]
    memory: u64,
}

/// A kind of data that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Keys, fields and members.
    Keys,
    /// Events.
    Log,
}

const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
const QUICK_SIZES: [u64; 2] = [10_000, 100_000];
const QUICK_EVENTS: u64 = 500;
const QUICK_MEMORY: u64 = 128;

impl Arguments {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    fn sizes(&self) -> Vec<u64> {
        match (self.sizes.is_empty(), self.options.quick) {
            (false, _) => self.sizes.clone(),
            (true, true) => QUICK_SIZES.to_vec(),
            (true, false) => SIZES.to_vec(),
        }
    }

    /// Returns the thousands of events, and the MiB of memory.
    fn log(&self) -> (u64, u64) {
        match self.options.quick {
            true => (QUICK_EVENTS, QUICK_MEMORY),
            false => (self.events, self.memory),
        }
    }
}

/// Runs the measurement and prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let options = &arguments.options;
    options.check()?;
    let machine = Machine::this();
    let mut report = Report::new(options.json);
    report.line(&machine.text());
    if arguments.wants(Part::Keys) {
        keys::measure(options, &arguments.sizes(), &mut report)?;
    }
    if arguments.wants(Part::Log) {
        let (events, memory) = arguments.log();
        log::measure(options, events, memory, &mut report)?;
    }
    report.finish(&options.context(&machine))
}
