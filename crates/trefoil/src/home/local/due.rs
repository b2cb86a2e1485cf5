//! The file that says when a namespace that is closed must be opened: something of it is due.
//!
//! One that is damaged says "at once": nothing is missed, and closing the namespace writes it again.

use std::path::{Path, PathBuf};

use trefoil_core::Result;
use trefoil_storage::local::disk::RealDisk;
use trefoil_storage::local::{Finding, files};
use xxhash_rust::xxh3::xxh3_64;

use super::read_if_there;

const FILE: &str = "due";

/// Returns when the namespace in `directory` must be opened; `None` if it need not.
pub(super) fn read(directory: &Path) -> Option<u64> {
    match read_if_there(&path(directory)) {
        Ok(None) => None,
        // One without a check, which older versions wrote, may be damaged too.
        found => Some(
            found
                .ok()
                .flatten()
                .and_then(|text| checked(&text))
                .unwrap_or(0),
        ),
    }
}

/// Writes when the namespace in `directory` must be opened, or that it need not.
pub(super) fn write(directory: &Path, due: Option<u64>) -> Result<()> {
    let path = path(directory);
    match due {
        Some(due) => {
            let text = format!("{due} {}\n", check_of(due));
            files::replace(&RealDisk, &path, text.as_bytes())
        }
        None => files::remove(&RealDisk, &path),
    }
}

/// Returns what is wrong with the file, if something is.
pub(super) fn verify(directory: &Path) -> Option<Finding> {
    let from_before = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok();
        text.is_some_and(|text| text.trim().parse::<u64>().is_ok())
    };
    let is_sound = match read_if_there(&path(directory)) {
        Ok(Some(text)) => checked(&text).is_some() || from_before(&text),
        Ok(None) => true,
        Err(_) => false,
    };
    let what = "the time at which something is due is not valid; it counts as now, and closing the \
                namespace writes it again";
    (!is_sound).then(|| Finding {
        file: path(directory),
        offset: 0,
        position: 0,
        what: what.to_owned(),
    })
}

fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// Returns the time that the file's text says, if its check is right.
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
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_damaged_says_at_once() {
        let above = tempfile::tempdir().unwrap();
        let directory = above.path();
        assert_eq!(read(directory), None);
        assert_eq!(verify(directory), None);
        write(directory, Some(1_763_000_000_123)).unwrap();
        assert_eq!(read(directory), Some(1_763_000_000_123));
        let sound = fs::read(path(directory)).unwrap();
        for at in 0..sound.len() {
            for bit in 0..8 {
                let mut damaged = sound.clone();
                damaged[at] ^= 1 << bit;
                fs::write(path(directory), damaged).unwrap();
                assert_eq!(read(directory), Some(0), "bit {bit} of byte {at}");
                assert!(verify(directory).is_some(), "bit {bit} of byte {at}");
            }
        }
        fs::write(path(directory), "1763000000123\n").unwrap();
        assert_eq!(read(directory), Some(0));
        assert_eq!(verify(directory), None, "as older versions wrote it");
        write(directory, None).unwrap();
        assert_eq!(read(directory), None);
    }
}
