//! Where a database lives: in memory, or in a directory that holds one generation of its log.
//!
//! `generation` names the current one, `<number>/` holds it. A new generation is built beside the
//! old one and takes over when `generation` is replaced; what no longer counts is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trefoil_core::{Error, Result};
use trefoil_storage::local::disk::RealDisk;
use trefoil_storage::local::{DirectoryLock, files, missing, private};
use trefoil_storage::{LocalOptions, LocalStorage, MemoryStorage, Storage};

use crate::Options;
use crate::index::Manifest;

/// The file that names the current generation.
const CURRENT: &str = "generation";

/// Where the generations of a database are kept.
#[derive(Debug, Clone)]
pub(crate) enum Home {
    Memory,
    Directory(PathBuf),
}

/// An opened generation.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) storage: Arc<dyn Storage>,
    /// Bytes of an unfinished write that were cut from the end of the log.
    pub(crate) cut_bytes: u64,
}

impl Home {
    /// Whether `directory` is the home of a database.
    pub(crate) fn is_home(directory: &Path) -> bool {
        directory.join(CURRENT).is_file()
    }

    /// The directory, if it is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::Directory(directory) => Some(directory),
        }
    }

    /// Keeps other processes, and other handles of this one, from the directory.
    pub(crate) fn lock(&self) -> Result<Option<DirectoryLock>> {
        let Self::Directory(directory) = self else {
            return Ok(None);
        };
        create(directory)?;
        DirectoryLock::take(directory).map(Some)
    }

    /// Checks that a database has been made here. If the registry knows that one was, then an empty
    /// directory is no new database but one that is lost.
    pub(crate) fn require(&self) -> Result<()> {
        let Self::Directory(directory) = self else {
            return Ok(());
        };
        if !directory.is_dir() {
            return Err(missing(
                directory,
                "the directory of the namespace is missing",
            ));
        }
        let current = directory.join(CURRENT);
        match fs::read_to_string(&current) {
            Ok(number) => LocalStorage::require(directory.join(number.trim())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(missing(
                &current,
                "the file that names the current generation is missing",
            )),
            Err(error) => Err(Error::io(format!("reading {}", current.display()), &error)),
        }
    }

    /// The number of the current generation; the first if there is none yet.
    pub(crate) fn current(&self) -> Result<u64> {
        let Self::Directory(directory) = self else {
            return Ok(1);
        };
        create(directory)?;
        // The name may have been replaced just before a crash: what is read must stay.
        files::sync_dir(&RealDisk, directory)?;
        let path = directory.join(CURRENT);
        let damaged = |what: String| {
            Error::Damaged(Box::new(trefoil_core::Damage {
                file: path.clone(),
                offset: 0,
                position: 0,
                what,
                help: "write the number of the newest sub-directory into it".into(),
            }))
        };
        let others = self.generations()?;
        let number = match fs::read_to_string(&path) {
            Ok(text) => text
                .trim()
                .parse()
                .map_err(|_| damaged(format!("{text:?} is not the number of a generation")))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && others.is_empty() => {
                self.prepare_current(1)?;
                self.make_current()?;
                1
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(damaged("the file is missing".into()));
            }
            Err(error) => return Err(Error::io(format!("reading {}", path.display()), &error)),
        };
        // A generation is made before it is named.
        if !others.is_empty() && !others.contains(&number) {
            return Err(damaged(format!("generation {number} is missing")));
        }
        Ok(number)
    }

    /// Whether there is a generation, whichever counts.
    pub(crate) fn has_generations(&self) -> bool {
        self.generations().is_ok_and(|found| !found.is_empty())
    }

    /// The numbers of all generations there are.
    fn generations(&self) -> Result<Vec<u64>> {
        let Self::Directory(directory) = self else {
            return Ok(Vec::new());
        };
        let failed =
            |error: std::io::Error| Error::io(format!("listing {}", directory.display()), &error);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        Ok(numbers)
    }

    /// Writes down which generation is to become the current one.
    pub(crate) fn prepare_current(&self, generation: u64) -> Result<()> {
        let Self::Directory(directory) = self else {
            return Ok(());
        };
        let text = format!("{generation}\n");
        let unfinished = files::unfinished(&directory.join(CURRENT));
        files::write_unfinished(&RealDisk, &unfinished, text.as_bytes())
    }

    /// Makes the prepared generation the current one, atomically and durably.
    pub(crate) fn make_current(&self) -> Result<()> {
        let Self::Directory(directory) = self else {
            return Ok(());
        };
        let path = directory.join(CURRENT);
        files::finish(&RealDisk, &files::unfinished(&path), &path)
    }

    /// Opens or creates a generation.
    pub(crate) fn open(&self, generation: u64, options: &Options) -> Result<Opened> {
        let Self::Directory(directory) = self else {
            return Ok(Opened {
                storage: Arc::new(MemoryStorage::new()),
                cut_bytes: 0,
            });
        };
        let options = LocalOptions {
            segment_bytes_max: options.segment_bytes_max,
            plain_segments: options.plain_segments,
            cache_bytes: options.cache_bytes,
            disk: Arc::clone(&options.disk),
            ..LocalOptions::default()
        };
        let directory = directory.join(generation.to_string());
        let storage = LocalStorage::open_reaching(directory, options, &Manifest::reach)?;
        let cut_bytes = storage.recovery().cut.as_ref().map_or(0, |cut| cut.bytes);
        Ok(Opened {
            storage: Arc::new(storage),
            cut_bytes,
        })
    }

    /// Removes every generation but the current one: they were replaced, or never became current.
    pub(crate) fn remove_others(&self, current: u64) -> Result<()> {
        let Self::Directory(directory) = self else {
            return Ok(());
        };
        for number in self
            .generations()?
            .into_iter()
            .filter(|number| *number != current)
        {
            let path = directory.join(number.to_string());
            fs::remove_dir_all(&path)
                .map_err(|error| Error::io(format!("removing {}", path.display()), &error))?;
        }
        Ok(())
    }
}

fn create(directory: &Path) -> Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    private::create_dir(directory)
        .map_err(|error| Error::io(format!("creating {}", directory.display()), &error))
}
