//! Places where namespaces, or backups of them, are: a directory, or an object storage.

#[cfg(feature = "object-storage")]
mod store;
#[cfg(not(feature = "object-storage"))]
#[path = "no_store.rs"]
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trefoil::home::{Home, LocalHome};
use trefoil::{Clock, NamespacesOptions};

pub(crate) use store::{StorageUrl, parse_url};

use crate::backups::BackupStore;
use crate::exit::NotFound;

/// An object storage, and what this machine has to do with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoragePlace {
    pub(crate) url: StorageUrl,
    /// Where this machine keeps what it fetched.
    pub(crate) cache: PathBuf,
    /// How long after a write the next one may begin.
    pub(crate) spacing: Duration,
    /// How much memory keeps what was fetched.
    pub(crate) cache_bytes: u64,
}

impl StoragePlace {
    /// Returns whether several machines may use it at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        self.url.to_string().starts_with("s3:")
    }

    /// Connects to the storage.
    pub(crate) fn open(&self, clock: &Clock) -> anyhow::Result<Arc<dyn Home>> {
        store::open(self, clock)
    }

    /// Connects to a storage that has backups.
    pub(crate) fn objects(&self) -> anyhow::Result<Box<dyn BackupStore>> {
        store::objects(self)
    }
}

/// Where namespaces are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HomePlace {
    Directory(PathBuf),
    Storage(StoragePlace),
}

impl HomePlace {
    /// Reads a place as it is given to a command: a URL, or a directory.
    pub(crate) fn parse(text: &str, cache: &Path) -> anyhow::Result<Self> {
        if !is_url(text) {
            return Ok(Self::Directory(PathBuf::from(text)));
        }
        Ok(Self::Storage(StoragePlace {
            url: parse_url(text).map_err(crate::exit::UsageError)?,
            cache: cache.to_owned(),
            spacing: Duration::ZERO,
            cache_bytes: NamespacesOptions::default().cache_bytes,
        }))
    }

    /// Opens what must be there.
    pub(crate) fn open_existing(&self) -> anyhow::Result<Arc<dyn Home>> {
        match self {
            Self::Storage(place) => place.open(&Clock::default()),
            Self::Directory(directory) => match LocalHome::open_existing(directory)? {
                Some(home) => Ok(Arc::new(home)),
                None => Err(NotFound(format!("{self} is not a data directory")).into()),
            },
        }
    }

    /// Opens what is made if it is not there.
    pub(crate) fn open(&self) -> anyhow::Result<Arc<dyn Home>> {
        match self {
            Self::Storage(place) => place.open(&Clock::default()),
            Self::Directory(directory) => {
                let home = LocalHome::open(directory, Default::default())?;
                Ok(Arc::new(home))
            }
        }
    }
}

impl std::fmt::Display for HomePlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(directory) => directory.display().fmt(formatter),
            Self::Storage(place) => place.url.fmt(formatter),
        }
    }
}

/// Whether a text is meant as a URL: no directory is called like that.
fn is_url(text: &str) -> bool {
    text.contains("://") || text == "memory:"
}
