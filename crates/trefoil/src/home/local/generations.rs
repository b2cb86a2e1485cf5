//! The generations in the directory of a namespace, and the file that names the one that counts.
//!
//! `generation` names it, `<number>/` holds it. A new generation is built beside the old one and takes
//! over when `generation` is replaced; what no longer counts is removed.

use std::path::{Path, PathBuf};

use trefoil_core::{Damage, Error, Result};
use trefoil_storage::LocalStorage;
use trefoil_storage::local::disk::RealDisk;
use trefoil_storage::local::{files, missing};

use super::entries::names_in;
use super::{read_if_there, remove_directory};
use crate::home::FIRST_GENERATION;

/// The file that names the generation that counts.
const CURRENT: &str = "generation";

/// Returns whether `directory` is that of a namespace.
pub(super) fn has_current(directory: &Path) -> bool {
    directory.join(CURRENT).is_file()
}

/// Returns whether there is a generation, whichever counts.
pub(super) fn exist(directory: &Path) -> Result<bool> {
    Ok(directory.is_dir() && !all(directory)?.is_empty())
}

/// Returns the directory of a generation.
pub(super) fn path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(generation.to_string())
}

/// Checks that a namespace has been made in `directory`. If it is known that one was, then an empty
/// directory is no new namespace but one that is lost.
pub(super) fn require(directory: &Path) -> Result<()> {
    if !directory.is_dir() {
        let what = "the directory of the namespace is missing";
        return Err(missing(directory, what));
    }
    let current = directory.join(CURRENT);
    let Some(text) = read_if_there(&current)? else {
        let what = "the file that names the current generation is missing";
        return Err(missing(&current, what));
    };
    let name = String::from_utf8_lossy(&text);
    LocalStorage::require(directory.join(name.trim()))
}

/// Returns the number of the generation that counts. If there is none yet, it is the first, and that
/// is written down.
pub(super) fn current(directory: &Path) -> Result<u64> {
    // The name may have been replaced just before a crash: what is read must stay.
    files::sync_dir(&RealDisk, directory)?;
    read_current(directory)
}

fn read_current(directory: &Path) -> Result<u64> {
    let path = directory.join(CURRENT);
    let damaged = |what: String| {
        Error::Damaged(Box::new(Damage {
            file: path.clone(),
            offset: 0,
            position: 0,
            what,
            help: "write the number of the newest sub-directory into it".into(),
        }))
    };
    let others = all(directory)?;
    let number = match read_if_there(&path)? {
        Some(text) => {
            let text = String::from_utf8_lossy(&text);
            let number = text.trim().parse();
            number.map_err(|_| damaged(format!("{text:?} is not the number of a generation")))?
        }
        None if others.is_empty() => {
            replace_current(directory, FIRST_GENERATION)?;
            FIRST_GENERATION
        }
        None => return Err(damaged("the file is missing".into())),
    };
    // A generation is made before it is named.
    if !others.is_empty() && !others.contains(&number) {
        return Err(damaged(format!("generation {number} is missing")));
    }
    Ok(number)
}

/// Makes a generation the one that counts, atomically and durably.
pub(super) fn replace_current(directory: &Path, generation: u64) -> Result<()> {
    let text = format!("{generation}\n");
    files::replace(&RealDisk, &directory.join(CURRENT), text.as_bytes())
}

/// Removes every generation but the one that counts.
pub(super) fn remove_others(directory: &Path) -> Result<()> {
    let current = read_current(directory)?;
    let mut others = all(directory)?;
    others.retain(|number| *number != current);
    others
        .into_iter()
        .try_for_each(|number| remove_directory(&path(directory, number)))
}

/// Returns the numbers of all generations that there are.
fn all(directory: &Path) -> Result<Vec<u64>> {
    let names = names_in(directory)?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}
