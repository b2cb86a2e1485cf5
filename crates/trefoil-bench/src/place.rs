//! Where a server under measurement keeps its data.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::options::TREFOIL;

/// Where a server keeps copies of what is in an object storage.
pub(crate) const CACHE: &str = "cache";

/// A kind of storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StorageKind {
    /// A data directory.
    Directory,
    /// SlateDB in a directory.
    File,
    /// SlateDB in a bucket.
    S3,
}

impl StorageKind {
    /// Returns what a server with it is called in tables.
    pub(crate) fn system(self) -> &'static str {
        match self {
            Self::Directory => TREFOIL,
            Self::File => "Trefoil on file:",
            Self::S3 => "Trefoil on s3:",
        }
    }

    /// Returns the place; `bucket` is the URL below which an S3 service has room.
    pub(crate) fn place(self, bucket: Option<&str>) -> Result<Place> {
        Ok(match self {
            Self::Directory => Place::Directory,
            Self::File => Place::File,
            Self::S3 => {
                let bucket = bucket.context("--storages s3 needs --bucket")?;
                Place::Bucket(bucket.trim_end_matches('/').to_owned())
            }
        })
    }
}

/// Where a server keeps its data.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// In its data directory.
    Directory,
    /// In an object storage of files, beside its cache.
    File,
    /// Below a URL like `s3://bucket/prefix`. What is written there stays.
    Bucket(String),
    /// Where another server has its data, by its URL.
    Shared(String),
}

impl Place {
    /// Says to a `trefoil` where its data is; `directory` is new.
    pub(crate) fn put_arguments(&self, command: &mut Command, directory: &Path) {
        match self.url(directory) {
            None => command.arg("--data-dir").arg(directory),
            Some(url) => {
                command.arg("--storage").arg(url);
                command.arg("--cache-dir").arg(directory.join(CACHE))
            }
        };
    }

    /// Returns whether several servers can have their data there.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Bucket(_) | Self::Shared(_))
    }

    /// Returns the URL of the data of a server with this directory.
    pub(crate) fn url(&self, directory: &Path) -> Option<String> {
        match self {
            Self::Directory => None,
            Self::File => Some(format!("file://{}", directory.join("objects").display())),
            Self::Bucket(bucket) => {
                // Its name is random, so no two servers share what is in the bucket.
                let name = directory.file_name().unwrap_or_default();
                Some(format!("{bucket}/{}", name.display()))
            }
            Self::Shared(url) => Some(url.clone()),
        }
    }
}
