//! Databases on disk: one directory, or all namespaces of a data directory.

use std::path::{Path, PathBuf};

use trefoil::home::LocalHome;

use crate::exit::{self, NotFound};

/// Where to look.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Directory {
    /// A namespace (data/default), or a data directory with all its namespaces
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Directory {
    /// The directory that was given.
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Returns the directories of the namespaces there, by name. A server must not have them open.
    pub(crate) fn databases(&self) -> anyhow::Result<Vec<PathBuf>> {
        let found = LocalHome::find_namespaces(&self.directory)?;
        let shown = self.directory.display();
        found.ok_or_else(|| NotFound(format!("{shown} holds no database")).into())
    }
}

/// Runs `work` on each database. One that fails does not keep the others from their turn.
pub(crate) fn for_each(
    databases: &[PathBuf],
    is_json: bool,
    mut work: impl FnMut(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for database in databases {
        match work(database) {
            Err(error) if error.is::<std::io::Error>() => return Err(error),
            Err(error) => failed.push((database, error)),
            Ok(()) => {}
        }
    }
    // The last one is reported like the error of any command.
    let Some((database, last)) = failed.pop() else {
        return Ok(());
    };
    for (database, error) in failed {
        exit::tell(&error.context(database.display().to_string()), is_json);
    }
    Err(last.context(database.display().to_string()))
}
