//! Making the end of the log what it seems to be, before anybody sees it.
//!
//! A torn group is cut off. The last whole group is made durable: if the process was killed, or its
//! sync failed, the group may be in the operating system's cache and not on the disk.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use trefoil_core::{Error, Result};

use crate::local::disk::Disk;
use crate::local::files;

use super::create::write_zeros;
use super::names;
use super::plain::PlainSegment;

/// A group that was being written when the power failed, and was never acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The segment.
    pub file: PathBuf,
    /// Where the group began in it.
    pub offset: u64,
    /// How many bytes were cut off.
    pub bytes: u64,
    /// The file in which they are kept; `None` if it could not be written.
    pub saved: Option<PathBuf>,
}

/// Cuts `torn` off the end of a segment of the log in `dir` and keeps its bytes aside, if there is
/// room for them: a full disk must not keep the log from being opened.
pub(super) fn cut(
    disk: &dyn Disk,
    dir: &Path,
    segment: &PlainSegment,
    torn: Range<usize>,
) -> Result<Cut> {
    let (start, end) = (torn.start as u64, torn.end as u64);
    let saved = names::torn_path(dir, segment.header.number, start);
    let kept = segment.file.read(start..end);
    let saved = match kept.and_then(|bytes| files::replace(disk, &saved, &bytes)) {
        Ok(()) => Some(saved),
        Err(error) => {
            tracing::warn!(%error, "the bytes of a torn group are cut off without being kept");
            None
        }
    };
    let path = &segment.path;
    let failed = |error| Error::io(format!("cutting {}", path.display()), &error);
    let file = disk.open(path).map_err(failed)?;
    write_zeros(disk, &file, path, start, end)?;
    disk.sync_data(&file).map_err(failed)?;
    let cut = Cut {
        file: path.clone(),
        offset: start,
        bytes: end - start,
        saved,
    };
    tracing::warn!(?cut, "cut off a group that was not written to its end");
    Ok(cut)
}

/// Makes the segment durable up to the end of `last_group`, its last whole group. All groups before
/// it were durable before it was written.
pub(super) fn make_durable(
    disk: &dyn Disk,
    file: &File,
    segment: &PlainSegment,
    last_group: Range<usize>,
) -> Result<()> {
    let path = &segment.path;
    let failed = |error| {
        Error::io(
            format!("making the end of {} durable", path.display()),
            &error,
        )
    };
    // Written again because after a failed sync the cache takes the bytes for written.
    let offset = last_group.start as u64;
    let bytes = segment.file.read(offset..last_group.end as u64)?;
    if !bytes.is_empty() {
        disk.write_at(file, &bytes, offset).map_err(failed)?;
    }
    disk.sync_data(file).map_err(failed)
}
