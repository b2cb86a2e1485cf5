//! The names of the log's files.

use std::path::{Path, PathBuf};

/// What a file in the log's directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A plain segment.
    Plain,
    /// The offsets of a plain segment's items.
    Offsets,
    /// A compressed segment.
    Compressed,
    /// A file that was being written.
    Unfinished,
}

const PLAIN: &str = "segment";
const OFFSETS: &str = "offsets";
const COMPRESSED: &str = "compressed";
const UNFINISHED: &str = "new";

/// The path of segment `number`'s file of this kind.
pub(crate) fn path_of(dir: &Path, number: u64, kind: FileKind) -> PathBuf {
    let extension = match kind {
        FileKind::Plain => PLAIN,
        FileKind::Offsets => OFFSETS,
        FileKind::Compressed => COMPRESSED,
        FileKind::Unfinished => UNFINISHED,
    };
    dir.join(format!("{number:010}.{extension}"))
}

/// The name under which `path` is written until it is complete.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(UNFINISHED);
    name.into()
}

/// Where the bytes of a torn tail are kept.
pub(crate) fn torn_path(dir: &Path, number: u64, offset: u64) -> PathBuf {
    dir.join(format!("torn-{number:010}-{offset}"))
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
        other if other.ends_with(UNFINISHED) => FileKind::Unfinished,
        _ => return None,
    };
    Some((number.parse().ok()?, kind))
}
