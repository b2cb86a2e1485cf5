//! Lists names in order, whatever order the store has.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use object_store::ObjectStore;
use object_store::path::Path;
use trefoil_kv::contract::KvResult;

use crate::error::of_get;

/// What is asked for.
#[derive(Clone)]
pub(super) struct ListRequest {
    /// What comes before every name, with a slash at the end.
    pub(super) root: String,
    pub(super) prefix: String,
    pub(super) after: String,
    pub(super) max: usize,
    /// The store lists names in order, so the rest need not be read.
    pub(super) is_ordered: bool,
}

impl ListRequest {
    /// Returns the names.
    pub(super) async fn run(self, store: Arc<dyn ObjectStore>) -> KvResult<Vec<String>> {
        // A store lists whole directories: that of the prefix, of which the rest is compared here.
        let directory = match self.prefix.rsplit_once('/') {
            Some((directory, _)) => Path::from(format!("{}{directory}", self.root)),
            None => Path::from(self.root.as_str()),
        };
        let mut objects = match self.is_ordered && !self.after.is_empty() {
            true => {
                let after = Path::from(format!("{}{}", self.root, self.after));
                store.list_with_offset(Some(&directory), &after)
            }
            false => store.list(Some(&directory)),
        };
        let mut names = BTreeSet::new();
        while let Some(object) = objects.next().await {
            let object = object.map_err(|error| of_get(&error))?;
            let Some(name) = object.location.as_ref().strip_prefix(&self.root) else {
                continue;
            };
            if !name.starts_with(&self.prefix) || name <= self.after.as_str() {
                continue;
            }
            names.insert(name.to_owned());
            if names.len() > self.max {
                names.pop_last();
            }
            if self.is_ordered && names.len() >= self.max {
                break;
            }
        }
        Ok(names.into_iter().collect())
    }
}
