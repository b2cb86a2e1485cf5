//! Many subscribers that one thread reads: connections over server-sent events, or calls over gRPC.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::ValueEnum;
use futures_util::StreamExt as _;
use futures_util::stream::SelectAll;
use mio::{Events, Interest, Poll, Token};
use trefoil_grpc::{Client, Connect, Query, QueryItem, SubscribeRequest};

use crate::closed_loop::connect;

/// How long what must come is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the thread looks whether it is to end.
const TURN: Duration = Duration::from_millis(50);
const BUFFER_BYTES: usize = 64 * 1024;
/// How many calls over gRPC share a connection.
const CALLS_PER_CONNECTION: usize = 100;

/// How they subscribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Protocol {
    /// Each on a connection of its own, to `/subscribe`.
    Sse,
    /// A hundred calls on each connection.
    Grpc,
}

/// Where subscribers connect to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doors {
    pub(super) http: SocketAddr,
    pub(super) grpc: SocketAddr,
}

/// Subscribers that read all they get. They leave when this is dropped.
pub(super) struct Crowd {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
}

#[derive(Default)]
struct Shared {
    /// How many notifications have arrived at all of them.
    received: AtomicU64,
    /// How many have subscribed.
    subscribed: AtomicU64,
    is_over: AtomicBool,
}

impl Crowd {
    /// Connects as many as there are tags, each of which one follows, and waits until all of them are
    /// subscribed.
    pub(super) fn connect(
        doors: Doors,
        token: &str,
        protocol: Protocol,
        tags: Vec<String>,
    ) -> Result<Self> {
        let shared = Arc::<Shared>::default();
        let (reader, token) = (Arc::clone(&shared), token.to_owned());
        let expected = tags.len() as u64;
        let thread = std::thread::Builder::new().name("crowd".to_owned());
        let thread = thread.spawn(move || match protocol {
            Protocol::Sse => follow_sse(doors.http, &token, &tags, &reader),
            Protocol::Grpc => follow_grpc(doors.grpc, &token, &tags, &reader),
        })?;
        let crowd = Self {
            shared,
            thread: Some(thread),
        };
        let begin = Instant::now();
        while crowd.shared.subscribed.load(Ordering::SeqCst) < expected {
            if crowd.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                crowd.leave()?;
                bail!("subscribers left");
            }
            ensure!(begin.elapsed() < PATIENCE, "not everybody could subscribe");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(crowd)
    }

    /// Returns how many notifications have arrived at all of them.
    pub(super) fn received(&self) -> u64 {
        self.shared.received.load(Ordering::SeqCst)
    }

    /// Waits until so many have arrived.
    pub(super) fn wait_for(&self, received: u64) -> Result<()> {
        let begin = Instant::now();
        while self.received() < received {
            ensure!(begin.elapsed() < PATIENCE, "notifications are missing");
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Has them leave. An error if one of them was cut off.
    pub(super) fn leave(mut self) -> Result<()> {
        self.shared.is_over.store(true, Ordering::SeqCst);
        let thread = self.thread.take().context("they have left")?;
        thread.join().map_err(|_| anyhow!("a thread panicked"))?
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
    }
}

fn subscribe(address: SocketAddr, token: &str, tag: &str) -> Result<TcpStream> {
    let mut socket = connect(address)?;
    let request = format!(
        "GET /subscribe?tag={tag} HTTP/1.1\r\nhost: {address}\r\n\
         authorization: Bearer {token}\r\n\r\n"
    );
    socket.write_all(request.as_bytes())?;
    let (mut received, mut buffer) = (Vec::new(), [0; 1024]);
    while !received.windows(7).any(|window| window == b": ready") {
        let length = socket.read(&mut buffer)?;
        ensure!(length > 0, "the server refused a subscriber");
        received.extend_from_slice(&buffer[..length]);
    }
    Ok(socket)
}

fn follow_sse(address: SocketAddr, token: &str, tags: &[String], shared: &Shared) -> Result<()> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::with_capacity(tags.len());
    for (number, tag) in tags.iter().enumerate() {
        let socket = subscribe(address, token, tag);
        let socket = socket.context("cannot subscribe; is `ulimit -n` large enough?")?;
        socket.set_nonblocking(true)?;
        let mut socket = mio::net::TcpStream::from_std(socket);
        let registry = poll.registry();
        registry.register(&mut socket, Token(number), Interest::READABLE)?;
        connections.push(socket);
        shared.subscribed.fetch_add(1, Ordering::SeqCst);
    }
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; BUFFER_BYTES];
    while !shared.is_over.load(Ordering::SeqCst) {
        poll.poll(&mut events, Some(TURN))?;
        for event in &events {
            let received = drain(&mut connections[event.token().0], &mut buffer)?;
            shared.received.fetch_add(received, Ordering::SeqCst);
        }
    }
    Ok(())
}

fn follow_grpc(address: SocketAddr, token: &str, tags: &[String], shared: &Shared) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut calls = SelectAll::new();
        for tags in tags.chunks(CALLS_PER_CONNECTION) {
            let connect = Connect {
                url: format!("http://{address}"),
                token: Some(token.to_owned()),
                ..Connect::default()
            };
            let mut client = Client::connect(connect).await?;
            for tag in tags {
                let item = QueryItem {
                    tags: vec![tag.clone()],
                    ..QueryItem::default()
                };
                let request = SubscribeRequest {
                    query: Some(Query { items: vec![item] }),
                    ..SubscribeRequest::default()
                };
                calls.push(client.subscribe(request).await?);
                shared.subscribed.fetch_add(1, Ordering::SeqCst);
            }
        }
        while !shared.is_over.load(Ordering::SeqCst) {
            let Ok(next) = tokio::time::timeout(TURN, calls.next()).await else {
                continue;
            };
            let events = next.context("the server ended a subscription")??.events;
            let received = events.len() as u64;
            shared.received.fetch_add(received, Ordering::SeqCst);
        }
        Ok(())
    })
}

/// Reads what there is and returns how many notifications it has: each has one brace.
fn drain(socket: &mut mio::net::TcpStream, buffer: &mut [u8]) -> Result<u64> {
    let mut received = 0;
    loop {
        match socket.read(buffer) {
            Ok(0) => bail!("the server ended a subscription"),
            Ok(length) => {
                let braces = buffer[..length].iter().filter(|byte| **byte == b'{');
                received += braces.count() as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(received),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}
