//! HTTP/2 connections to the nodes that calls are sent on to. Calls to a node share them: one is opened
//! when those that are there are full.
//!
//! A node that is silent while it is asked for something is asked whether it is there. If it does not
//! answer, its calls have ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason};
use hyper::Request;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tonic::Status;

use super::super::status::{elsewhere, of_failure};
use crate::connections::Protocol;
use crate::error::Failure;
use crate::limits::{
    GRPC_FRAME_BYTES_MAX, GRPC_PEER_CALLS_MAX, HTTP2_HEAD_BYTES_MAX, PEER_CONNECTION_IDLE,
    PEER_CONNECTIONS_MAX, PEER_DIAL_TIMEOUT, PEER_PING_INTERVAL, PEER_PING_TIMEOUT,
    PEER_WINDOW_BYTES,
};
use crate::peers::{PeerNodes, PeerStream};

/// How many connections are tried that turn out to have ended.
const ATTEMPTS: usize = 4;

/// Why another node did not answer a call as it should.
#[derive(Debug)]
pub(super) enum PeerFailure {
    /// It was certainly not carried out there: perhaps the namespace is elsewhere.
    Elsewhere(Box<Status>),
    /// Nobody knows whether it was, or how it went on.
    Lost(String),
    /// It was answered with this.
    Answered(Box<Status>),
}

impl PeerFailure {
    /// Nothing could be asked of the node.
    fn not_sent(why: &dyn std::fmt::Display) -> Self {
        Self::Elsewhere(elsewhere(&format!(
            "the node that has the namespace cannot be reached: {why}"
        )))
    }
}

impl From<h2::Error> for PeerFailure {
    /// What became of a call that ended with this error after it was sent.
    fn from(error: h2::Error) -> Self {
        // The node says itself that it has not begun: it refuses the call, or stops after those before it.
        let is_refused = error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM);
        match is_refused && error.is_remote() {
            true => Self::not_sent(&error),
            false => Self::Lost(error.to_string()),
        }
    }
}

/// The connections to all nodes, by address.
#[derive(Debug, Default)]
pub(crate) struct GrpcPeers {
    nodes: Mutex<HashMap<Arc<str>, Arc<GrpcPeer>>>,
}

