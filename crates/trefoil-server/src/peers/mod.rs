//! The other nodes of the cluster: how they come in, how they are reached, and what they have.
//!
//! ```text
//! identity   the certificates by which nodes know each other
//! door       lets peers in, and nobody else
//! dial       opens connections to peers; pool: those over HTTP, which are shared
//! owners     where namespaces were found; patience: how long they are looked for; place: where one is
//! forward    sends an HTTP request to the owner; body: what the client sends meanwhile
//! counts     what is counted of all that
//! ```
//!
//! A request that is sent on takes one hop: a node does not send on what came from a peer.

mod body;
mod counts;
mod dial;
mod door;
mod forward;
mod identity;
mod owners;
mod patience;
mod place;
mod pool;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use trefoil::{Clock, Error, NamespaceId, Namespaces, Result};

use crate::PeersConfig;
use crate::connections::Protocol;
use identity::NodeIdentity;
use owners::OwnerHints;
use pool::HttpPool;

pub(crate) use body::{ClientBody, RepeatableBody};
pub(crate) use counts::{ForwardCounts, ForwardOutcome};
pub(crate) use dial::PeerStream;
pub(crate) use door::Door;
pub(crate) use forward::{
    AFTER, Forwarded, ForwardedBody, ForwardedRequest, IsForwarded, PeerAnswer, WRONG_NODE,
    put_wrong_node,
};
pub(crate) use patience::Patience;
pub(crate) use place::{OwnerSearch, Place};

/// The other nodes, as this one knows them.
#[derive(Debug)]
pub(crate) struct PeerNodes {
    identity: Arc<NodeIdentity>,
    /// Where others reach this node.
    address: String,
    owners: OwnerHints,
    pool: HttpPool,
    pub(crate) counts: ForwardCounts,
}

impl PeerNodes {
    /// Makes this node one that others reach: `bound` is where it listens for them. `None` if nobody
    /// shares the home with it.
    pub(crate) async fn join(
        config: &PeersConfig,
        bound: &[SocketAddr],
        namespaces: &Namespaces,
    ) -> Result<Option<Self>> {
        let Some(cluster) = namespaces.cluster() else {
            return Ok(None);
        };
        let address = told_address(config, bound)?;
        let clock = namespaces.clock().clone();
        let joined = tokio::task::spawn_blocking(move || {
            let identity = NodeIdentity::of(&*cluster)?;
            cluster.announce(&address)?;
            Ok(Some(Self::new(identity, address, clock)))
        });
        let ended = |error| Error::Internal(format!("joining the cluster: {error}"));
        joined.await.map_err(ended)?
    }

    fn new(identity: NodeIdentity, address: String, clock: Clock) -> Self {
        let identity = Arc::new(identity);
        Self {
            pool: HttpPool::new(Arc::clone(&identity), clock),
            identity,
            address,
            owners: OwnerHints::new(),
            counts: ForwardCounts::default(),
        }
    }

    /// Returns what lets peers in.
    pub(crate) fn door(&self) -> Door {
        Door::new(&self.identity)
    }

    /// Opens a connection to the peer at this address. If that fails, nothing was asked of it.
    pub(crate) async fn dial(&self, address: &str, protocol: Protocol) -> io::Result<PeerStream> {
        dial::dial(&self.identity, address, protocol).await
    }

    /// Returns which other node had a namespace when it was asked for last. It may have moved.
    pub(crate) fn owner(&self, id: &NamespaceId) -> Option<Arc<str>> {
        let owner = self.owners.get(id)?;
        (*owner != *self.address).then_some(owner)
    }

    /// The node at this address has answered for a namespace.
    pub(crate) fn found(&self, id: &NamespaceId, address: &str) {
        self.owners.note(id, address);
    }

    /// A namespace is not where it was.
    pub(crate) fn forget(&self, id: &NamespaceId) {
        self.owners.forget(id);
    }
}

/// Returns the address that others are told.
fn told_address(config: &PeersConfig, bound: &[SocketAddr]) -> Result<String> {
    if let Some(address) = &config.address {
        let port = bound.first().map_or(0, SocketAddr::port);
        return Ok(match has_port(address) {
            true => address.clone(),
            false => format!("{address}:{port}"),
        });
    }
    match bound.iter().find(|address| !address.ip().is_unspecified()) {
        Some(address) => Ok(address.to_string()),
        None => Err(Error::invalid(
            "other nodes cannot be told to reach this one at every address: --peer-address says which \
             one it is",
        )),
    }
}

/// Returns whether an address, a name or an IP address, ends with a port.
fn has_port(address: &str) -> bool {
    match address.rsplit_once(':') {
        Some((host, port)) => {
            let is_whole = !host.contains(':') || host.ends_with(']');
            is_whole && port.parse::<u16>().is_ok()
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_told_an_address_that_they_can_reach() {
        let bound = |addresses: &[&str]| -> Vec<SocketAddr> {
            let parsed = addresses.iter().map(|address| address.parse().unwrap());
            parsed.collect()
        };
        let told = |address: Option<&str>, listen: &[&str]| {
            let config = PeersConfig {
                address: address.map(str::to_owned),
                ..PeersConfig::default()
            };
            told_address(&config, &bound(listen)).map_err(|error| error.to_string())
        };
        let of = |text: &str| Ok(text.to_owned());
        assert_eq!(told(None, &["127.0.0.1:7", "[::1]:7"]), of("127.0.0.1:7"));
        assert_eq!(told(None, &["0.0.0.0:7", "10.0.0.1:7"]), of("10.0.0.1:7"));
        assert_eq!(told(Some("node-1"), &["0.0.0.0:7"]), of("node-1:7"));
        assert_eq!(told(Some("node-1:9"), &["0.0.0.0:7"]), of("node-1:9"));
        assert_eq!(told(Some("[::1]"), &["[::]:7"]), of("[::1]:7"));
        assert_eq!(told(Some("[::1]:9"), &["[::]:7"]), of("[::1]:9"));
        let error = told(None, &["0.0.0.0:7", "[::]:7"]).unwrap_err();
        assert!(error.contains("--peer-address"), "{error}");
    }
}
