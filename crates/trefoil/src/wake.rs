//! The file that says when a database that is closed must be opened: something of it is due.
//!
//! It is there from before the first commit that makes something due until a database without
//! anything due is closed. While the database is open, and after a crash, it says "at once".

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use trefoil_core::{Error, Result};

use crate::alarm::NEVER;
use crate::home::sync;

const FILE: &str = "due";

/// The file of one database.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    /// `None` in memory.
    directory: Option<PathBuf>,
    is_marked: AtomicBool,
}

impl Wake {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory,
            is_marked: AtomicBool::new(false),
        }
    }

    /// When something is due, as far as the file says.
    pub(crate) fn told(&self) -> u64 {
        self.directory.as_deref().and_then(wakes).unwrap_or(NEVER)
    }

    /// Something will be due at this time: makes sure that the file says so, once.
    pub(crate) fn mark(&self, due: u64) -> Result<()> {
        if due == NEVER || self.is_marked.load(Ordering::Acquire) {
            return Ok(());
        }
        self.write(0)?;
        self.is_marked.store(true, Ordering::Release);
        Ok(())
    }

    /// The database is closed; the next time something is due is this.
    pub(crate) fn close(&self, due: u64) -> Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        if due != NEVER {
            return self.write(due);
        }
        match fs::remove_file(directory.join(FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("removing the file of what is due", &error))
            }
            _ => Ok(()),
        }
    }

    fn write(&self, due: u64) -> Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let path = directory.join(FILE);
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&path)?;
            writeln!(file, "{due}")?;
            file.sync_all()
        };
        write().map_err(|error| Error::io(format!("writing {}", path.display()), &error))?;
        sync(directory)
    }
}

/// When the database in `directory`, which is closed, must be opened; `None` if it need not.
pub(crate) fn wakes(directory: &Path) -> Option<u64> {
    match fs::read_to_string(directory.join(FILE)) {
        // A file that was being written when the process died means "at once".
        Ok(text) => Some(text.trim().parse().unwrap_or(0)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(_) => Some(0),
    }
}
