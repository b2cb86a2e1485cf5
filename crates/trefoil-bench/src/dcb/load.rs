//! Clients in a closed loop: each sends its next request when the last one was answered.
//!
//! Clients and server share the machine, so the clients must cost little: there are no more threads
//! than cores, and each drives its share of the connections alone. Only a connection that blocks
//! gets a thread of its own.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Runtime;

use super::connection::{Answer, Connection, Request};
use super::server::Server;
use crate::cpu;
use crate::latency::Latencies;
use crate::report::Row;

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

/// What the clients saw, and what it cost.
#[derive(Debug)]
pub(crate) struct Outcome {
    requests: u64,
    events: u64,
    elapsed: Duration,
    latencies: Latencies,
    client_cpu: Duration,
    server_cpu: Option<Duration>,
}

impl Outcome {
    fn new() -> Result<Self> {
        Ok(Self {
            requests: 0,
            events: 0,
            elapsed: Duration::ZERO,
            latencies: Latencies::new()?,
            client_cpu: Duration::ZERO,
            server_cpu: None,
        })
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        self.requests += other.requests;
        self.events += other.events;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latencies.add(&other.latencies)
    }

    /// A row of events per second, with the CPU time per event.
    pub(crate) fn events_row(&self, system: impl Into<String>) -> Row {
        let rate = self.events as f64 / self.elapsed.as_secs_f64();
        self.row(system, rate, self.events)
    }

    /// A row of requests per second, with the CPU time per request.
    pub(crate) fn requests_row(&self, system: impl Into<String>) -> Row {
        let rate = self.requests as f64 / self.elapsed.as_secs_f64();
        self.row(system, rate, self.requests)
    }

    /// A row of microseconds per request: the median, which a busy moment does not change.
    pub(crate) fn cost_row(&self, system: impl Into<String>) -> Row {
        let median = self.latencies.percentile(0.5);
        self.row(system, median.as_secs_f64() * 1e6, self.requests)
    }

    /// A row of microseconds per event of one client.
    pub(crate) fn event_cost_row(&self, system: impl Into<String>) -> Row {
        let cost = self.elapsed.as_secs_f64() * 1e6 / self.events as f64;
        self.row(system, cost, self.events)
    }

    fn row(&self, system: impl Into<String>, figure: f64, count: u64) -> Row {
        let per_one = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
        let note = format!("client {:.1} us", per_one(self.client_cpu));
        let mut row = Row::new(system, figure).note(note);
        row.latency = Some(self.latencies.percentiles());
        row.cpu = self.server_cpu.map(per_one);
        row
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
        clients: impl IntoIterator<Item = C, IntoIter: ExactSizeIterator>,
    ) -> Result<Self> {
        let clients = clients.into_iter();
        let count = server.system().client_threads().min(clients.len());
        let mut threads = Vec::new();
        for _ in 0..count {
            threads.push(Thread {
                runtime: current_thread()?,
                connected: Vec::new(),
            });
        }
        for (index, client) in clients.enumerate() {
            let Thread { runtime, connected } = &mut threads[index % count];
            connected.push((runtime.block_on(server.connect())?, client));
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
        let (own, others) = (cpu::own(), self.server.cpu());
        let mut outcome = Outcome::new()?;
        std::thread::scope(|scope| {
            let threads = self.threads.iter_mut();
            let running: Vec<_> = threads
                .map(|thread| scope.spawn(move || thread.run(until)))
                .collect();
            for thread in running {
                let one = thread.join().map_err(|_| anyhow!("a client panicked"))?;
                outcome.add(&one?)?;
            }
            anyhow::Ok(())
        })?;
        outcome.client_cpu = cpu::own() - own;
        let used = self.server.cpu().zip(others);
        outcome.server_cpu = used.map(|(after, before)| after - before);
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
                outcome.add(&one?)?;
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
    while outcome.requests < until.requests && outcome.elapsed < until.time {
        let request = client.next();
        let sent_at = Instant::now();
        let answer = connection.ask(request).await?;
        outcome.latencies.record(sent_at.elapsed());
        outcome.events += client.answered(answer)?;
        outcome.requests += 1;
        outcome.elapsed = begin.elapsed();
    }
    Ok(outcome)
}
