//! Many clients in one thread: each sends a request, waits for the answer, and sends the next.
//!
//! Client and server share the machine, so the client must cost little: requests are formatted
//! before, sockets do not block, and one thread waits for all of them at once.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::response::parse;
use crate::latency::Histogram;

/// When to stop sending.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// When this much time has passed; requests are repeated.
    After(Duration),
    /// When every request was sent once.
    EachOnce,
}

/// What the clients saw.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) elapsed: Duration,
    pub(crate) histogram: Histogram,
}

/// How long the clients wait for any answer before they give up.
const PATIENCE: Duration = Duration::from_secs(30);
const BUFFER_BYTES: usize = 256 * 1024;

struct Client {
    socket: TcpStream,
    received: Vec<u8>,
    sent_at: Instant,
    busy: bool,
}

impl Client {
    fn connect(address: SocketAddr, poll: &Poll, token: Token) -> Result<Self> {
        let socket = std::net::TcpStream::connect(address)
            .with_context(|| format!("cannot connect to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut socket = TcpStream::from_std(socket);
        poll.registry()
            .register(&mut socket, token, Interest::READABLE)?;
        Ok(Self {
            socket,
            received: Vec::new(),
            sent_at: Instant::now(),
            busy: false,
        })
    }

    fn send(&mut self, request: &[u8]) -> Result<()> {
        self.sent_at = Instant::now();
        self.received.clear();
        let sent = self
            .socket
            .write(request)
            .context("cannot send a request")?;
        // The socket's buffer is empty here and holds far more than one request.
        ensure!(
            sent == request.len(),
            "the socket took only a part of a request"
        );
        self.busy = true;
        Ok(())
    }

    /// Takes what has arrived; answers whether the response is complete.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool> {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => bail!("the server closed a connection"),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot read a response"),
            }
            let Some(response) = parse(&self.received)? else {
                continue;
            };
            if response.status != 200 {
                let body = String::from_utf8_lossy(response.body);
                bail!("the server answered {}: {body}", response.status);
            }
            self.busy = false;
            return Ok(true);
        }
    }
}

/// Sends one request and answers the body of the response.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let mut socket = std::net::TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(request)?;
    let (mut received, mut buffer) = (Vec::new(), vec![0; BUFFER_BYTES]);
    loop {
        let length = socket.read(&mut buffer)?;
        ensure!(length > 0, "the server closed a connection");
        received.extend_from_slice(&buffer[..length]);
        if let Some(response) = parse(&received)? {
            ensure!(
                response.status == 200,
                "the server answered {}",
                response.status
            );
            return response.content();
        }
    }
}

/// Sends requests from `clients` connections and waits for every answer.
pub(crate) fn drive(
    address: SocketAddr,
    clients: usize,
    requests: &[Vec<u8>],
    until: Until,
) -> Result<Outcome> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::with_capacity(clients);
    for index in 0..clients {
        connections.push(Client::connect(address, &poll, Token(index))?);
    }
    let mut next_request = requests.iter().cycle();
    let mut left = match until {
        Until::After(_) => u64::MAX,
        Until::EachOnce => requests.len() as u64,
    };
    let begin = Instant::now();
    let deadline = match until {
        Until::After(time) => Some(begin + time),
        Until::EachOnce => None,
    };
    let mut next = |now: Instant| {
        let go_on = left > 0 && deadline.is_none_or(|deadline| now < deadline);
        left -= u64::from(go_on);
        if go_on { next_request.next() } else { None }
    };

    for client in &mut connections {
        if let Some(request) = next(begin) {
            client.send(request)?;
        }
    }
    let mut outcome = Outcome {
        requests: 0,
        elapsed: Duration::ZERO,
        histogram: Histogram::new(),
    };
    let mut events = Events::with_capacity(clients.max(1));
    let mut buffer = vec![0; BUFFER_BYTES];
    while connections.iter().any(|client| client.busy) {
        poll.poll(&mut events, Some(PATIENCE))?;
        ensure!(
            !events.is_empty(),
            "no answer within {} seconds",
            PATIENCE.as_secs()
        );
        for event in &events {
            let client = &mut connections[event.token().0];
            if !client.receive(&mut buffer)? {
                continue;
            }
            let now = Instant::now();
            outcome.histogram.record(now - client.sent_at);
            outcome.requests += 1;
            if let Some(request) = next(now) {
                client.send(request)?;
            }
        }
    }
    outcome.elapsed = begin.elapsed();
    Ok(outcome)
}
