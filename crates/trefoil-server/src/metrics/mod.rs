//! What the server counts, in the text format of OpenMetrics.
//!
//! - [`calls`] and [`errors`] are about HTTP and gRPC, `resp/metrics.rs` is about RESP;
//! - [`databases`] is what the databases count;
//! - [`archive`] is how far the continuous archive is;
//! - [`cluster`] is what a node knows of the others, and asks of the store;
//! - [`quotas`] is what namespaces have used of their quotas;
//! - [`process`] is what the operating system knows of the process;
//! - [`exposition`] is the format.
//!
//! What is counted while requests are served is added to by many threads, see
//! [`Striped`](trefoil::Striped). Everything else is looked up when somebody asks for it.

mod archive;
mod calls;
mod cluster;
mod databases;
mod errors;
mod exposition;
pub(crate) mod labels;
mod process;
mod quotas;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::StatusCode;
use hyper::header::HeaderValue;
use trefoil::{Committed, Executed, MemoryUse, NamespaceId, Striped, Timestamp};

use calls::{CallTable, RequestTable};
pub(crate) use errors::ErrorTable;
pub(crate) use exposition::{Buckets, Exposition, MetricKind};
pub(crate) use labels::{CONSOLE_ENDPOINT, OTHER_ENDPOINT, RequestLabels};
pub(crate) use process::cpu_seconds;

use crate::connections::{Connections, Protocol};
use crate::error::Result;
use crate::grpc;
use crate::panics::PANICS;
use crate::peers::ForwardCounts;
use crate::resp::RespMetrics;
use crate::response::{HttpAnswer, HttpBody, answer};
use crate::service::{Shared, blocking};

/// A number that many threads add to.
pub(crate) type SharedCount = Striped<AtomicU64>;

/// Everything that is counted while requests are served.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// When the server began.
    started: Timestamp,
    pub(crate) requests: RequestTable,
    pub(crate) http_errors: ErrorTable,
    pub(crate) calls: CallTable,
    commits: SharedCount,
    events_written: SharedCount,
    pub(crate) events_imported: SharedCount,
    pub(crate) bytes_received: SharedCount,
    pub(crate) bytes_sent: SharedCount,
    pub(crate) grpc_bytes_received: SharedCount,
    pub(crate) grpc_bytes_sent: SharedCount,
    pub(crate) resp: RespMetrics,
}

impl Metrics {
    pub(crate) fn new(started: Timestamp) -> Self {
        Self {
            started,
            requests: RequestTable::default(),
            http_errors: ErrorTable::default(),
            calls: CallTable::new(&grpc::METHOD_NAMES, &grpc::CODE_NAMES),
            commits: SharedCount::default(),
            events_written: SharedCount::default(),
            events_imported: SharedCount::default(),
            bytes_received: SharedCount::default(),
            bytes_sent: SharedCount::default(),
            grpc_bytes_received: SharedCount::default(),
            grpc_bytes_sent: SharedCount::default(),
            resp: RespMetrics::default(),
        }
    }

    pub(crate) fn count_commit(&self, committed: &Committed) {
        if !committed.replayed {
            self.commits.add(1);
            self.events_written.add(committed.events.len() as u64);
        }
    }

    pub(crate) fn count_executed(&self, executed: &Executed) {
        if executed.commit.is_some() && !executed.replayed {
            self.commits.add(1);
            self.events_written.add(executed.events.len() as u64);
        }
    }

    /// Returns all metrics as text. Asks the file system.
    fn text(&self, shared: &Shared) -> String {
        let mut out = Exposition::default();
        self.put_protocols(&mut out, shared);
        let help = "Commits that clients made, without repetitions";
        out.counter("commits", help, self.commits.get());
        let help = "Events of these commits";
        out.counter("events_written", help, self.events_written.get());
        let help = "Events that were imported";
        out.counter("events_imported", help, self.events_imported.get());
        databases::put(&mut out, &shared.namespaces.stats());
        put_namespaces(&mut out, shared);
        quotas::put(&mut out, shared);
        cluster::put(&mut out, &shared.namespaces);
        let progress = shared.config.archive.as_deref();
        archive::put(&mut out, &shared.namespaces, progress);
        put_memory(&mut out, shared);
        process::put(&mut out, self.started);
        put_clock(&mut out, shared);
        let panics = PANICS.load(Ordering::Relaxed);
        out.counter("panics", "Panics of the server", panics);
        out.finish()
    }

