//! Data directories of EventoDB: recognised, so that nobody takes an empty database for his own.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use crate::exit::UsageError;

/// The registry of a data directory of Trefoil.
const REGISTRY: &str = "_meta";

/// The registry of EventoDB on Pebble.
const PEBBLE_REGISTRY: &str = "_metadata";

/// What a file of SQLite begins with.
const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Refuses a directory that holds a database of EventoDB, and says how to bring it along.
pub(crate) fn refuse(directory: &Path) -> anyhow::Result<()> {
    if directory.join(REGISTRY).exists() {
        return Ok(());
    }
    let store = if directory.join(PEBBLE_REGISTRY).is_dir() {
        "Pebble"
    } else if holds_sqlite(directory) {
        "SQLite"
    } else {
        return Ok(());
    };
    let shown = directory.display();
    Err(UsageError(format!(
        "{shown} holds a database of EventoDB ({store}), which Trefoil does not read. Start EventoDB \
         on it and run `eventodb export --url URL --token TOKEN --output events.ndjson` for each \
         namespace. Then start Trefoil on an empty directory and run `trefoil import --input \
         events.ndjson`."
    ))
    .into())
}

/// EventoDB keeps a file `<namespace>.db` for each namespace.
fn holds_sqlite(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else {
        return false;
    };
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.any(|path| path.extension().is_some_and(|end| end == "db") && is_sqlite(&path))
}

fn is_sqlite(path: &Path) -> bool {
    let mut magic = [0; SQLITE_MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *SQLITE_MAGIC
}
