//! The door between nodes: a listener of its own, where only nodes of the same cluster are let in. What
//! is spoken afterwards is agreed upon in the handshake.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::identity::{NodeIdentity, protocol_of};
use crate::connections::Protocol;
use crate::limits::{PEER_HANDSHAKE_TIMEOUT, PEER_HANDSHAKES_MAX};
use crate::server::Stop;
use crate::stream::ServedStream;

/// Lets peers in, and nobody else.
pub(crate) struct Door {
    tls: TlsAcceptor,
    strangers: Arc<Mutex<Strangers>>,
}

/// Connections that have not shown who they are.
#[derive(Default)]
struct Strangers {
    n_seen: u64,
    /// The oldest first.
    waiting: BTreeMap<u64, CancellationToken>,
}

/// A connection that has not shown who it is, for as long as this lives.
struct Stranger {
    strangers: Arc<Mutex<Strangers>>,
    id: u64,
    /// Cancelled when it has to make room for another one.
    must_leave: CancellationToken,
}

impl Door {
    pub(super) fn new(identity: &NodeIdentity) -> Self {
        Self {
            tls: TlsAcceptor::from(Arc::clone(&identity.server)),
            strangers: Arc::default(),
        }
    }

    /// Waits until a connection has shown that it is a peer's. Returns what is spoken on it; `None` if it
    /// is nobody's who may come in.
    pub(crate) async fn admit(
        &self,
        socket: TcpStream,
        stop: &Stop,
    ) -> Option<(Protocol, ServedStream)> {
        let stranger = self.enter();
        let address = socket.peer_addr();
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let shaken = tokio::select! {
            shaken = self.tls.accept(socket) => shaken,
            () = sleep(PEER_HANDSHAKE_TIMEOUT) => return None,
            () = stranger.must_leave.cancelled() => return None,
            () = stop.drain.cancelled() => return None,
        };
        match shaken {
            Ok(stream) => {
                let protocol = protocol_of(stream.get_ref().1.alpn_protocol())?;
                Some((protocol, ServedStream::Secure(Box::new(stream))))
            }
            Err(error) => {
                let address = address.map_or_else(|_| String::new(), |address| address.to_string());
                tracing::debug!(%error, address, "somebody at the door of the nodes is no peer");
                None
            }
        }
    }

    /// Makes room for a connection: a handshake of a peer is short, so the oldest is none of a peer.
    fn enter(&self) -> Stranger {
        let must_leave = CancellationToken::new();
        let mut strangers = self.strangers.lock();
        if strangers.waiting.len() >= PEER_HANDSHAKES_MAX
            && let Some((_, oldest)) = strangers.waiting.pop_first()
        {
            oldest.cancel();
        }
        strangers.n_seen += 1;
        let id = strangers.n_seen;
        strangers.waiting.insert(id, must_leave.clone());
        Stranger {
            strangers: Arc::clone(&self.strangers),
            id,
            must_leave,
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.strangers.lock().waiting.remove(&self.id);
    }
}
