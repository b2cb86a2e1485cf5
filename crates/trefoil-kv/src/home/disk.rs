//! What is kept on the disk of this machine of namespaces that are not open: files of their indexes, up to a
//! limit. Those of the namespace that was used least recently go first.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use trefoil::home::Incarnation;
use trefoil_core::{Error, Result};

use super::HomeShared;

/// How many bytes of files are kept of namespaces that are not open.
pub(super) const CACHE_BYTES_MAX: u64 = 16 << 30;

/// In the directory of a namespace: when it was changed, the namespace was used last.
const USED: &str = "used";
/// What the names of directories begin with that are being removed.
const REMOVED: &str = "removed-";

/// The files of one namespace.
struct CachedFiles {
    used: Option<SystemTime>,
    incarnation: Incarnation,
    path: PathBuf,
    n_bytes: u64,
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let context = path.display().to_string();
    move |error| Error::io(context, &error)
}

impl HomeShared {
    /// Notes that a namespace was used until now.
    pub(super) fn note_used(&self, incarnation: Incarnation) {
        let dir = self.cache_dir(incarnation);
        // If it cannot be noted, the files go early.
        if dir.is_dir() {
            let _ = fs::write(dir.join(USED), b"");
        }
    }

    /// Removes files of namespaces that are not open, until the rest is within the limit.
    pub(super) fn trim_cache(&self, bytes_max: u64) -> Result<()> {
        let mut idle = Vec::new();
        for path in entries(&self.cache_dir)? {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.unwrap_or_default();
            if name.starts_with(REMOVED) {
                fs::remove_dir_all(&path).map_err(io(&path))?;
            } else if name.len() == 32
                && let Ok(number) = u128::from_str_radix(name, 16)
                && !self.held.lock().contains(&Incarnation(number))
            {
                idle.push(CachedFiles {
                    used: fs::metadata(path.join(USED))
                        .and_then(|used| used.modified())
                        .ok(),
                    incarnation: Incarnation(number),
                    n_bytes: n_bytes(&path)?,
                    path,
                });
            }
        }
        idle.sort_by_key(|files| files.used);
        let mut n_bytes: u64 = idle.iter().map(|files| files.n_bytes).sum();
        for files in idle {
            if n_bytes <= bytes_max {
                return Ok(());
            }
            if self.remove_files(&files)? {
                n_bytes -= files.n_bytes;
            }
        }
        Ok(())
    }

    /// Removes the files of a namespace, unless it is open by now.
    fn remove_files(&self, files: &CachedFiles) -> Result<bool> {
        let removed = format!("{REMOVED}{:032x}", files.incarnation.0);
        let removed = self.cache_dir.join(removed);
        let held = self.held.lock();
        if held.contains(&files.incarnation) {
            return Ok(false);
        }
        // Who opens it from now on finds nothing, instead of something that is going.
        fs::rename(&files.path, &removed).map_err(io(&files.path))?;
        drop(held);
        fs::remove_dir_all(&removed).map_err(io(&removed))?;
        Ok(true)
    }
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(io(dir))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<Result<_, _>>().map_err(io(dir))
}

/// Returns how many bytes the files below a directory have.
fn n_bytes(dir: &Path) -> Result<u64> {
    let mut n_bytes = 0;
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for path in entries(&next)? {
            // What goes meanwhile takes no room.
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => dirs.push(path),
                Ok(found) => n_bytes += found.len(),
                Err(_) => {}
            }
        }
    }
    Ok(n_bytes)
}

#[cfg(test)]
mod tests {
    use trefoil::home::Home as _;

    use super::*;
    use crate::home::tests::{TestNode, commit, id};
    use crate::memory::MemoryEngine;

    #[test]
    fn files_of_the_least_recently_used_namespaces_go_first_and_of_open_ones_never() {
        let data = MemoryEngine::default();
        let node = TestNode::join(&data, 1);
        let shared = &node.home.shared;
        let mut dirs = Vec::new();
        for (name, minute) in [("a", 3), ("b", 1), ("c", 2), ("open", 0)] {
            node.home.create(&id(name), b"text").unwrap();
            let database = node.open(&id(name)).unwrap();
            database.commit(commit()).unwrap();
            database.checkpoint().unwrap();
            let incarnation = node
                .home
                .entry(&id(name))
                .unwrap()
                .unwrap()
                .stamp
                .incarnation;
            let dir = shared.cache_dir(incarnation);
            assert!(n_bytes(&dir).unwrap() > 0, "{name}");
            if name != "open" {
                database.close().unwrap();
                let used = fs::File::options()
                    .write(true)
                    .open(dir.join(USED))
                    .unwrap();
                let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(60 * minute);
                used.set_modified(at).unwrap();
            }
            dirs.push((name, dir, database));
        }
        let is_there = || -> Vec<&str> {
            let there = dirs.iter().filter(|(_, dir, _)| dir.exists());
            there.map(|(name, _, _)| *name).collect()
        };
        shared.trim_cache(CACHE_BYTES_MAX).unwrap();
        assert_eq!(is_there(), ["a", "b", "c", "open"]);
        let limit = n_bytes(&dirs[0].1).unwrap();
        shared.trim_cache(limit).unwrap();
        assert_eq!(is_there(), ["a", "open"]);
        // What is gone is fetched again.
        let database = node.open(&id("b")).unwrap();
        assert_eq!(database.version("a-1").unwrap(), Some(0));
    }
}
