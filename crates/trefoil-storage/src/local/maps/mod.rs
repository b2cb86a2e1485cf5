//! The maps of a namespace: those that are written to, and those that were loaded whole.
//!
//! They can always be rebuilt from the log, so nothing here is the truth. Maps that are written to
//! live in one fjall database. A loaded map is an LSM tree of its own: it never changes, and
//! dropping it removes its directory. (Within one fjall database a map that was dropped could take
//! one of the same number that was made after a restart with it.)

mod loaded;
mod tuning;
mod written;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trefoil_core::{Damage, Error, Result};

use crate::contract::check_key;
use crate::{Batch, Fill, Map};

use super::options::LocalOptions;

pub use loaded::LoadedMaps;
use written::WrittenMaps;

/// The longest name of a map, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The maps of a namespace.
#[derive(Debug)]
pub(super) struct Maps {
    written: Arc<WrittenMaps>,
    loaded: LoadedMaps,
}

impl Maps {
    /// The maps in `dir`, which need not exist.
    pub(super) fn open(dir: &Path, options: &LocalOptions) -> Result<Self> {
        let (cache, files) = (&options.cache, options.cached_files_max);
        Ok(Self {
            written: Arc::new(WrittenMaps::open(dir.join("written"), cache)?),
            loaded: LoadedMaps::open(dir.join("loaded"), cache, files)?,
        })
    }

    pub(super) fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        match self.loaded.map(name)? {
            Some(map) => Ok(Some(map)),
            None => self.written.map(name),
        }
    }

    pub(super) fn names(&self) -> Result<Vec<String>> {
        let mut names = self.written.names()?;
        names.extend(self.loaded.names());
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn write(&self, batch: &Batch) -> Result<()> {
        for (name, key, _) in &batch.changes {
            check_name(name)?;
            check_key(key)?;
            if self.loaded.contains(name) {
                return Err(Error::invalid(format!(
                    "map {name} was loaded and never changes"
                )));
            }
        }
        self.written.write(batch)
    }

    pub(super) fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        check_name(name)?;
        if self.written.names()?.iter().any(|other| other == name) {
            return Err(Error::invalid(format!("map {name} exists already")));
        }
        self.loaded.load(name, fill)
    }

    pub(super) fn drop_map(&self, name: &str) -> Result<()> {
        if self.loaded.drop_map(name)? {
            Ok(())
        } else {
            self.written.drop_map(name)
        }
    }

    /// How many bytes of memory they hold outside the cache.
    pub(super) fn held_bytes(&self) -> u64 {
        self.written.held_bytes() + self.loaded.held_bytes()
    }

    /// How many bytes on disk those take that are written to.
    pub(super) fn written_disk_bytes(&self) -> Result<u64> {
        self.written.disk_bytes()
    }

    /// How many bytes on disk the others take.
    pub(super) fn loaded_disk_bytes(&self) -> u64 {
        self.loaded.disk_bytes()
    }
}

/// Says of a name that it cannot be one of a map: it becomes the name of a directory.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::over_limit(
            "length of a map's name",
            name.len(),
            NAME_BYTES_MAX,
        ));
    }
    if !name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        return Err(Error::invalid(format!(
            "{name:?} cannot be the name of a map"
        )));
    }
    Ok(())
}

/// What is the matter with the maps in `dir`: an error of the operating system, or else damage.
fn failed(dir: &Path, what: &str, io: Option<&std::io::Error>, text: &str) -> Error {
    use std::io::ErrorKind::{InvalidData, InvalidInput, NotFound, UnexpectedEof};
    let is_damage = [InvalidData, InvalidInput, NotFound, UnexpectedEof];
    match io {
        Some(error) if !is_damage.contains(&error.kind()) => {
            Error::io(format!("{what} {}", dir.display()), error)
        }
        _ => Error::Damaged(Box::new(Damage {
            file: PathBuf::from(dir),
            offset: 0,
            position: 0,
            what: format!("{what} the maps failed with {text}"),
            help: "run `trefoil repair <dir>`, which rebuilds the maps from the log".to_owned(),
        })),
    }
}
