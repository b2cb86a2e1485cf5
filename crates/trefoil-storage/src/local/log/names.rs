//! The names of the log's files, and which there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use trefoil_core::{Error, Result};

use crate::local::files::{UNFINISHED, unfinished};

/// What a file in the log's directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A plain segment.
    Plain,
    /// The offsets of a plain segment's items.
    Offsets,
    /// A compressed segment.
    Compressed,
    /// The snapshot of the state as of the commit that is its number.
    Snapshot,
    /// A file that was being written.
    Unfinished,
}

const PLAIN: &str = "segment";
const OFFSETS: &str = "offsets";
const COMPRESSED: &str = "compressed";
const SNAPSHOT: &str = "snapshot";
const SEAL: &str = "seal";
const MARK: &str = "mark";
const TORN: &str = "torn-";

/// The path of the file of this kind with this number: that of its segment, or the commit of a
/// snapshot.
pub(crate) fn path_of(dir: &Path, number: u64, kind: FileKind) -> PathBuf {
    let extension = match kind {
        FileKind::Plain => PLAIN,
        FileKind::Offsets => OFFSETS,
        FileKind::Compressed => COMPRESSED,
        FileKind::Snapshot => SNAPSHOT,
        FileKind::Unfinished => UNFINISHED,
    };
    dir.join(format!("{number:010}.{extension}"))
}

/// Where the seal is.
pub(crate) fn seal_path(dir: &Path) -> PathBuf {
    dir.join(SEAL)
}

/// Where the mark is.
pub(crate) fn mark_path(dir: &Path) -> PathBuf {
    dir.join(MARK)
}

/// Where the bytes of a torn tail are kept.
pub(crate) fn torn_path(dir: &Path, number: u64, offset: u64) -> PathBuf {
    dir.join(format!("{TORN}{number:010}-{offset}"))
}

/// Where bytes of torn tails are kept.
pub(crate) fn torn_paths(dir: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io(format!("listing {}", dir.display()), &error);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(TORN) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// What the file name says; `None` for files that are not the log's.
pub(crate) fn parse(name: &str) -> Option<(u64, FileKind)> {
    let (number, extension) = name.split_once('.')?;
    if number.len() < 10 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kind = match extension {
        PLAIN => FileKind::Plain,
        OFFSETS => FileKind::Offsets,
        COMPRESSED => FileKind::Compressed,
        SNAPSHOT => FileKind::Snapshot,
        other if other.ends_with(UNFINISHED) => FileKind::Unfinished,
        _ => return None,
    };
    Some((number.parse().ok()?, kind))
}

/// Whether this is the name of a sidecar.
pub(crate) fn is_sidecar(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == OFFSETS)
}

/// The files of one segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Files {
    pub(crate) plain: bool,
    pub(crate) offsets: bool,
    pub(crate) compressed: bool,
}

/// The files of a log.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Those of each segment, by its number.
    pub(crate) segments: BTreeMap<u64, Files>,
    /// The commits of the snapshots.
    pub(crate) snapshots: BTreeSet<u64>,
    /// Whether there is a seal.
    pub(crate) is_sealed: bool,
    /// Those that were not finished.
    pub(crate) unfinished: Vec<PathBuf>,
}

/// Which files the log in `dir` has.
pub(crate) fn list(dir: &Path) -> Result<Listed> {
    let failed = |error| Error::io(format!("listing {}", dir.display()), &error);
    let mut listed = Listed {
        is_sealed: seal_path(dir).exists(),
        ..Listed::default()
    };
    let unfinished = [seal_path(dir), mark_path(dir)].map(|path| unfinished(&path));
    let left = unfinished.into_iter().filter(|path| path.exists());
    listed.unfinished.extend(left);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Some((number, kind)) = entry.file_name().to_str().and_then(parse) else {
            continue;
        };
        let segments = &mut listed.segments;
        match kind {
            FileKind::Plain => segments.entry(number).or_default().plain = true,
            FileKind::Offsets => segments.entry(number).or_default().offsets = true,
            FileKind::Compressed => segments.entry(number).or_default().compressed = true,
            FileKind::Snapshot => drop(listed.snapshots.insert(number)),
            FileKind::Unfinished => listed.unfinished.push(entry.path()),
        }
    }
    Ok(listed)
}
