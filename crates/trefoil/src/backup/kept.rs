//! Redactions that a restored namespace has to make again, kept in its home until that is done: the namespace
//! that knew of them may be deleted by then.
//!
//! They are an entry of the registry of a name of its own. It is no entry that a server takes for a
//! namespace, as that of one which is being restored is none.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use trefoil_core::{Error, NamespaceId, Result};

use crate::KnownRedaction;
use crate::home::{Home, StoredEntry};

/// What such an entry begins with.
const MARK: &[u8] = b"redactions of a restore that was not finished: restore again\n";

/// What such an entry says after that.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptRedactions {
    namespace: String,
    redactions: Vec<KnownRedaction>,
}

/// Returns the name of the entry for a namespace, however long the name of that is.
fn place(id: &NamespaceId) -> Result<NamespaceId> {
    let digest = Sha256::digest(id.as_str());
    NamespaceId::new(&format!("restoring-{}", hex::encode(&digest[..16])))
}

/// Returns the entry, if it is one of these.
fn entry(home: &dyn Home, id: &NamespaceId) -> Result<Option<StoredEntry>> {
    let entry = home.entry(&place(id)?)?;
    Ok(entry.filter(|entry| entry.bytes.starts_with(MARK)))
}

/// Returns what an attempt that was cut short has kept.
pub(super) fn kept_redactions(home: &dyn Home, id: &NamespaceId) -> Result<Vec<KnownRedaction>> {
    let Some(entry) = entry(home, id)? else {
        return Ok(Vec::new());
    };
    let place = entry.place.display();
    let kept: KeptRedactions =
        serde_json::from_slice(&entry.bytes[MARK.len()..]).map_err(|error| {
            Error::invalid(format!("{place}: redactions to be made again: {error}"))
        })?;
    Ok(kept.redactions)
}

/// Keeps redactions, in the place of those that were kept before.
pub(super) fn keep_redactions(
    home: &dyn Home,
    id: &NamespaceId,
    redactions: &[KnownRedaction],
) -> Result<()> {
    let kept = KeptRedactions {
        namespace: id.to_string(),
        redactions: redactions.to_vec(),
    };
    let kept = serde_json::to_vec(&kept)
        .map_err(|error| Error::invalid(format!("redactions to be made again: {error}")))?;
    let bytes = [MARK, &kept].concat();
    let place = place(id)?;
    match entry(home, id)? {
        None => home.create(&place, &bytes).map(drop),
        Some(before) => match home.replace(&place, before.stamp, &bytes)? {
            Some(_) => Ok(()),
            None => Err(Error::invalid(format!(
                "namespace '{id}' is being restored by somebody else"
            ))),
        },
    }
}

/// Forgets what was kept.
pub(super) fn forget_redactions(home: &dyn Home, id: &NamespaceId) -> Result<()> {
    match entry(home, id)? {
        None => Ok(()),
        Some(entry) => home.delete(&place(id)?, entry.stamp.incarnation)?(),
    }
}
