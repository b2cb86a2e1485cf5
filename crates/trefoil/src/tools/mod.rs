//! Looking at a database that is not open, and mending what can be mended.
//!
//! All of these lock the directory, so they refuse one that a server has open.

mod compare;
mod inspect;
mod verify;

use std::path::{Path, PathBuf};

use trefoil_core::{Error, Result, Token};
use trefoil_storage::LocalStorage;

use crate::home::Home;
use crate::index::Manifest;
use crate::{Database, Options, namespaces};

pub use inspect::{Inspection, RunInfo, inspect};
pub use trefoil_storage::Snapshot;
pub use trefoil_storage::local::{Finding, RecordInfo, SegmentInfo, SegmentKind};
pub use verify::{Report, Step, verify};

pub use crate::namespaces::RegistryReport;

/// What repairing a database did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repaired {
    /// How many events were read from the log and indexed again.
    pub events: u64,
}

/// Throws the maps of the database in `directory` away and rebuilds them from the log and the
/// snapshot of the state, and so with sidecars of the log that are damaged. If the process ends
/// midway, the next opening does the rest. A log that lacks what the maps know of is refused.
pub fn repair(directory: impl AsRef<Path>, options: &Options) -> Result<Repaired> {
    let generation = generation_directory(directory.as_ref())?;
    // Without the snapshot the maps are all there is of the state.
    LocalStorage::verify_snapshot(&generation)?;
    LocalStorage::remove_damaged_sidecars(&generation)?;
    LocalStorage::remove_maps(&generation, &Manifest::reach)?;
    let database = Database::open(directory, options)?;
    database.checkpoint()?;
    let events = database.recovery().replayed_events;
    database.close()?;
    Ok(Repaired { events })
}

/// Gives a namespace of the data directory `directory` another token, `token` or a random one, and
/// returns it. From then on the one that it had opens nothing.
pub fn rotate_token(directory: impl AsRef<Path>, id: &str, token: Option<Token>) -> Result<Token> {
    namespaces::rotate_token(directory.as_ref(), id, token)
}

/// Verifies the registry of the data directory `directory`: that its files are what was written, and
/// that each namespace that was made is there. `None` if `directory` has no registry.
pub fn verify_registry(directory: impl AsRef<Path>) -> Result<Option<RegistryReport>> {
    crate::namespaces::verify(directory.as_ref())
}

/// Whether `directory` holds a database.
pub fn is_database(directory: impl AsRef<Path>) -> bool {
    Home::is_home(directory.as_ref())
}

/// The directory of the current generation of the database in `directory`, which must exist.
fn generation_directory(directory: &Path) -> Result<PathBuf> {
    if !is_database(directory) {
        return Err(Error::invalid(format!(
            "{} is not a database",
            directory.display()
        )));
    }
    let generation = Home::Directory(directory.to_owned()).current()?;
    Ok(directory.join(generation.to_string()))
}
