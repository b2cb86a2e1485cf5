//! Clients in a closed loop: each sends its next request when the last one was answered.
//!
//! One thread drives all connections, as an application with one event loop does. Only a connection
//! that blocks gets a thread of its own.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Runtime;

use super::connection::{Answer, Connection, Driver, Request};
use super::server::Server;
use crate::outcome::Outcome;
use crate::usage::own_cpu;

/// What one client does.
pub(crate) trait Client: Send {
    fn next(&mut self) -> Request;

    /// Looks at the answer and says how many events it stands for; one that must not be is an error.
    fn answered(&mut self, answer: Answer) -> Result<u64>;
}

impl<C: Client> Client for &mut C {
    fn next(&mut self) -> Request {
        (**self).next()
    }

    fn answered(&mut self, answer: Answer) -> Result<u64> {
        (**self).answered(answer)
    }
}

/// When the clients stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    pub(crate) time: Duration,
    /// The most requests each client sends.
    pub(crate) requests: u64,
}

impl Until {
    pub(crate) fn after(time: Duration) -> Self {
        Self {
            time,
            requests: u64::MAX,
        }
    }
}

/// Clients with a connection each, on threads.
pub(crate) struct Clients<'a, C> {
    server: &'a Server,
    threads: Vec<Thread<C>>,
}

/// What one thread does: it drives its connections without help from others.
struct Thread<C> {
    runtime: Runtime,
    connected: Vec<(Connection, C)>,
}

impl<'a, C: Client> Clients<'a, C> {
    pub(crate) fn connect(
        server: &'a Server,
        driver: Driver,
        clients: impl IntoIterator<Item = C, IntoIter: ExactSizeIterator>,
    ) -> Result<Self> {
        let clients = clients.into_iter();
        let count = server.store.system.client_threads().min(clients.len());
        let mut threads = Vec::new();
        for _ in 0..count {
            threads.push(Thread {
                runtime: current_thread()?,
                connected: Vec::new(),
            });
        }
        for (index, client) in clients.enumerate() {
            let Thread { runtime, connected } = &mut threads[index % count];
            connected.push((runtime.block_on(server.connect(driver))?, client));
        }
        Ok(Self { server, threads })
    }

    /// Lets the clients run for an eighth of the time first, which does not count.
    pub(crate) fn measure(&mut self, time: Duration) -> Result<Outcome> {
        self.run(Until::after(time / 8))?;
        self.run(Until::after(time))
    }

    /// Lets the clients run.
    pub(crate) fn run(&mut self, until: Until) -> Result<Outcome> {
        let server = self.server.running.usage();
        let (own, begin) = (own_cpu(), Instant::now());
        let mut outcome = Outcome::new()?;
        std::thread::scope(|scope| {
            let threads = self.threads.iter_mut();
            let running: Vec<_> = threads
                .map(|thread| scope.spawn(move || thread.run(until)))
                .collect();
            for thread in running {
                let one = thread.join().map_err(|_| anyhow!("a client panicked"))?;
                outcome.merge(&one?)?;
            }
            anyhow::Ok(())
        })?;
        outcome.elapsed = begin.elapsed();
        outcome.client_cpu = own_cpu() - own;
        outcome.server = self.server.running.usage().since(server);
        Ok(outcome)
    }
}

impl<C: Client> Thread<C> {
    fn run(&mut self, until: Until) -> Result<Outcome> {
        let Self { runtime, connected } = self;
        let loops = connected.iter_mut();
        let mut loops: FuturesUnordered<_> = loops
            .map(|(connection, client)| repeat(connection, client, until))
            .collect();
        let mut outcome = Outcome::new()?;
        runtime.block_on(async {
            while let Some(one) = loops.next().await {
                outcome.merge(&one?)?;
            }
            Ok(outcome)
        })
    }
}

/// A runtime that uses no thread but that of its caller.
pub(crate) fn current_thread() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?)
}

/// The loop of one client.
async fn repeat<C: Client>(
    connection: &mut Connection,
    client: &mut C,
    until: Until,
) -> Result<Outcome> {
    let mut outcome = Outcome::new()?;
    let begin = Instant::now();
    while outcome.requests < until.requests && begin.elapsed() < until.time {
        let request = client.next();
        let sent_at = Instant::now();
        let answer = connection.ask(request).await?;
        let latency = sent_at.elapsed();
        outcome.count(1, client.answered(answer)?, latency);
    }
    Ok(outcome)
}
