//! The file that says when a database that is closed must be opened: something of it is due.
//!
//! It is there from before the first commit that makes something due until a database without
//! anything due is closed. While the database is open, and after a crash, it says "at once". So does
//! a file that is damaged: nothing is missed, and closing the database writes it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use trefoil_core::{Error, Result};
use trefoil_storage::local::disk::RealDisk;
use trefoil_storage::local::files;
use xxhash_rust::xxh3::xxh3_64;

use crate::time::NEVER;

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
        let text = format!("{due} {}\n", check_of(due));
        files::replace(&RealDisk, &directory.join(FILE), text.as_bytes())
    }
}

/// When the database in `directory`, which is closed, must be opened; `None` if it need not.
pub(crate) fn wakes(directory: &Path) -> Option<u64> {
    match fs::read(directory.join(FILE)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        // One without a check, which older versions wrote, may be damaged too.
        found => Some(found.ok().and_then(|text| checked(&text)).unwrap_or(0)),
    }
}

/// Whether the file of what is due, if there is one, is what was written.
pub(crate) fn is_sound(directory: &Path) -> bool {
    let from_before = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok();
        text.is_some_and(|text| text.trim().parse::<u64>().is_ok())
    };
    match fs::read(path_of(directory)) {
        Ok(text) => checked(&text).is_some() || from_before(&text),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Where the file of what is due is.
pub(crate) fn path_of(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// The time that the file's text says, if its check is right.
fn checked(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let (due, check) = text.split_once(' ')?;
    let due = due.parse().ok()?;
    (check == check_of(due)).then_some(due)
}

fn check_of(due: u64) -> String {
    format!("{:016x}", xxh3_64(&due.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_damaged_says_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_of(directory.path());
        assert_eq!(wakes(directory.path()), None);
        assert!(is_sound(directory.path()));
        let wake = Wake::new(Some(directory.path().to_owned()));
        wake.close(1_763_000_000_123).unwrap();
        assert_eq!(wakes(directory.path()), Some(1_763_000_000_123));
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            for bit in 0..8 {
                let mut damaged = sound.clone();
                damaged[at] ^= 1 << bit;
                fs::write(&path, damaged).unwrap();
                assert_eq!(wakes(directory.path()), Some(0), "bit {bit} of byte {at}");
                assert!(!is_sound(directory.path()), "bit {bit} of byte {at}");
            }
        }
        fs::write(&path, "1763000000123\n").unwrap();
        assert_eq!(wakes(directory.path()), Some(0));
        assert!(is_sound(directory.path()), "as older versions wrote it");
        wake.close(NEVER).unwrap();
        assert_eq!(wakes(directory.path()), None);
    }
}
