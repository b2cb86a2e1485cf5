//! How much namespaces hold, for those who ask and for lists.

use trefoil_core::{Error, Result};

use super::Namespaces;
use crate::Info;

impl Namespaces {
    /// Returns the counts and times of a namespace; opens it if it was not open since the start.
    pub fn counts(&self, id: &str) -> Result<Info> {
        let entry = self.entry(id)?;
        if let Some(info) = self.inner.pool.counted(&entry.id) {
            return Ok(info);
        }
        if self.inner.registry.is_unused(&entry.id)? {
            return Ok(Info::default());
        }
        self.database(&entry.id)?.info()
    }

    /// As [`Self::counts`], for lists. Where there are other nodes, nothing is opened for that: `None` if the
    /// namespace is not open here.
    pub fn listed_counts(&self, id: &str) -> Result<Option<Info>> {
        let cluster = self.cluster();
        if cluster.is_none_or(|cluster| cluster.members().len() == 1) {
            return self.counts(id).map(Some);
        }
        let entry = self.entry(id)?;
        match self.opened(&entry.id).map(|database| database.info()) {
            Some(Err(Error::NotOwner { .. } | Error::Closed(_))) | None => Ok(None),
            Some(info) => info.map(Some),
        }
    }
}
