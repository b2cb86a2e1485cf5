//! Where a namespace is, for protocols that ask before they begin.

use std::sync::Arc;
use std::time::Duration;

use trefoil::{NamespaceId, OpenDatabase, Trace};

use super::Patience;
use crate::error::Result;
use crate::service::Shared;

/// Where a namespace is.
#[derive(Debug)]
pub(crate) enum Place {
    Here(OpenDatabase),
    /// On the node at this address, as far as this one knows.
    There(Arc<str>),
}

/// A search for the node that has a namespace.
#[derive(Debug)]
pub(crate) struct OwnerSearch(Patience);

impl OwnerSearch {
    /// Begins a search that is given up after this time.
    pub(crate) fn new(shared: &Shared, time: Duration) -> Self {
        Self(Patience::new(shared.clock(), time))
    }

    /// Returns where the namespace is, and waits while nobody knows.
    pub(crate) async fn place(
        &mut self,
        shared: &Shared,
        id: &NamespaceId,
        trace: &Trace,
    ) -> Result<Place> {
        loop {
            let failure = match shared.database(id, trace, false).await {
                Ok(database) => return Ok(Place::Here(database)),
                Err(failure) => failure,
            };
            let Some(elsewhere) = &failure.elsewhere else {
                return Err(failure);
            };
            if let Some(owner) = &elsewhere.owner {
                return Ok(Place::There(owner.as_str().into()));
            }
            if !self.goes_on(shared, id, None).await {
                return Err(failure.because("its node has no address"));
            }
        }
    }

    /// The namespace is not where it was thought to be, but at `owner` if somebody knows: waits a moment
    /// before it is looked for again. Returns whether it is to be.
    pub(crate) async fn goes_on(
        &mut self,
        shared: &Shared,
        id: &NamespaceId,
        owner: Option<&str>,
    ) -> bool {
        match (&shared.peers, owner) {
            (Some(peers), Some(owner)) => peers.found(id, owner),
            (Some(peers), None) => peers.forget(id),
            (None, _) => {}
        }
        self.0.wait().await
    }
}
