//! Clients of the RPC endpoint: they send requests that were formatted before.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::response::parse;
use super::server::Server;
use crate::closed_loop::{ALL_DAY, Client, Clients, Progress, connect};
use crate::outcome::Outcome;

const BUFFER_BYTES: usize = 256 * 1024;

/// When to stop sending.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// When this much time has passed; requests are repeated.
    After(Duration),
    /// When every request was sent once.
    EachOnce,
}

/// A response that is on its way.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    received: Vec<u8>,
    is_complete: bool,
}

impl Incoming {
    /// Takes bytes that have arrived; returns whether the response is complete. One that is not
    /// good is an error.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        if std::mem::take(&mut self.is_complete) {
            self.received.clear();
        }
        self.received.extend_from_slice(bytes);
        let Some(response) = parse(&self.received)? else {
            return Ok(false);
        };
        if response.status != 200 {
            let body = String::from_utf8_lossy(response.body);
            bail!("the server answered {}: {body}", response.status);
        }
        self.is_complete = true;
        Ok(true)
    }

    /// Whether the response has these bytes in it.
    pub(crate) fn contains(&self, bytes: &[u8]) -> bool {
        self.received
            .windows(bytes.len())
            .any(|window| window == bytes)
    }
}

/// Sends every so-manieth of the requests, from the first one of its own on.
struct Requester<'a> {
    requests: &'a [Vec<u8>],
    next: usize,
    step: usize,
    is_endless: bool,
    incoming: Incoming,
}

impl Client for Requester<'_> {
    fn request(&mut self) -> Option<&[u8]> {
        let length = self.requests.len();
        let place = self.next;
        self.next += self.step;
        let place = if self.is_endless {
            place % length
        } else {
            place
        };
        self.requests.get(place).map(Vec::as_slice)
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Progress> {
        Ok(match self.incoming.take(bytes)? {
            true => Progress::Done(1),
            false => Progress::Waiting,
        })
    }
}

/// Sends one request and returns the body of the response.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let mut socket = connect(address)?;
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

/// Asks for what anybody may see and returns it.
pub(crate) fn get(address: SocketAddr, path: &str) -> Result<Vec<u8>> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    ask(address, request.as_bytes())
}

/// Sends requests from `clients` connections and waits for every answer.
pub(crate) fn drive(
    server: &Server,
    clients: usize,
    requests: &[Vec<u8>],
    until: Until,
) -> Result<Outcome> {
    let (time, is_endless) = match until {
        Until::After(time) => (time, true),
        Until::EachOnce => (ALL_DAY, false),
    };
    let mut connected = Vec::with_capacity(clients);
    for next in 0..clients {
        let requester = Requester {
            requests,
            next,
            step: clients,
            is_endless,
            incoming: Incoming::default(),
        };
        connected.push((connect(server.address)?, requester));
    }
    Clients::new(connected)?.run(time, || server.running.usage())
}