    fn put_protocols(&self, out: &mut Exposition, shared: &Shared) {
        self.requests.put(out);
        let help = "HTTP requests that were answered with an error";
        self.http_errors.put(out, "http_errors", help);
        let help = "Bytes read from HTTP connections";
        out.counter("http_received_bytes", help, self.bytes_received.get());
        let help = "Bytes written to HTTP connections";
        out.counter("http_sent_bytes", help, self.bytes_sent.get());
        self.calls.put(out);
        let help = "Bytes read from gRPC connections";
        out.counter("grpc_received_bytes", help, self.grpc_bytes_received.get());
        let help = "Bytes written to gRPC connections";
        out.counter("grpc_sent_bytes", help, self.grpc_bytes_sent.get());
        self.resp.put(out, &shared.resp);
        put_connections(out, &shared.connections);
        match &shared.peers {
            Some(peers) => peers.counts.put(out),
            None => ForwardCounts::default().put(out),
        }
        put_subscriptions(out, shared);
    }
}

fn put_connections(out: &mut Exposition, connections: &Connections) {
    let counts = connections.counts();
    let of = |protocol: Protocol| counts[protocol as usize];
    for (name, protocol) in [
        ("http_connections", Protocol::Http),
        ("grpc_connections", Protocol::Grpc),
        ("resp_connections", Protocol::Resp),
    ] {
        let help = format!("Open {} connections", protocol.name());
        out.gauge(name, &help, of(protocol).open);
    }
    let help = "Connections that there may be, of all protocols together";
    out.gauge("connections_max", help, connections.max());
    let help = "Connections that were accepted";
    let mut accepted = out.family(MetricKind::Counter, "connections_accepted", help);
    for protocol in Protocol::EVERY {
        accepted.put(&[("protocol", protocol.name())], of(protocol).accepted);
    }
    let help = "Connections that were turned away, or closed to make room for others";
    let mut refused = out.family(MetricKind::Counter, "connections_refused", help);
    for protocol in Protocol::EVERY {
        refused.put(&[("protocol", protocol.name())], of(protocol).refused);
    }
}

fn put_subscriptions(out: &mut Exposition, shared: &Shared) {
    let head = |namespace: &NamespaceId| {
        let database = shared.namespaces.opened(namespace);
        database.and_then(|database| database.head().ok())
    };
    let (number, lag) = shared.subscriptions.count_and_lag(head);
    out.gauge("subscribers", "Open subscriptions", number);
    let help = "Positions that the subscription that is furthest behind has yet to look at";
    out.gauge("subscription_lag_events", help, lag);
}

fn put_namespaces(out: &mut Exposition, shared: &Shared) {
    let namespaces = &shared.namespaces;
    let number = namespaces.list().map_or(0, |list| list.len());
    out.gauge("namespaces", "Namespaces that exist", number);
    let help = "Namespaces that take no writes after an error until they are opened again";
    let refusing = namespaces.refusing_writes().len();
    out.gauge("namespaces_refusing_writes", help, refusing);
}

fn put_memory(out: &mut Exposition, shared: &Shared) {
    let help = "Bytes held for clients: requests being read, replies not yet taken";
    out.gauge("client_memory_bytes", help, shared.budget.used());
    let help = "Bytes that may be held for clients";
    let max = shared.config.client_memory_max;
    out.gauge("client_memory_max_bytes", help, max);
    let MemoryUse {
        unsaved_bytes,
        block_bytes,
        entry_bytes,
        ..
    } = shared.namespaces.memory_use();
    let help = "Bytes that open namespaces keep in memory";
    let mut memory = out.family(MetricKind::Gauge, "database_memory_bytes", help);
    for (kind, bytes) in [
        ("unsaved", unsaved_bytes),
        ("blocks", block_bytes),
        ("entries", entry_bytes),
    ] {
        memory.put(&[("kind", kind)], bytes);
    }
    let help = "Free bytes on the disk of the data directory";
    let free = shared.namespaces.free_bytes().ok().flatten();
    out.gauge("disk_free_bytes", help, free.unwrap_or(0));
}

fn put_clock(out: &mut Exposition, shared: &Shared) {
    let clock = shared.clock();
    let help = "Jumps of the wall clock by more than ten seconds";
    out.counter("clock_jumps", help, clock.n_jumps());
    let help = "How far the wall clock is behind the time of the last event";
    let behind = clock.behind().as_secs_f64();
    out.gauge("clock_behind_seconds", help, behind);
}

/// Answers `/metrics`.
pub(crate) async fn serve(shared: &Arc<Shared>) -> Result<HttpAnswer> {
    let asked = Arc::clone(shared);
    let text = blocking(move || asked.metrics.text(&asked)).await?;
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let content_type = HeaderValue::from_static(content_type);
    Ok(answer(
        StatusCode::OK,
        content_type,
        HttpBody::Whole(text.into()),
    ))
}
