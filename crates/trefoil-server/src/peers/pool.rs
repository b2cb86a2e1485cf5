//! HTTP connections to peers, which are kept and shared by many requests.
//!
//! They speak HTTP/2: a peer that stops says which requests it has not looked at, so these can be sent to
//! another one. Each request has a window of its own, so one whose client does not read delays no other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{FutureExt as _, Shared};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use trefoil::Clock;

use super::body::SentBody;
use super::dial::{PeerStream, dial};
use super::identity::NodeIdentity;
use crate::connections::Protocol;
use crate::limits::{
    PEER_CONNECTION_IDLE, PEER_CONNECTION_REQUESTS_MAX, PEER_CONNECTION_WINDOW_BYTES,
    PEER_CONNECTIONS_MAX, PEER_PING_INTERVAL, PEER_PING_TIMEOUT, PEER_WINDOW_BYTES,
};

/// The connections to all peers.
#[derive(Debug)]
pub(super) struct HttpPool {
    identity: Arc<NodeIdentity>,
    clock: Clock,
    peers: Mutex<HashMap<Arc<str>, Arc<PeerConnections>>>,
}

/// The connections to one peer.
#[derive(Debug)]
struct PeerConnections {
    address: Arc<str>,
    state: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    open: Vec<PooledConnection>,
    /// Another one that is being opened, for all who wait for it.
    dialling: Option<Dialling>,
}

/// Returns why it failed, if it did.
type Dialling = Shared<oneshot::Receiver<Option<Arc<str>>>>;

#[derive(Debug)]
struct PooledConnection {
    sender: SendRequest<SentBody>,
    n_requests: Arc<AtomicUsize>,
    /// When it was used last, by the steady clock.
    used: Duration,
}

/// A connection to a peer, for one request and its answer.
#[derive(Debug)]
pub(super) struct LentConnection {
    pub(super) sender: SendRequest<SentBody>,
    n_requests: Arc<AtomicUsize>,
}

impl Drop for LentConnection {
    fn drop(&mut self) {
        self.n_requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why there is no connection. Nothing was asked of the peer.
#[derive(Debug)]
pub(super) enum NoConnection {
    /// It cannot be reached.
    Unreachable(Arc<str>),
    /// There are as many requests to it as there may be.
    Full,
}

impl HttpPool {
    pub(super) fn new(identity: Arc<NodeIdentity>, clock: Clock) -> Self {
        Self {
            identity,
            clock,
            peers: Mutex::default(),
        }
    }

    /// Returns a connection to the peer at this address, which is opened if there is none.
    pub(super) async fn lend(&self, address: &str) -> Result<LentConnection, NoConnection> {
        let peer = self.peer(address);
        loop {
            let dialling = {
                let mut state = peer.state.lock();
                if let Some(lent) = state.lend(self.clock.steady()) {
                    return Ok(lent);
                }
                if state.open.len() >= PEER_CONNECTIONS_MAX {
                    return Err(NoConnection::Full);
                }
                let begin = || self.begin_to_dial(&peer);
                state.dialling.get_or_insert_with(begin).clone()
            };
            match dialling.await {
                Ok(None) => {}
                Ok(Some(error)) => return Err(NoConnection::Unreachable(error)),
                Err(_) => {
                    let text = "the server is being stopped";
                    return Err(NoConnection::Unreachable(text.into()));
                }
            }
        }
    }

    fn peer(&self, address: &str) -> Arc<PeerConnections> {
        let mut peers = self.peers.lock();
        if let Some(peer) = peers.get(address) {
            return Arc::clone(peer);
        }
        // A node that was started again has another address: those that nobody uses are dropped.
        let now = self.clock.steady();
        peers.retain(|_, peer| !peer.is_unused(now));
        let address: Arc<str> = address.into();
        let peer = Arc::new(PeerConnections {
            address: Arc::clone(&address),
            state: Mutex::default(),
        });
        peers.insert(address, Arc::clone(&peer));
        peer
    }

    /// Opens one more connection. It goes on when those who asked have gone.
    fn begin_to_dial(&self, peer: &Arc<PeerConnections>) -> Dialling {
        let (reply, dialled) = oneshot::channel();
        let (peer, identity) = (Arc::clone(peer), Arc::clone(&self.identity));
        let clock = self.clock.clone();
        tokio::spawn(async move {
            let opened = open(&identity, &peer.address).await;
            let mut state = peer.state.lock();
            state.dialling = None;
            let error = match opened {
                Ok(sender) => {
                    state.open.push(PooledConnection {
                        sender,
                        n_requests: Arc::default(),
                        used: clock.steady(),
                    });
                    None
                }
                Err(error) => Some(error.to_string().into()),
            };
            drop(state);
            // Nobody may wait for it any more.
            let _ = reply.send(error);
        });
        dialled.shared()
    }
}

impl PeerConnections {
    fn is_unused(&self, now: Duration) -> bool {
        let mut state = self.state.lock();
        state.drop_unused(now);
        state.open.is_empty() && state.dialling.is_none()
    }
}

impl OpenConnections {
    /// Drops connections that have ended, or that nobody has used for a while.
    fn drop_unused(&mut self, now: Duration) {
        self.open.retain(|connection| {
            let is_used = connection.n_requests.load(Ordering::Relaxed) > 0;
            let is_recent = now.saturating_sub(connection.used) < PEER_CONNECTION_IDLE;
            !connection.sender.is_closed() && (is_used || is_recent)
        });
    }

    fn lend(&mut self, now: Duration) -> Option<LentConnection> {
        self.drop_unused(now);
        let has_room = |connection: &&mut PooledConnection| {
            connection.n_requests.load(Ordering::Relaxed) < PEER_CONNECTION_REQUESTS_MAX
        };
        let found = self.open.iter_mut().find(has_room)?;
        found.used = now;
        found.n_requests.fetch_add(1, Ordering::Relaxed);
        Some(LentConnection {
            sender: found.sender.clone(),
            n_requests: Arc::clone(&found.n_requests),
        })
    }
}

/// Opens a connection and serves it in the background.
async fn open(
    identity: &NodeIdentity,
    address: &str,
) -> Result<SendRequest<SentBody>, Box<dyn std::error::Error + Send + Sync>> {
    let stream: PeerStream = dial(identity, address, Protocol::Http).await?;
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(PEER_WINDOW_BYTES)
        .initial_connection_window_size(PEER_CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(PEER_PING_INTERVAL)
        .keep_alive_timeout(PEER_PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a peer ended");
        }
    });
    Ok(sender)
}
