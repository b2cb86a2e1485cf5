//! The options that all measurements of servers share: what is started, where, and for how long.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::machine::Machine;

/// What is started, where, and how it is measured.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Where to put the data of the servers; directories in it are made and removed.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub(crate) dir: PathBuf,

    /// The program `trefoil` to measure [default: the one beside this program].
    #[arg(long, value_name = "PROGRAM")]
    trefoil: Option<PathBuf>,

    /// Another `trefoil`, to measure it too; it is an error if the first one is slower.
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,

    /// Where the programs of other systems are; those that are not are looked up on the path.
    /// What is in neither place is not measured [default: ../peers/bin beside this program].
    #[arg(long, value_name = "DIRECTORY")]
    peers: Option<PathBuf>,

    /// How long each cell is measured in each round, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    seconds: f64,

    /// How often each cell is measured. The systems take turns; the median counts.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    rounds: u32,

    /// A look instead of a measurement: one round of 1 second.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Prints one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How Trefoil is called in tables.
pub(crate) const TREFOIL: &str = "Trefoil";
/// How the other one of `--against` is called.
pub(crate) const AGAINST: &str = "Trefoil before";
/// The most clients one run may use.
pub(crate) const CLIENTS_MAX: usize = 10_000;
const SECONDS_MAX: f64 = 3600.0;

impl Options {
    /// Returns how long a cell is measured in one round.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 1.0 } else { self.seconds })
    }

    pub(crate) fn rounds(&self) -> u32 {
        if self.quick { 1 } else { self.rounds }
    }

    /// Checks what was given.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.seconds > 0.0 && self.seconds <= SECONDS_MAX,
            "--seconds must be above 0 and at most {SECONDS_MAX}"
        );
        ensure!(self.rounds > 0, "--rounds must be at least 1");
        Ok(())
    }

    /// Returns the programs `trefoil` to measure, with their names.
    pub(crate) fn trefoils(&self) -> Result<Vec<(&'static str, PathBuf)>> {
        let own = match &self.trefoil {
            Some(program) => program.clone(),
            None => beside("trefoil")?,
        };
        let against = self.against.clone().map(|program| (AGAINST, program));
        let programs: Vec<_> = against.into_iter().chain([(TREFOIL, own)]).collect();
        for (_, program) in &programs {
            ensure!(
                program.is_file(),
                "{} is not there: name the program to measure with --trefoil",
                program.display()
            );
        }
        Ok(programs)
    }

    /// Returns the program of another system, if it is installed.
    pub(crate) fn peer(&self, name: &str) -> Result<Option<PathBuf>> {
        let peers = match &self.peers {
            Some(directory) => directory.clone(),
            None => beside("../peers/bin")?,
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories = [peers].into_iter().chain(std::env::split_paths(&path));
        let mut programs = directories.map(|directory| directory.join(name));
        Ok(programs.find(|program| program.is_file()))
    }

    /// The machine and the options that figures depend on, for the report.
    pub(crate) fn context(&self, machine: &Machine) -> Value {
        json!({
            "machine": machine.json(),
            "secondsPerRound": self.time().as_secs_f64(),
            "rounds": self.rounds(),
        })
    }
}

/// Returns what lies beside this program.
pub(crate) fn beside(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let directory = program.parent().map(Path::to_owned);
    Ok(directory.context("this program is nowhere")?.join(name))
}

/// Checks numbers of clients.
pub(crate) fn check_clients(clients: &[usize]) -> Result<()> {
    let is_possible = |count: &usize| (1..=CLIENTS_MAX).contains(count);
    ensure!(
        clients.iter().all(is_possible),
        "--clients must be 1 to {CLIENTS_MAX} each"
    );
    Ok(())
}
