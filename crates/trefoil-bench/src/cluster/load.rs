//! Writers of many namespaces, one each, that go on whatever happens to the nodes.
//!
//! Each has one connection to a node, as if a load balancer had chosen it. When the node cannot be
//! reached, the writer goes to the next one.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::http::{parse, post_as};

/// How long a writer waits for an answer.
const PATIENCE: Duration = Duration::from_secs(40);
/// Before it tries another node.
const BEFORE_NEXT: Duration = Duration::from_millis(20);
const STACK_BYTES: usize = 256 * 1024;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Became {
    /// Acknowledged.
    Written,
    /// The node could not be connected to; a load balancer goes to the next one.
    NotConnected,
    /// Another answer than 200, or none.
    Failed,
}

/// One request, with times since the load began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) namespace: usize,
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    pub(super) became: Became,
}

/// What is written, to what.
pub(super) struct Load<'a> {
    pub(super) nodes: &'a [SocketAddr],
    pub(super) tokens: &'a [String],
    /// From the beginning of a request to that of the next one; zero: as fast as there are answers.
    pub(super) pace: Duration,
    pub(super) is_over: &'a AtomicBool,
}

impl Load<'_> {
    /// Writes until it is over, while `meanwhile` is done. Returns all requests.
    pub(super) fn run(&self, meanwhile: impl FnOnce(Instant) -> Result<()>) -> Result<Vec<Sample>> {
        let began = Instant::now();
        thread::scope(|scope| {
            let writers: Result<Vec<_>, _> = (0..self.tokens.len())
                .map(|namespace| {
                    let builder = thread::Builder::new().stack_size(STACK_BYTES);
                    builder.spawn_scoped(scope, move || self.write(namespace, began))
                })
                .collect();
            let result = meanwhile(began);
            self.is_over.store(true, Ordering::Relaxed);
            let mut samples = Vec::new();
            for writer in writers? {
                let own = writer.join().map_err(|_| anyhow!("a writer panicked"))?;
                samples.extend(own);
            }
            result.map(|()| samples)
        })
    }

    fn write(&self, namespace: usize, began: Instant) -> Vec<Sample> {
        let mut samples = Vec::new();
        let mut node = namespace;
        let mut connection = None;
        // Not all at once: the first requests are spread over one pace.
        thread::sleep(
            self.pace
                .mul_f64(namespace as f64 / self.tokens.len() as f64),
        );
        while !self.is_over.load(Ordering::Relaxed) {
            let address = self.nodes[node % self.nodes.len()];
            let begun = began.elapsed();
            let became = request(&mut connection, address, &self.tokens[namespace]);
            let ended = began.elapsed();
            samples.push(Sample {
                namespace,
                begun,
                ended,
                became,
            });
            if became == Became::Written {
                thread::sleep(self.pace.saturating_sub(ended.saturating_sub(begun)));
            } else {
                connection = None;
                node += 1;
                thread::sleep(BEFORE_NEXT);
            }
        }
        samples
    }
}

/// Sends one write and waits for its answer.
fn request(connection: &mut Option<TcpStream>, address: SocketAddr, token: &str) -> Became {
    // As every pool of connections does: one that the server has closed meanwhile is not used.
    if connection.as_ref().is_some_and(is_closed) {
        *connection = None;
    }
    let socket = match connection {
        Some(socket) => socket,
        None => match connect(address) {
            Ok(socket) => connection.insert(socket),
            Err(_) => return Became::NotConnected,
        },
    };
    let why = match exchange(socket, address, token) {
        Ok(200) => return Became::Written,
        Ok(status) => format!("status {status}"),
        Err(error) => format!("{error:#}"),
    };
    eprintln!("a request to {address} failed: {why}");
    Became::Failed
}

/// Whether the server has closed a connection on which nothing is on its way.
fn is_closed(socket: &TcpStream) -> bool {
    let peeked = socket
        .set_nonblocking(true)
        .and_then(|()| socket.peek(&mut [0]));
    let is_open = peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    !is_open || socket.set_nonblocking(false).is_err()
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Returns the status of the answer.
fn exchange(socket: &mut TcpStream, address: SocketAddr, token: &str) -> Result<u16> {
    let event = json!({"type": "Measured", "data": {"text": "x".repeat(100)}});
    let body = json!(["stream.write", "bench-1", event]).to_string();
    socket.write_all(&post_as(token, address, &body))?;
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let length = socket.read(&mut buffer)?;
        anyhow::ensure!(length > 0, "the server closed a connection");
        received.extend_from_slice(&buffer[..length]);
        if let Some(response) = parse(&received)? {
            return Ok(response.status);
        }
    }
}
