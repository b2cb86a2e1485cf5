//! Clients in a closed loop: each sends its next request when the last one was answered.
//!
//! Clients and server share the machine, so the clients must cost little: few threads drive many
//! connections each, sockets do not block, and a thread waits for all of its sockets at once.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use mio::{Events, Interest, Poll, Token};

use crate::outcome::Outcome;
use crate::usage::{Usage, own_cpu};

/// How long the clients wait for any answer before they give up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Long enough for whatever is done once.
pub(crate) const ALL_DAY: Duration = Duration::from_secs(24 * 60 * 60);
const BUFFER_BYTES: usize = 256 * 1024;
/// How many cores have one thread that drives clients: the server needs the others.
const CORES_PER_THREAD: usize = 4;

/// What one client does.
pub(crate) trait Client: Send {
    /// The bytes to send next; `None` if there is nothing more to do.
    fn request(&mut self) -> Option<&[u8]>;

    /// Takes bytes that have arrived. An answer that must not be is an error.
    fn receive(&mut self, bytes: &[u8]) -> Result<Progress>;

    /// How many requests were sent at once.
    fn pipeline(&self) -> u64 {
        1
    }
}

/// How far the answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More bytes must come.
    Waiting,
    /// The answer is there, but what is measured needs another request.
    Again,
    /// So many operations are done.
    Done(u64),
}

/// Connects to a server.
pub(crate) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket =
        TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Clients with a connection each, on threads.
pub(crate) struct Clients<C> {
    threads: Vec<Thread<C>>,
}

impl<C: Client> Clients<C> {
    /// Takes over connections and what is done on each.
    pub(crate) fn new(connected: Vec<(TcpStream, C)>) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = cores.div_ceil(CORES_PER_THREAD).min(connected.len().max(1));
        let threads: Result<Vec<_>> = (0..count).map(|_| Thread::new()).collect();
        let mut threads = threads?;
        for (index, (socket, client)) in connected.into_iter().enumerate() {
            threads[index % count].add(socket, client)?;
        }
        Ok(Self { threads })
    }

    /// Lets the clients run until the time is up, or until they have nothing more to do. `usage` says
    /// what the server has used so far.
    pub(crate) fn run(&mut self, time: Duration, usage: impl Fn() -> Usage) -> Result<Outcome> {
        let (server, own, begin) = (usage(), own_cpu(), Instant::now());
        let mut outcome = Outcome::new()?;
        std::thread::scope(|scope| {
            let threads = self.threads.iter_mut();
            let running: Vec<_> = threads
                .map(|thread| scope.spawn(move || thread.run(begin + time)))
                .collect();
            for thread in running {
                let one = thread.join().map_err(|_| anyhow!("a client panicked"))?;
                outcome.merge(&one?)?;
            }
            anyhow::Ok(())
        })?;
        outcome.elapsed = begin.elapsed();
        outcome.client_cpu = own_cpu() - own;
        outcome.server = usage().since(server);
        Ok(outcome)
    }
}

/// What one thread drives.
struct Thread<C> {
    poll: Poll,
    connected: Vec<Connected<C>>,
}

struct Connected<C> {
    socket: mio::net::TcpStream,
    client: C,
    /// When what is being measured began.
    begun: Instant,
    is_busy: bool,
}

impl<C: Client> Thread<C> {
    fn new() -> Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            connected: Vec::new(),
        })
    }

    fn add(&mut self, socket: TcpStream, client: C) -> Result<()> {
        socket.set_nonblocking(true)?;
        let mut socket = mio::net::TcpStream::from_std(socket);
        let token = Token(self.connected.len());
        let registry = self.poll.registry();
        registry.register(&mut socket, token, Interest::READABLE)?;
        self.connected.push(Connected {
            socket,
            client,
            begun: Instant::now(),
            is_busy: false,
        });
        Ok(())
    }

    fn run(&mut self, deadline: Instant) -> Result<Outcome> {
        let mut outcome = Outcome::new()?;
        let mut n_busy = 0;
        for connected in &mut self.connected {
            n_busy += usize::from(connected.begin(Instant::now())?);
        }
        let mut events = Events::with_capacity(self.connected.len().max(1));
        let mut buffer = vec![0; BUFFER_BYTES];
        while n_busy > 0 {
            self.poll.poll(&mut events, Some(PATIENCE))?;
            ensure!(
                !events.is_empty(),
                "no answer within {} seconds",
                PATIENCE.as_secs()
            );
            for event in &events {
                let connected = &mut self.connected[event.token().0];
                let Some(operations) = connected.receive(&mut buffer)? else {
                    continue;
                };
                let now = Instant::now();
                let requests = connected.client.pipeline();
                outcome.count(requests, operations, now - connected.begun);
                if now >= deadline || !connected.begin(now)? {
                    n_busy -= 1;
                }
            }
        }
        Ok(outcome)
    }
}

impl<C: Client> Connected<C> {
    /// Begins the next operations; false if there are none.
    fn begin(&mut self, now: Instant) -> Result<bool> {
        self.begun = now;
        self.send()
    }

    fn send(&mut self) -> Result<bool> {
        let request = self.client.request();
        self.is_busy = request.is_some();
        if let Some(request) = request {
            let sent = self.socket.write(request);
            let sent = sent.context("cannot send a request")?;
            // The socket's buffer is empty here and holds far more than one request.
            ensure!(
                sent == request.len(),
                "the socket took only a part of a request"
            );
        }
        Ok(self.is_busy)
    }

    /// Takes what has arrived; returns how many operations it has finished.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<u64>> {
        while self.is_busy {
            let length = match self.socket.read(buffer) {
                Ok(0) => bail!("the server closed a connection"),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot read an answer"),
            };
            match self.client.receive(&buffer[..length])? {
                Progress::Waiting => {}
                Progress::Again => ensure!(self.send()?, "a client stopped half-way"),
                Progress::Done(operations) => {
                    self.is_busy = false;
                    return Ok(Some(operations));
                }
            }
        }
        Ok(None)
    }
}
