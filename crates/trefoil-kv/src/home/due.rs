//! When namespaces must be opened because something of them is due: an object each, by minute, so that
//! nothing has to be opened to find out.

use serde::{Deserialize, Serialize};
use trefoil::home::Incarnation;
use trefoil_core::{NamespaceId, Result};

use super::objects::{failed, list_all};
use super::{names, small};
use crate::contract::KvObjects;

/// What is due.
#[derive(Debug, Serialize, Deserialize)]
struct DueHead {
    namespace: String,
    /// In milliseconds since 1970.
    at: u64,
}

/// Notes when something of a namespace is due.
pub(super) fn note(
    objects: &dyn KvObjects,
    id: &NamespaceId,
    incarnation: Incarnation,
    at: u64,
) -> Result<()> {
    let name = names::due(at, incarnation);
    let namespace = id.to_string();
    let bytes = small::encode(&DueHead { namespace, at }, b"")?;
    loop {
        let found = objects.get(&name);
        let found = found.map_err(failed("noting what is due"))?;
        let noted = match found {
            Some((before, _)) if before == bytes => return Ok(()),
            Some((_, version)) => objects.replace(&name, &version, bytes.clone()),
            None => objects.create(&name, bytes.clone()),
        };
        if noted.map_err(failed("noting what is due"))?.is_some() {
            return Ok(());
        }
    }
}

/// Forgets what was due then.
pub(super) fn forget(objects: &dyn KvObjects, incarnation: Incarnation, at: u64) -> Result<()> {
    let deleted = objects.delete(&names::due(at, incarnation));
    deleted.map_err(failed("forgetting what was due"))
}

/// Something of a namespace that is due.
pub(super) struct DueNamespace {
    pub(super) namespace: NamespaceId,
    pub(super) incarnation: Incarnation,
    /// In milliseconds since 1970.
    pub(super) at: u64,
}

/// Returns what is due until then, of all namespaces; `None` for all that is ever due.
pub(super) fn read_until(objects: &dyn KvObjects, until: Option<u64>) -> Result<Vec<DueNamespace>> {
    let mut all = Vec::new();
    let end = until.map(|until| names::due(until, Incarnation(u128::MAX)));
    let listed = list_all(objects, names::DUE)?.into_iter();
    for name in listed.take_while(|name| end.as_ref().is_none_or(|end| name <= end)) {
        let found = objects.get(&name).map_err(failed("reading what is due"))?;
        // It may have been forgotten meanwhile.
        let (Some((bytes, _)), Some(number)) = (found, names::last_number(&name)) else {
            continue;
        };
        let (head, _): (DueHead, _) = small::decode(&name, &bytes)?;
        all.push(DueNamespace {
            namespace: NamespaceId::new(&head.namespace)?,
            incarnation: Incarnation(number),
            at: head.at,
        });
    }
    Ok(all)
}
