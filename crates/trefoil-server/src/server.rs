//! The server: bound first, then run until it is told to stop.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use trefoil::{Error, Host, Namespaces, Result, ServingThread, TurnWork};

use crate::connections::{Guest, Protocol};
use crate::error::{Failure, RETRY_AFTER_SECONDS};
use crate::limits::SURPLUS_TIMEOUT;
use crate::listener::{bind_all, bind_if_free};
use crate::peers::{Door, PeerNodes};
use crate::service::Shared;
use crate::stream::ServedStream;
use crate::threads::{self, Threads};
use crate::tls::ListenerTls;
use crate::{Config, PeersConfig, connection, grpc, panics, resp};

/// A server that listens on its addresses but answers nobody before it is run.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    grpc_listeners: Vec<TcpListener>,
    grpc_threads: Threads,
    resp_listeners: Vec<TcpListener>,
    resp_threads: Threads,
    peer_listeners: Vec<TcpListener>,
    tls: Option<Arc<ListenerTls>>,
    shared: Arc<Shared>,
}

/// The runtime of the server.
#[derive(Debug)]
struct Tokio;

impl Host for Tokio {
    fn block(&self, work: &mut dyn FnMut()) {
        let runtime = Handle::try_current();
        // Where there is one connection alone, nobody else is kept.
        let must_move = runtime.is_ok_and(|runtime| {
            runtime.runtime_flavor() == RuntimeFlavor::MultiThread
                && runtime.metrics().num_alive_tasks() > 1
        });
        match must_move {
            true => tokio::task::block_in_place(work),
            false => work(),
        }
    }

    fn at_end_of_turn(&self, mut work: TurnWork) -> Option<TurnWork> {
        if !threads::is_serving() {
            return Some(work);
        }
        // The runtime goes on with a task that yields when it has run all others that were ready and
        // has asked the network for more.
        tokio::spawn(async move {
            yield_now().await;
            while work() {
                yield_now().await;
            }
        });
        None
    }

    fn serving_thread(&self) -> Option<Arc<dyn ServingThread>> {
        threads::current()
    }
}

/// How long to wait after an error of `accept`, which is mostly a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Server {
    /// Binds every address of `config`. An address that this machine does not have is skipped
    /// with a warning; a port that is taken is an error, except for gRPC and RESP where that was not
    /// asked for.
    pub async fn bind(mut config: Config, namespaces: Namespaces) -> Result<Self> {
        panics::count();
        let tls = config.tls.as_ref().map(ListenerTls::read).transpose()?;
        let listeners = bind_all(&config.listen).await?;
        let (mut grpc_listeners, mut n_grpc_threads) = (Vec::new(), 0);
        if let Some(grpc) = &config.grpc {
            n_grpc_threads = grpc.threads;
            grpc_listeners = bind_besides(&grpc.listen, grpc.required, "gRPC").await?;
        }
        let (mut resp_listeners, mut n_resp_threads) = (Vec::new(), 0);
        if let Some(resp) = &mut config.resp {
            resp_listeners = bind_besides(&resp.listen, resp.required, "RESP").await?;
            // The console says which port it is.
            resp.listen = addresses(&resp_listeners);
            n_resp_threads = resp.threads;
        }
        let (peer_listeners, peers) = match &config.peers {
            Some(config) => bind_for_peers(config, &namespaces).await?,
            None => (Vec::new(), None),
        };
        namespaces.hosted_by(Arc::new(Tokio));
        let shared = Arc::new(Shared::new(config, namespaces, peers));
        Ok(Self {
            listeners,
            grpc_listeners,
            grpc_threads: Threads::start("grpc", n_grpc_threads)?,
            resp_listeners,
            resp_threads: Threads::start("resp", n_resp_threads)?,
            peer_listeners,
            tls: tls.map(Arc::new),
            shared,
        })
    }

    /// The addresses that are bound for gRPC.
    pub fn grpc_addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.grpc_listeners)
    }

    /// The addresses that are bound for RESP.
    pub fn resp_addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.resp_listeners)
    }

    /// The addresses that are bound for other nodes.
    pub fn peer_addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.peer_listeners)
    }

    /// The addresses that are bound, with the ports that were taken for port 0.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.listeners)
    }

    /// Answers requests until `shutdown` resolves. Then namespaces are handed to other nodes, if there are
    /// any, while requests are still answered. After that subscriptions are closed, requests under
    /// way are answered, and what is not done in time is cut off. Other namespaces stay open.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
        let tracker = TaskTracker::new();
        let stop = Stop::default();
        let shared = Arc::clone(&self.shared);
        if let Some(tls) = &self.tls {
            let (renewed, drain) = (tls.follow(), stop.drain.clone());
            tracker.spawn(async move { drain.run_until_cancelled(renewed).await });
        }
        let (visiting, closing) = (Arc::clone(&shared), stop.drain.clone());
        tracker.spawn(async move {
            let expired = visiting.visits.watch_expiry(visiting.clock());
            closing.run_until_cancelled(expired).await
        });
        let accepting: Vec<_> = self
            .acceptors(&tracker, &stop)
            .map(|acceptor| tokio::spawn(acceptor.accept()))
            .collect();
        shutdown.await;
        shared.leaving.cancel();
        let drained = shared.namespaces.drain_async(shared.config.drain_timeout);
        if let Err(error) = drained.await {
            tracing::warn!(%error, "cannot hand namespaces to other nodes");
        }
        shared.closing.cancel();
        stop.drain.cancel();
        for task in accepting {
            task.await
                .map_err(|error| Error::Closed(format!("accepting connections: {error}")))?;
        }
        tracker.close();
        if tokio::time::timeout(shared.config.drain_timeout, tracker.wait())
            .await
            .is_err()
        {
            let connections = tracker.len();
            tracing::warn!(
                connections,
                "cutting off connections that did not finish in time"
            );
            stop.cut.cancel();
            tracker.wait().await;
        }
        Ok(())
    }

    fn acceptors(self, tracker: &TaskTracker, stop: &Stop) -> impl Iterator<Item = Acceptor> {
        let http = self
            .listeners
            .into_iter()
            .map(|listener| (listener, ServedProtocol::Http));
        let grpc = self.grpc_listeners.into_iter();
        let grpc_threads = Arc::new(self.grpc_threads);
        let resp_threads = Arc::new(self.resp_threads);
        let peers = { self.shared.peers.as_ref() }.map(|peers| {
            let served = PeerService {
                door: peers.door(),
                grpc: Arc::clone(&grpc_threads),
                resp: Arc::clone(&resp_threads),
            };
            ServedProtocol::Peer(Arc::new(served))
        });
        let peers = self
            .peer_listeners
            .into_iter()
            .zip(std::iter::repeat(peers));
        let peers = peers.filter_map(|(listener, protocol)| Some((listener, protocol?)));
        let grpc = grpc.map(move |listener| {
            let protocol = ServedProtocol::Grpc(Arc::clone(&grpc_threads));
            (listener, protocol)
        });
        let resp = self.resp_listeners.into_iter();
        let resp =
            resp.map(move |listener| (listener, ServedProtocol::Resp(Arc::clone(&resp_threads))));
        let all = http.chain(grpc).chain(resp).chain(peers);
        all.map(move |(listener, protocol)| Acceptor {
            listener,
            protocol,
            tls: self.tls.clone(),
            shared: Arc::clone(&self.shared),
            tracker: tracker.clone(),
            stop: stop.clone(),
        })
    }
}

fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    let listeners = listeners.iter();
    listeners
        .filter_map(|listener| listener.local_addr().ok())
        .collect()
}

/// Binds the addresses of another protocol. If one is taken that nobody asked for by name, there is
/// no such protocol.
async fn bind_besides(
    listen: &[SocketAddr],
    required: bool,
    protocol: &str,
) -> Result<Vec<TcpListener>> {
    match bind_if_free(listen).await? {
        Ok(listeners) => Ok(listeners),
        Err(error) if required => Err(error),
        Err(error) => {
            let flag = format!("--{}-port", protocol.to_lowercase());
            tracing::warn!(%error, "going on without {protocol}: choose a port with {flag}");
            Ok(Vec::new())
        }
    }
}

/// Binds the addresses for other nodes and tells them, if there may be others.
async fn bind_for_peers(
    config: &PeersConfig,
    namespaces: &Namespaces,
) -> Result<(Vec<TcpListener>, Option<PeerNodes>)> {
    let listeners = bind_all(&config.listen).await?;
    let peers = PeerNodes::join(config, &addresses(&listeners), namespaces).await?;
    match peers.is_some() {
        true => Ok((listeners, peers)),
        false => Ok((Vec::new(), None)),
    }
}

/// What is spoken on a connection.
#[derive(Clone)]
enum ServedProtocol {
    Http,
    Grpc(Arc<Threads>),
    Resp(Arc<Threads>),
    /// Whatever a peer chooses.
    Peer(Arc<PeerService>),
}

/// What connections of peers need.
struct PeerService {
    door: Door,
    grpc: Arc<Threads>,
    resp: Arc<Threads>,
}

/// How connections are told to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// Finish what is under way.
    pub(crate) drain: CancellationToken,
    /// Finish nothing.
    pub(crate) cut: CancellationToken,
}

/// A listener and what its connections need.
struct Acceptor {
    listener: TcpListener,
    protocol: ServedProtocol,
    tls: Option<Arc<ListenerTls>>,
    shared: Arc<Shared>,
    tracker: TaskTracker,
    stop: Stop,
}

