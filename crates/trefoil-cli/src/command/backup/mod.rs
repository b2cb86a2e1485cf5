//! `trefoil backup`: backups of namespaces in a directory or an object storage.

mod create;
mod list;
mod point;
mod prune;
mod restore;
mod source;
mod verify;
mod writer;

use std::path::PathBuf;

use super::databases::CacheArgument;
use crate::backups::{Repository, Use};
use crate::output::CommandOutput;
use crate::places::HomePlace;

const EXAMPLES: &str = "A backup has all of a namespace as of one commit: events, state, tracked \
positions, settings, and the hash of its token. The next one adds only what is new.

Examples:
  trefoil backup create /mnt/backups
  trefoil backup list /mnt/backups
  trefoil backup verify /mnt/backups
  trefoil backup restore /mnt/backups --data-dir data
  trefoil backup restore /mnt/backups --data-dir data --to-time 2026-11-16T14:00:00Z
  trefoil backup prune /mnt/backups --keep 7";

/// Makes, lists, checks, restores and removes backups.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: BackupAction,
}

#[derive(Debug, clap::Subcommand)]
enum BackupAction {
    /// Make a backup, of a running server or of a stopped one's data
    #[command(after_help = create::EXAMPLES)]
    Create(create::Arguments),
    /// List the backups, oldest first
    #[command(after_help = list::EXAMPLES)]
    List(list::Arguments),
    /// Check a backup: restore it into nothing
    #[command(after_help = verify::EXAMPLES)]
    Verify(verify::Arguments),
    /// Make namespaces of a backup
    #[command(after_help = restore::EXAMPLES)]
    Restore(restore::Arguments),
    /// Remove old backups, and what no other one needs
    #[command(after_help = prune::EXAMPLES)]
    Prune(prune::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.action {
            BackupAction::Create(arguments) => arguments.run(output),
            BackupAction::List(arguments) => arguments.run(output),
            BackupAction::Verify(arguments) => arguments.run(output),
            BackupAction::Restore(arguments) => arguments.run(output),
            BackupAction::Prune(arguments) => arguments.run(output),
        }
    }
}

/// Where the backups are.
#[derive(Debug, clap::Args)]
struct RepositoryArguments {
    /// A directory, or the URL of an object storage, with nothing else in it
    #[arg(value_name = "REPOSITORY")]
    repository: String,
    /// File with the key that the repository is encrypted with: 64 hexadecimal digits
    #[arg(long, value_name = "FILE", env = "TREFOIL_BACKUP_KEY_FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArgument,
}

impl RepositoryArguments {
    fn open(&self, usage: Use) -> anyhow::Result<Repository> {
        let place = self.place(&self.repository)?;
        Repository::open(&place, usage, self.key_file.as_deref())
    }

    fn place(&self, text: &str) -> anyhow::Result<HomePlace> {
        HomePlace::parse(text, &self.cache.cache_dir)
    }
}
