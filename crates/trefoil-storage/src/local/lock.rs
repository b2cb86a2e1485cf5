//! One process at a time has a directory open.

use std::fs::{File, TryLockError};
use std::path::Path;

use trefoil_core::{Error, Result};

use super::private;

/// The name of the lock file in a namespace's directory.
const LOCK_FILE: &str = "LOCK";

/// Holds the lock on a directory until it is dropped. The operating system drops it with the
/// process, however that ends.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
}

impl Drop for DirectoryLock {
    /// Closing the file would not do: a child that this process is just starting has it open too.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl DirectoryLock {
    /// Takes the lock on `dir`, or says that somebody has it.
    pub fn take(dir: &Path) -> Result<Self> {
        let path = dir.join(LOCK_FILE);
        let context = || format!("locking {}", path.display());
        let file = private::file_options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| Error::io(context(), &error))?;
        private::keep_others_from(&file);
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked {
                path: dir.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(Error::io(context(), &error)),
        }
    }
}
