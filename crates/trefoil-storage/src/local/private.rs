//! Files and directories that nobody but their owner may read, whatever the process's umask, and
//! what the file system says of them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::Result;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt,
};
use std::path::Path;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// What others than the owner may do.
const OTHERS: u32 = 0o077;

/// How a file is opened; if that creates it, only its owner may read it.
pub fn file_options() -> OpenOptions {
    let mut options = File::options();
    options.mode(FILE_MODE);
    options
}

/// Creates a directory and those above it that are missing, durably.
pub fn create_dir(dir: &Path) -> Result<()> {
    let missing: Vec<&Path> = dir
        .ancestors()
        .take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists())
        .collect();
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(dir)?;
    for dir in missing {
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Keeps others from a file that exists: who can open a lock file can hold the lock. Where that is
/// not allowed, the file stays as it is.
pub fn keep_others_from(file: &File) {
    let is_open = |file: &File| Ok(file.metadata()?.mode() & OTHERS != 0);
    let closed = is_open(file).and_then(|is_open: bool| match is_open {
        true => file.set_permissions(Permissions::from_mode(FILE_MODE)),
        false => Ok(()),
    });
    if let Err(error) = closed {
        tracing::warn!(%error, "other users can hold the lock of this directory");
    }
}

/// Whether others than the owner can read what is in a directory, or change it.
pub fn is_open_to_others(dir: &Path) -> bool {
    std::fs::metadata(dir).is_ok_and(|found| found.mode() & OTHERS != 0)
}

/// How many bytes may still be written to the file system that has `path`.
pub fn free_bytes(path: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_created_is_its_owners_alone() {
        let above = tempfile::tempdir().unwrap();
        let dir = above.path().join("a/b/c");
        create_dir(&dir).unwrap();
        create_dir(&dir).unwrap();
        for made in dir.ancestors().take(3) {
            assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o700);
            assert!(!is_open_to_others(made));
        }
        let path = dir.join("file");
        let file = file_options().create(true).write(true).open(&path).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        file.set_permissions(Permissions::from_mode(0o666)).unwrap();
        keep_others_from(&file);
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(free_bytes(&dir).unwrap() > 0);
    }
}
