//! Opening connections to peers.

use std::io;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::identity::{NodeIdentity, node_name};
use crate::connections::Protocol;
use crate::limits::PEER_DIAL_TIMEOUT;

/// A connection to a peer. Both sides have shown that they belong to the cluster.
pub(crate) type PeerStream = TlsStream<TcpStream>;

/// Opens a connection. If that fails, or takes too long, nothing was asked of the peer.
pub(super) async fn dial(
    identity: &NodeIdentity,
    address: &str,
    protocol: Protocol,
) -> io::Result<PeerStream> {
    let connected = async {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let name = node_name().map_err(io::Error::other)?;
        let connector = TlsConnector::from(identity.client(protocol));
        connector.connect(name, socket).await
    };
    match timeout(PEER_DIAL_TIMEOUT, connected).await {
        Ok(connected) => connected,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
