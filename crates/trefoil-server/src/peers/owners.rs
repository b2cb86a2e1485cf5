//! Where namespaces were found: hints that save asking the store. A wrong one does no harm, because who
//! does not have the namespace says so, and then it is forgotten.

use std::sync::Arc;

use quick_cache::sync::Cache;
use trefoil::NamespaceId;

use crate::limits::OWNER_HINTS_MAX;

/// The addresses of owners, by namespace. Those that were not asked for lately are forgotten.
#[derive(Debug)]
pub(crate) struct OwnerHints(Cache<NamespaceId, Arc<str>>);

impl OwnerHints {
    pub(super) fn new() -> Self {
        Self(Cache::new(OWNER_HINTS_MAX))
    }

    /// Returns where a namespace was found last.
    pub(crate) fn get(&self, id: &NamespaceId) -> Option<Arc<str>> {
        self.0.get(id)
    }

    /// The node at this address has answered for the namespace.
    pub(crate) fn note(&self, id: &NamespaceId, address: &str) {
        if self.get(id).as_deref() != Some(address) {
            self.0.insert(id.clone(), address.into());
        }
    }

    /// The namespace is not where it was.
    pub(crate) fn forget(&self, id: &NamespaceId) {
        self.0.remove(id);
    }
}
