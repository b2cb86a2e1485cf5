//! What can be chosen when a server is started.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::threads::default_threads;
use crate::{ArchiveProgress, Tls, Web, limits, memory};

/// How the server listens and behaves. The defaults listen on this machine only.
#[derive(Debug, Clone)]
pub struct Config {
    /// The addresses to listen on; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Whether secrets go unchecked and namespaces appear when they are first used.
    pub test_mode: bool,
    /// The most connections at once. Each protocol has a part of them to itself, and connections
    /// that have not authenticated make room for new ones.
    pub connections_max: usize,
    /// The most bytes of memory that are held for clients: requests that are being read, and replies
    /// that are being made or not yet taken.
    pub client_memory_max: usize,
    /// Requests that take at least this long are slow: the log says so, and so does `SLOWLOG`. `None`:
    /// none is.
    pub slow_after: Option<Duration>,
    /// How often a silent subscription sends a comment to say that it is alive.
    pub keep_alive: Duration,
    /// How long the head of a request may take to arrive, and how long a client may take to
    /// authenticate.
    pub head_timeout: Duration,
    /// How long the sender of a request body may be silent.
    pub body_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// How long requests under way may take to finish at shutdown.
    pub drain_timeout: Duration,
    /// Which web pages may use the server.
    pub web: Web,
    /// The certificate of all listeners; without one, connections are not encrypted.
    pub tls: Option<Tls>,
    /// The gRPC listener; `None`: there is none.
    pub grpc: Option<GrpcConfig>,
    /// The RESP listener; `None`: there is none.
    pub resp: Option<RespConfig>,
    /// The listener for the other nodes that share the home; `None`: there is none. It is not needed
    /// where nobody shares the home.
    pub peers: Option<PeersConfig>,
    /// How far the continuous archive is, if there is one.
    pub archive: Option<Arc<ArchiveProgress>>,
    /// How the server was started, for the administrator to see.
    pub settings: Vec<ShownSetting>,
}

/// A setting as it is shown: what it is and where that came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSetting {
    /// Its name.
    pub name: String,
    /// Its value; `None` if it has none, or if it is a secret.
    pub value: Option<String>,
    /// Where the value came from.
    pub source: String,
    /// Whether its value is never shown.
    pub is_secret: bool,
}

/// How the server listens for RESP. The defaults listen on this machine only.
#[derive(Debug, Clone)]
pub struct RespConfig {
    /// The addresses to listen on; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Whether the server must not start if one of the addresses is taken. Otherwise it says so
    /// and goes on without RESP.
    pub required: bool,
    /// Whether a client that does not authenticate may use the default namespace.
    pub anonymous: bool,
    /// How long a client may take nothing of the replies that are sent to it.
    pub reply_timeout: Duration,
    /// How many threads serve the connections; each connection stays with one.
    pub threads: usize,
}

/// How the server listens for other nodes. The defaults listen on this machine only.
#[derive(Debug, Clone)]
pub struct PeersConfig {
    /// The addresses to listen on; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// What other nodes are told: a name or an IP address, with a port or without. `None`: the first
    /// address that is listened on.
    pub address: Option<String>,
}

/// How the server listens for gRPC. The defaults listen on this machine only.
#[derive(Debug, Clone)]
pub struct GrpcConfig {
    /// The addresses to listen on; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Whether the server must not start if one of the addresses is taken. Otherwise it says so
    /// and goes on without gRPC.
    pub required: bool,
    /// Whether a client without a token may use the default namespace.
    pub anonymous: bool,
    /// How many threads serve the connections; each connection stays with one.
    pub threads: usize,
}

/// The port of UmaDB.
const GRPC_PORT: u16 = 50051;

impl Default for GrpcConfig {
    fn default() -> Self {
        Self {
            listen: vec![
                (Ipv4Addr::LOCALHOST, GRPC_PORT).into(),
                (Ipv6Addr::LOCALHOST, GRPC_PORT).into(),
            ],
            required: false,
            anonymous: false,
            threads: default_threads(),
        }
    }
}

/// The port of Kvrocks.
const RESP_PORT: u16 = 6666;

impl Default for RespConfig {
    fn default() -> Self {
        Self {
            listen: vec![
                (Ipv4Addr::LOCALHOST, RESP_PORT).into(),
                (Ipv6Addr::LOCALHOST, RESP_PORT).into(),
            ],
            required: false,
            anonymous: false,
            reply_timeout: limits::RESP_REPLY_TIMEOUT,
            threads: default_threads(),
        }
    }
}

impl Default for PeersConfig {
    fn default() -> Self {
        Self {
            listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
            address: None,
        }
    }
}

/// The port of EventoDB.
const PORT: u16 = 8080;

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![
                (Ipv4Addr::LOCALHOST, PORT).into(),
                (Ipv6Addr::LOCALHOST, PORT).into(),
            ],
            test_mode: false,
            connections_max: limits::CONNECTIONS_DEFAULT,
            client_memory_max: memory::client_memory_default(),
            slow_after: Some(limits::SLOW_AFTER_DEFAULT),
            keep_alive: limits::KEEP_ALIVE_DEFAULT,
            head_timeout: limits::HEAD_TIMEOUT,
            body_timeout: limits::BODY_TIMEOUT,
            idle_timeout: limits::IDLE_TIMEOUT,
            drain_timeout: limits::DRAIN_TIMEOUT,
            web: Web::default(),
            tls: None,
            grpc: Some(GrpcConfig::default()),
            resp: Some(RespConfig::default()),
            peers: None,
            archive: None,
            settings: Vec::new(),
        }
    }
}
