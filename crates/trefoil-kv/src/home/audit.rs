//! The audit log: an object for each record. Their names go down as the numbers go up, so that the newest
//! are listed first.

use trefoil_core::Result;

use super::names::{self, AUDIT};
use super::objects::failed;
use super::small;
use crate::contract::KvObjects;

/// How many records are kept.
const KEPT: u64 = 20_000;
/// After so many records the oldest ones are removed ...
const REMOVED_EVERY: u64 = 100;
/// ... at most so many of them.
const REMOVED_MAX: usize = 1000;

/// Appends a record. Returns its number.
pub(super) fn append(objects: &dyn KvObjects, record: &str) -> Result<u64> {
    let newest = objects.list(AUDIT, "", 1);
    let newest = newest.map_err(failed("listing the audit log"))?;
    let mut number = 1 + newest.first().map_or(0, |name| names::audit_number(name));
    loop {
        let bytes = small::encode(&record, b"")?;
        let created = objects.create(&names::audit(number), bytes);
        // Another node may have been faster.
        match created.map_err(failed("writing the audit log"))? {
            Some(_) => break,
            None => number += 1,
        }
    }
    if number.is_multiple_of(REMOVED_EVERY) {
        remove_old(objects, number);
    }
    Ok(number)
}

/// Removes what is too old. What stays is removed the next time.
fn remove_old(objects: &dyn KvObjects, newest: u64) {
    let Some(last_kept) = newest.checked_sub(KEPT) else {
        return;
    };
    let old = objects.list(AUDIT, &names::audit(last_kept + 1), REMOVED_MAX);
    for name in old.unwrap_or_default() {
        if objects.delete(&name).is_err() {
            return;
        }
    }
}

/// Returns records with lower numbers than `before`, the newest first.
pub(super) fn read(
    objects: &dyn KvObjects,
    before: u64,
    limit: usize,
) -> Result<Vec<(u64, String)>> {
    let listed = objects.list(AUDIT, &names::audit(before), limit);
    let listed = listed.map_err(failed("listing the audit log"))?;
    let mut found = Vec::with_capacity(listed.len());
    for name in listed {
        let object = objects
            .get(&name)
            .map_err(failed("reading the audit log"))?;
        // One that is missing by now was too old.
        if let Some((bytes, _)) = object {
            let (record, _): (String, _) = small::decode(&name, &bytes)?;
            found.push((names::audit_number(&name), record));
        }
    }
    Ok(found)
}
