//! The place of a node on its machine: a file that one process has at a time, and that says which node had
//! it before. That one is dead, and nobody has to wait until it has been silent for long. A directory has
//! places for several nodes, as when a server runs and a tool looks at something else.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use trefoil_core::{Error, Result};

use super::node::NodeId;

/// The files that are locked begin with this, and have a number behind it.
const FILE: &str = "node-";
/// How many nodes have a place in one directory.
const PLACES: usize = 64;

/// The place of a node.
#[derive(Debug)]
pub(super) struct NodePlace {
    path: PathBuf,
    /// Locked for as long as it is open; `None` once the node has left.
    file: Mutex<Option<File>>,
}

impl NodePlace {
    /// Takes the first place in a directory that is nobody's. Returns the node that was there before,
    /// too.
    pub(super) fn take(dir: &Path) -> Result<(Self, Option<NodeId>)> {
        std::fs::create_dir_all(dir)
            .map_err(|error| Error::io(dir.display().to_string(), &error))?;
        for number in 1..=PLACES {
            let path = dir.join(format!("{FILE}{number}"));
            if let Some(taken) = Self::take_file(path)? {
                return Ok(taken);
            }
        }
        let path = dir.to_owned();
        Err(Error::Locked { path })
    }

    fn take_file(path: PathBuf) -> Result<Option<(Self, Option<NodeId>)>> {
        let io = |error: &std::io::Error| Error::io(path.display().to_string(), error);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(|error| io(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(io(&error)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| io(&error))?;
        let before = u128::from_str_radix(text.trim(), 16).ok().map(NodeId);
        let file = Mutex::new(Some(file));
        Ok(Some((Self { path, file }, before)))
    }

    /// Writes down which node is here.
    pub(super) fn note(&self, id: NodeId) -> Result<()> {
        let mut file = self.file.lock();
        let Some(file) = &mut *file else {
            return Ok(());
        };
        let write = |file: &mut File| {
            file.rewind()?;
            file.set_len(0)?;
            writeln!(file, "{:032x}", id.0)
        };
        write(file).map_err(|error| Error::io(self.path.display().to_string(), &error))
    }

    /// Lets others have it.
    pub(super) fn leave(&self) {
        self.file.lock().take();
    }
}
