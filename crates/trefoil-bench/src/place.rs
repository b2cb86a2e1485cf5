//! Where a server under measurement keeps its data.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::options::TREFOIL;

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
}

impl Place {
    /// Says to a `trefoil` where its data is; `directory` is new.
    pub(crate) fn put_arguments(&self, command: &mut Command, directory: &Path) {
        let url = match self {
            Self::Directory => {
                command.arg("--data-dir").arg(directory);
                return;
            }
            Self::File => format!("file://{}", directory.join("objects").display()),
            Self::Bucket(bucket) => {
                // Its name is random, so no two servers share what is in the bucket.
                let name = directory.file_name().unwrap_or_default();
                format!("{bucket}/{}", name.display())
            }
        };
        command.arg("--storage").arg(url);
        command.arg("--cache-dir").arg(directory.join("cache"));
    }
}