impl Acceptor {
    /// Accepts connections until the server stops.
    async fn accept(self) {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = self.stop.drain.cancelled() => return,
            };
            match accepted {
                Ok((socket, _)) => self.spawn(socket),
                // A client that gave up before it was accepted.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection: by all threads together, or by one if the protocol has threads of its
    /// own.
    fn spawn(&self, socket: TcpStream) {
        let (protocol, thread) = match &self.protocol {
            ServedProtocol::Http => (Protocol::Http, None),
            ServedProtocol::Grpc(threads) => (Protocol::Grpc, threads.next()),
            ServedProtocol::Resp(threads) => (Protocol::Resp, threads.next()),
            ServedProtocol::Peer(service) => return self.spawn_peer(socket, service),
        };
        let guest = self.shared.connections.enter(protocol);
        let address = socket.peer_addr().ok();
        let visit = AcceptedConnection {
            shared: Arc::clone(&self.shared),
            guest: guest.map(|guest| guest.at_address(address)),
            protocol,
            threads: self.protocol.clone(),
            tls: self.tls.clone(),
            stop: self.stop.clone(),
        };
        let Some(thread) = thread else {
            self.tracker.spawn(visit.serve(socket));
            return;
        };
        let moved = async move {
            match socket.into_std().and_then(TcpStream::from_std) {
                Ok(socket) => visit.serve(socket).await,
                Err(error) => tracing::warn!(%error, "cannot serve a connection"),
            }
        };
        self.tracker.spawn_on(moved, thread);
    }
}

impl Acceptor {
    /// Serves a connection of a peer, once it has shown that it is one, where connections of its protocol
    /// are served.
    fn spawn_peer(&self, socket: TcpStream, service: &Arc<PeerService>) {
        let (service, tracker) = (Arc::clone(service), self.tracker.clone());
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
        self.tracker.spawn(async move {
            let Some((protocol, stream)) = service.door.admit(socket, &stop).await else {
                return;
            };
            let Some(guest) = shared.connections.enter_peer(protocol) else {
                return;
            };
            let thread = match protocol {
                Protocol::Http => None,
                Protocol::Grpc => service.grpc.next().cloned(),
                Protocol::Resp => service.resp.next().cloned(),
            };
            let served = async move {
                // The threads are there for as long as the connection is.
                let _threads = service;
                serve(protocol, stream, &shared, &Arc::new(guest), stop).await;
            };
            match thread {
                Some(thread) => tracker.spawn_on(served, &thread),
                None => tracker.spawn(served),
            };
        });
    }
}

/// A connection that was accepted.
struct AcceptedConnection {
    shared: Arc<Shared>,
    /// `None` if there are too many.
    guest: Option<Guest>,
    protocol: Protocol,
    /// Those that serve it, which are there for as long as it is.
    threads: ServedProtocol,
    tls: Option<Arc<ListenerTls>>,
    stop: Stop,
}

impl AcceptedConnection {
    /// Serves the connection until it ends, or has to make room for another one.
    async fn serve(self, socket: TcpStream) {
        let Self {
            shared,
            guest,
            protocol,
            threads: _threads,
            tls,
            stop,
        } = self;
        let Some(guest) = guest.map(Arc::new) else {
            // Who speaks TLS would not understand why.
            if tls.is_none() {
                turn_away(socket, protocol, &shared).await;
            }
            return;
        };
        let stream = match tls {
            None => ServedStream::plain(socket),
            Some(tls) => {
                let tls = tls.of(protocol);
                let secured = ServedStream::secure(socket, tls, (&shared, &guest, &stop));
                match Box::pin(secured).await {
                    Some(stream) => stream,
                    None => return,
                }
            }
        };
        serve(protocol, stream, &shared, &guest, stop).await;
    }
}

/// Serves a stream until it ends, or has to make room for another one.
async fn serve(
    protocol: Protocol,
    stream: ServedStream,
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    stop: Stop,
) {
    match protocol {
        // Boxed, so that a connection of one protocol takes no memory for the others.
        Protocol::Http => {
            let served = Box::pin(connection::serve(stream, shared, guest, stop));
            until_it_must_leave(guest, served).await;
        }
        // They look themselves whether they must leave: one thing less to look at with each request.
        Protocol::Grpc => Box::pin(grpc::serve(stream, shared, guest, stop)).await,
        Protocol::Resp => resp::serve(stream, shared, guest, stop).await,
    }
}

/// Serves a connection until it ends, or has to make room for another one.
async fn until_it_must_leave(guest: &Guest, served: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = served => {}
        () = guest.must_leave.cancelled() => {}
        () = tokio::time::sleep(SURPLUS_TIMEOUT), if guest.is_surplus => {}
    }
}

async fn turn_away(socket: TcpStream, protocol: Protocol, shared: &Shared) {
    match protocol {
        Protocol::Http => refuse(socket, shared.connections.max()).await,
        // A client that is hung up on tries again later.
        Protocol::Grpc => {}
        Protocol::Resp => resp::refuse(socket, shared).await,
    }
}

/// Tells a client that there are too many, whatever it was about to ask.
async fn refuse(mut socket: TcpStream, connections_max: usize) {
    let message = format!("overloaded: the server takes {connections_max} connections at once");
    let body = Failure::overloaded(message).to_json();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nretry-after: {RETRY_AFTER_SECONDS}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // A client that has gone needs no answer.
    let _ = socket.write_all(&[head.as_bytes(), &body].concat()).await;
    let _ = socket.shutdown().await;
}
