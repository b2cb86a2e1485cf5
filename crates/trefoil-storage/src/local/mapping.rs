//! Files as memory: the only unsafe code of the product.

#![allow(unsafe_code)]

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;
use trefoil_core::{Error, Result};

/// A file mapped for reading. It stays readable after the file was closed or removed.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: Mmap,
}

impl Mapping {
    /// Maps all of `file`, which is at `path`.
    pub(crate) fn of(file: &File, path: &Path) -> Result<Self> {
        // SAFETY: a mapping is sound as long as nobody changes or truncates the bytes that are
        // read through it. The directory lock keeps other instances of the program away; our own
        // writer only writes behind the published end of the log, which nobody reads through a
        // mapping, and never truncates; all other files are complete before they are mapped and
        // are replaced by rename or removed, which leaves mapped bytes alone. Recovery, which does
        // overwrite a torn tail, holds no reference into it while it does.
        let map = unsafe { Mmap::map(file) }
            .map_err(|error| Error::io(format!("mapping {}", path.display()), &error))?;
        Ok(Self { map })
    }

    /// Opens and maps the file at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)
            .map_err(|error| Error::io(format!("opening {}", path.display()), &error))?;
        Self::of(&file, path)
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}
