//! Where the pieces of a repository are: named, whole, and never changed.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::exit::NotFound;

/// What a repository is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// To look at what is there.
    Read,
    /// To add a backup.
    Add,
    /// To remove backups.
    Remove,
    /// To add to the archive, for as long as a server runs. Others may use the repository meanwhile.
    Archive,
}

impl Use {
    /// Returns whether the repository is made if it is not there.
    pub(super) fn adds(self) -> bool {
        matches!(self, Self::Add | Self::Archive)
    }
}

/// Pieces under names.
pub(crate) trait BackupStore: Send + Sync {
    /// Returns a piece; `None` if it does not exist.
    fn get(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>>;

    /// Creates a piece, which is durable and whole from then on. One that is there stays what it is.
    fn create(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()>;

    /// Removes a piece. One that does not exist is removed, too.
    fn delete(&self, name: &str) -> anyhow::Result<()>;

    /// Removes what was not created to its end, of the pieces that begin with `prefix`, which ends with a
    /// `/`.
    fn remove_partial(&self, prefix: &str) -> anyhow::Result<()>;

    /// Returns the names that begin with `prefix`, which ends with a `/` or is empty.
    fn list(&self, prefix: &str) -> anyhow::Result<Vec<String>>;
}

/// What is wrong with a place that has other things in it.
pub(super) const NOT_ITS_OWN: &str =
    "has other things in it: a repository of backups needs a place of its own";

/// The file that is locked while the repository is used.
const LOCK: &str = "lock";
/// What the names of pieces end with that are not whole.
const PARTIAL: &str = ".partial";

/// Pieces that are files of a directory.
#[derive(Debug)]
pub(crate) struct DirectoryStore {
    directory: PathBuf,
    /// Held until this is dropped: who removes backups is alone, and so is who adds one.
    _lock: File,
}

impl DirectoryStore {
    pub(crate) fn open(directory: &Path, usage: Use) -> anyhow::Result<Self> {
        let shown = directory.display();
        if usage.adds() {
            std::fs::create_dir_all(directory).with_context(|| format!("cannot create {shown}"))?;
        }
        let path = directory.join(LOCK);
        if usage.adds() && !path.exists() && std::fs::read_dir(directory)?.next().is_some() {
            bail!("{shown} {NOT_ITS_OWN}");
        }
        let opened = match usage {
            Use::Add | Use::Archive => File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path),
            Use::Read | Use::Remove => File::open(&path),
        };
        let lock = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(NotFound(format!("{shown} is no repository of backups")).into());
            }
            opened => opened.with_context(|| format!("cannot open {}", path.display()))?,
        };
        let locked = match usage {
            Use::Read => lock.try_lock_shared(),
            Use::Add | Use::Remove => lock.try_lock(),
            // Nobody else touches what it adds.
            Use::Archive => Ok(()),
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("{shown} is in use by another `trefoil backup`")
            }
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock"),
        }
        Ok(Self {
            directory: directory.to_owned(),
            _lock: lock,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Adds the names of all files below a folder, which ends with a `/` or is empty.
    fn add_names(&self, folder: &str, names: &mut Vec<String>) -> anyhow::Result<()> {
        let entries = match std::fs::read_dir(self.path(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.with_context(|| self.told("read", folder))?,
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if folder.is_empty() && name == LOCK {
                continue;
            }
            let full = format!("{folder}{name}");
            if entry.file_type()?.is_dir() {
                self.add_names(&format!("{full}/"), names)?;
            } else {
                names.push(full);
            }
        }
        Ok(())
    }

    fn told(&self, what: &str, name: &str) -> String {
        format!("cannot {what} {}", self.path(name).display())
    }
}

impl BackupStore for DirectoryStore {
    fn get(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        match std::fs::read(self.path(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => Ok(Some(read.with_context(|| self.told("read", name))?)),
        }
    }

    fn create(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.path(name);
        if path.exists() {
            return Ok(());
        }
        let write = || -> std::io::Result<()> {
            let parent = path.parent().unwrap_or(&self.directory);
            std::fs::create_dir_all(parent)?;
            let partial = self.path(&format!("{name}{PARTIAL}"));
            let mut file = File::create(&partial)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&partial, &path)?;
            File::open(parent)?.sync_all()
        };
        write().with_context(|| self.told("write", name))
    }

    fn delete(&self, name: &str) -> anyhow::Result<()> {
        match std::fs::remove_file(self.path(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.with_context(|| self.told("remove", name)),
        }
    }

    fn remove_partial(&self, prefix: &str) -> anyhow::Result<()> {
        let mut names = Vec::new();
        self.add_names(prefix, &mut names)?;
        names.retain(|name| name.ends_with(PARTIAL));
        names.iter().try_for_each(|name| self.delete(name))
    }

    fn list(&self, prefix: &str) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        self.add_names(prefix, &mut names)?;
        names.retain(|name| !name.ends_with(PARTIAL));
        Ok(names)
    }
}
