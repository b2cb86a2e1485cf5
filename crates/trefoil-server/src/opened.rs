//! Which namespaces are open for certain, so that a request can take their database without the
//! risk of blocking its thread.

use std::collections::HashSet;

use parking_lot::RwLock;
use trefoil::NamespaceId;

/// Namespaces used of late. It holds fewer than a server keeps open, and a namespace is closed
/// only when that many others were used since: what is in here is open.
#[derive(Debug, Default)]
pub(crate) struct Opened(RwLock<HashSet<NamespaceId>>);

/// How many namespaces are remembered; fewer than the databases that are kept open.
const REMEMBERED_MAX: usize = 64;

impl Opened {
    pub(crate) fn contains(&self, id: &NamespaceId) -> bool {
        self.0.read().contains(id)
    }

    pub(crate) fn insert(&self, id: NamespaceId) {
        let mut opened = self.0.write();
        if opened.len() >= REMEMBERED_MAX {
            opened.clear();
        }
        opened.insert(id);
    }

    /// Forgets everything: many others may have been opened since.
    pub(crate) fn clear(&self) {
        self.0.write().clear();
    }

    pub(crate) fn remove(&self, id: &NamespaceId) {
        self.0.write().remove(id);
    }
}
