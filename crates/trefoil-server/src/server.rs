//! The server: bound first, then run until it is told to stop.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use trefoil::{Error, Namespaces, Result};

use crate::Config;
use crate::connection;
use crate::error::{Failure, RETRY_AFTER_SECONDS};
use crate::listener::bind_all;
use crate::service::Shared;

/// A server that listens on its addresses but answers nobody before it is run.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    shared: Arc<Shared>,
}

/// How long to wait after an error of `accept`, which is mostly a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Server {
    /// Binds every address of `config`. An address that this machine does not have is skipped
    /// with a warning; a port that is taken is an error.
    pub async fn bind(config: Config, namespaces: Namespaces) -> Result<Self> {
        let listeners = bind_all(&config.listen).await?;
        let shared = Arc::new(Shared::new(config, namespaces));
        Ok(Self { listeners, shared })
    }

    /// The addresses that are bound, with the ports that were taken for port 0.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.listeners
            .iter()
            .filter_map(|listener| listener.local_addr().ok())
            .collect()
    }

    /// Answers requests until `shutdown` resolves. Then subscriptions are closed, requests under
    /// way are answered, and what is not done in time is cut off. The namespaces stay open.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
        let Self { listeners, shared } = self;
        let tracker = TaskTracker::new();
        let stop = Stop::default();
        let accepting: Vec<_> = listeners
            .into_iter()
            .map(|listener| accept(listener, Arc::clone(&shared), tracker.clone(), stop.clone()))
            .map(tokio::spawn)
            .collect();
        shutdown.await;
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
}

/// How connections are told to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// Finish what is under way.
    pub(crate) drain: CancellationToken,
    /// Finish nothing.
    pub(crate) cut: CancellationToken,
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, tracker: TaskTracker, stop: Stop) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.drain.cancelled() => return,
        };
        match accepted {
            Ok((socket, _)) => {
                let counted = Counted::new(Arc::clone(&shared));
                tracker.spawn(serve(socket, counted, stop.clone()));
            }
            // A client that gave up before it was accepted.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(socket: TcpStream, counted: Counted, stop: Stop) {
    let connections_max = counted.shared.config.connections_max;
    if counted.count > connections_max {
        return refuse(socket, connections_max).await;
    }
    connection::serve(socket, &counted.shared, stop).await;
}

/// One more open connection, for as long as this lives.
struct Counted {
    shared: Arc<Shared>,
    /// How many there are with this one.
    count: usize,
}

impl Counted {
    fn new(shared: Arc<Shared>) -> Self {
        let count = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        Self { shared, count }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
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