/// The connections to one node.
#[derive(Debug, Default)]
struct GrpcPeer {
    open: Mutex<Vec<PeerConnection>>,
    /// Held by who opens one more, so that one is opened for all who wait.
    dialling: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct PeerConnection {
    requests: SendRequest<Bytes>,
    /// How many calls are under way.
    calls: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

/// A place among the calls of a connection, for as long as this lives.
#[derive(Debug)]
pub(super) struct CallPlace(Arc<AtomicUsize>);

impl Drop for CallPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl GrpcPeers {
    /// Sends a call to the node at this address.
    pub(super) async fn send(
        &self,
        peers: &PeerNodes,
        address: &Arc<str>,
        request: Request<()>,
        body: Bytes,
    ) -> Result<(ResponseFuture, CallPlace), PeerFailure> {
        let (mut requests, place) = self.ready(peers, address).await?;
        let begun = requests.send_request(request, false);
        let (response, mut stream) = begun.map_err(|error| PeerFailure::not_sent(&error))?;
        stream.send_data(body, true)?;
        Ok((response, place))
    }

    /// Returns a connection that takes a call. One that has ended since it was used last is not used
    /// again, and another one is opened.
    async fn ready(
        &self,
        peers: &PeerNodes,
        address: &Arc<str>,
    ) -> Result<(SendRequest<Bytes>, CallPlace), PeerFailure> {
        let node = self.node(address);
        for _ in 0..ATTEMPTS {
            let (connection, place) = node.connection(peers, address).await?;
            if let Ok(requests) = connection.requests.ready().await {
                return Ok((requests, place));
            }
            connection.is_over.store(true, Ordering::Relaxed);
        }
        Err(PeerFailure::not_sent(&"it ends its connections"))
    }

    fn node(&self, address: &Arc<str>) -> Arc<GrpcPeer> {
        let mut nodes = self.nodes.lock();
        if let Some(node) = nodes.get(address) {
            return Arc::clone(node);
        }
        nodes.retain(|_, node| node.is_used());
        Arc::clone(nodes.entry(Arc::clone(address)).or_default())
    }
}

impl GrpcPeer {
    fn is_used(self: &Arc<Self>) -> bool {
        let mut open = self.open.lock();
        open.retain(|connection| !connection.is_over.load(Ordering::Relaxed));
        !open.is_empty() || Arc::strong_count(self) > 1
    }

    /// Returns a connection that has room for one more call.
    async fn connection(
        &self,
        peers: &PeerNodes,
        address: &str,
    ) -> Result<(PeerConnection, CallPlace), PeerFailure> {
        if let Some(found) = self.free()? {
            return Ok(found);
        }
        let _turn = self.dialling.lock().await;
        if let Some(found) = self.free()? {
            return Ok(found);
        }
        let not_sent = PeerFailure::not_sent;
        let dialled = peers.dial(address, Protocol::Grpc).await;
        let stream = dialled.map_err(|error| not_sent(&error))?;
        let shaken = timeout(PEER_DIAL_TIMEOUT, builder().handshake::<_, Bytes>(stream)).await;
        let shaken = shaken.map_err(|_| not_sent(&"the node does not answer"))?;
        let (requests, http2) = shaken.map_err(|error| not_sent(&error))?;
        let connection = PeerConnection {
            requests,
            calls: Arc::default(),
            is_over: Arc::default(),
        };
        tokio::spawn(drive(http2, connection.clone()));
        let place = connection.place();
        self.open.lock().push(connection.clone());
        Ok((connection, place))
    }

    fn free(&self) -> Result<Option<(PeerConnection, CallPlace)>, PeerFailure> {
        let mut open = self.open.lock();
        open.retain(|connection| !connection.is_over.load(Ordering::Relaxed));
        let free = open
            .iter()
            .find(|connection| connection.calls.load(Ordering::Relaxed) < GRPC_PEER_CALLS_MAX);
        match free {
            Some(connection) => Ok(Some((connection.clone(), connection.place()))),
            None if open.len() >= PEER_CONNECTIONS_MAX => {
                let calls_max = PEER_CONNECTIONS_MAX * GRPC_PEER_CALLS_MAX;
                Err(PeerFailure::Answered(of_failure(Failure::overloaded(
                    format!("overloaded: {calls_max} calls to another node are under way"),
                ))))
            }
            None => Ok(None),
        }
    }
}

impl PeerConnection {
    fn place(&self) -> CallPlace {
        self.calls.fetch_add(1, Ordering::Relaxed);
        CallPlace(Arc::clone(&self.calls))
    }
}

/// Runs a connection until it ends, or is not used for a while, or the node is not there any more.
async fn drive(mut http2: Connection<PeerStream>, connection: PeerConnection) {
    let pings = http2.ping_pong();
    let PeerConnection {
        requests,
        calls,
        is_over,
    } = connection;
    // It would keep the connection open.
    drop(requests);
    tokio::select! {
        ended = http2 => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection to another node ended");
            }
        }
        () = until_not_needed(pings, &calls, &is_over) => {}
    }
    is_over.store(true, Ordering::Relaxed);
}

/// Waits until the node does not answer while it has calls, or has had none for a while. A call may
/// have chosen the connection just before it was over, so that is not the end yet.
async fn until_not_needed(pings: Option<PingPong>, calls: &AtomicUsize, is_over: &AtomicBool) {
    let Some(mut pings) = pings else {
        return std::future::pending().await;
    };
    let mut idle = Duration::ZERO;
    while idle <= PEER_CONNECTION_IDLE {
        if idle + PEER_PING_INTERVAL > PEER_CONNECTION_IDLE {
            is_over.store(true, Ordering::Relaxed);
        }
        sleep(PEER_PING_INTERVAL).await;
        if calls.load(Ordering::Relaxed) == 0 {
            idle += PEER_PING_INTERVAL;
            continue;
        }
        idle = Duration::ZERO;
        let asked = timeout(PEER_PING_TIMEOUT, pings.ping(Ping::opaque()));
        if !matches!(asked.await, Ok(Ok(_))) {
            tracing::debug!("another node does not answer");
            return;
        }
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    let calls_max = u32::try_from(GRPC_PEER_CALLS_MAX).unwrap_or(u32::MAX);
    builder
        .initial_window_size(PEER_WINDOW_BYTES)
        // A client that does not take its answers keeps nobody from theirs.
        .initial_connection_window_size(PEER_WINDOW_BYTES.saturating_mul(calls_max + 1))
        .max_frame_size(GRPC_FRAME_BYTES_MAX)
        .max_header_list_size(HTTP2_HEAD_BYTES_MAX)
        .enable_push(false);
    builder
}
