//! What the server counts, in the text format of Prometheus. No label has more than a few values:
//! names of namespaces and streams are not among them.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use trefoil::{Committed, Executed, MemoryUse, Namespaces};

use crate::group_metrics::GroupMetrics;
use crate::panics::PANICS;
use crate::resp::RespMetrics;
use crate::response::{HttpAnswer, HttpBody, answer};
use crate::service::Shared;
use crate::{console, memory};

/// What stands for every file of the console.
pub(crate) const CONSOLE_ENDPOINT: &str = "/";

/// What stands for every path that is no endpoint.
pub(crate) const OTHER_ENDPOINT: &str = "other";

pub(crate) const ENDPOINTS: [&str; 12] = [
    "/rpc",
    "/dcb/read",
    "/dcb/append",
    "/subscribe",
    "/events",
    "/import",
    "/export",
    "/health",
    "/ready",
    "/version",
    "/metrics",
    "/openapi.json",
];

/// What requests are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) endpoint: &'static str,
    /// The method of `/rpc`; empty for other endpoints.
    pub(crate) method: &'static str,
    pub(crate) status: u16,
}

impl RequestLabels {
    /// The labels of a request that has no answer yet.
    pub(crate) fn of_path(path: &str) -> Self {
        let known = ENDPOINTS.into_iter().find(|endpoint| *endpoint == path);
        let known = known.or_else(|| console::has(path).then_some(CONSOLE_ENDPOINT));
        Self {
            endpoint: known.unwrap_or(OTHER_ENDPOINT),
            method: "",
            status: 0,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Endpoint {
    endpoint: &'static str,
    method: &'static str,
}

/// What gRPC calls are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    method: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallMethod {
    method: &'static str,
}

/// What the memory of open namespaces is told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MemoryLabels {
    kind: &'static str,
}

/// Every metric of the server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<Endpoint, Histogram>,
    calls: Family<CallLabels, Counter>,
    call_seconds: Family<CallMethod, Histogram>,
    commits: Counter,
    events_written: Counter,
    pub(crate) events_imported: Counter,
    pub(crate) bytes_received: Counter,
    pub(crate) bytes_sent: Counter,
    pub(crate) grpc_bytes_received: Counter,
    pub(crate) grpc_bytes_sent: Counter,
    pub(crate) resp: RespMetrics,
    pub(crate) subscribers: Gauge,
    connections: Gauge,
    client_memory: Gauge,
    memory: Gauge,
    disk_free: Gauge,
    database_memory: Family<MemoryLabels, Gauge>,
    namespaces: Gauge,
    clock_jumps: Counter,
    clock_behind: Gauge<f64, AtomicU64>,
    namespaces_refusing_writes: Gauge,
}

/// From 50 microseconds to 6.5 seconds.
fn latency_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 2.0, 18))
}

impl Metrics {
    pub(crate) fn new(namespaces: &Namespaces) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("trefoil"),
            requests: Family::default(),
            seconds: Family::new_with_constructor(latency_histogram),
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(latency_histogram),
            commits: Counter::default(),
            events_written: Counter::default(),
            events_imported: Counter::default(),
            bytes_received: Counter::default(),
            bytes_sent: Counter::default(),
            grpc_bytes_received: Counter::default(),
            grpc_bytes_sent: Counter::default(),
            resp: RespMetrics::new(),
            subscribers: Gauge::default(),
            connections: Gauge::default(),
            client_memory: Gauge::default(),
            memory: Gauge::default(),
            disk_free: Gauge::default(),
            database_memory: Family::default(),
            namespaces: Gauge::default(),
            clock_jumps: Counter::default(),
            clock_behind: Gauge::default(),
            namespaces_refusing_writes: Gauge::default(),
        };
        let groups = GroupMetrics(namespaces.clone());
        metrics.registry.register_collector(Box::new(groups));
        metrics.register().register_others()
    }

    fn register_others(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("grpc_calls", "gRPC calls that ended", self.calls.clone());
        let help = "Time from the head of a gRPC call to its end";
        registry.register_with_unit("grpc_call", help, Unit::Seconds, self.call_seconds.clone());
        let help = "Bytes read from gRPC connections";
        registry.register(
            "grpc_received_bytes",
            help,
            self.grpc_bytes_received.clone(),
        );
        let help = "Bytes written to gRPC connections";
        registry.register("grpc_sent_bytes", help, self.grpc_bytes_sent.clone());
        let help = "Bytes held for clients: requests being read, replies not yet taken";
        registry.register("client_memory_bytes", help, self.client_memory.clone());
        let help = "Memory of the process, without what is swapped out";
        registry.register("memory_bytes", help, self.memory.clone());
        let help = "Free bytes on the disk of the data directory";
        registry.register("disk_free_bytes", help, self.disk_free.clone());
        let help = "Bytes that open namespaces keep in memory";
        let memory = self.database_memory.clone();
        registry.register("database_memory_bytes", help, memory);
        registry.register("panics", "Panics of the server", PANICS.clone());
        let help = "Jumps of the wall clock by more than ten seconds";
        registry.register("clock_jumps", help, self.clock_jumps.clone());
        let help = "How far the wall clock is behind the time of the last event";
        let behind = self.clock_behind.clone();
        registry.register_with_unit("clock_behind", help, Unit::Seconds, behind);
        self.resp.register(registry);
        self
    }

    fn register(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("http_requests", "Requests answered", self.requests.clone());
        let help = "Time from the head of a request to the head of its answer";
        registry.register_with_unit("http_request", help, Unit::Seconds, self.seconds.clone());
        registry.register("commits", "Commits written", self.commits.clone());
        registry.register(
            "events_written",
            "Events committed",
            self.events_written.clone(),
        );
        registry.register(
            "events_imported",
            "Events imported",
            self.events_imported.clone(),
        );
        let help = "Bytes read from connections";
        registry.register("http_received_bytes", help, self.bytes_received.clone());
        let help = "Bytes written to connections";
        registry.register("http_sent_bytes", help, self.bytes_sent.clone());
        registry.register(
            "subscribers",
            "Open subscriptions",
            self.subscribers.clone(),
        );
        registry.register(
            "http_connections",
            "Open connections",
            self.connections.clone(),
        );
        registry.register(
            "namespaces",
            "Namespaces that exist",
            self.namespaces.clone(),
        );
        registry.register(
            "namespaces_refusing_writes",
            "Namespaces that take no writes after an error until they are opened again",
            self.namespaces_refusing_writes.clone(),
        );
        self
    }

    pub(crate) fn count_request(&self, labels: RequestLabels, elapsed: Duration) {
        self.requests.get_or_create(&labels).inc();
        let RequestLabels {
            endpoint, method, ..
        } = labels;
        self.seconds
            .get_or_create(&Endpoint { endpoint, method })
            .observe(elapsed.as_secs_f64());
    }

    pub(crate) fn count_call(&self, method: &'static str, code: &'static str, elapsed: Duration) {
        self.calls.get_or_create(&CallLabels { method, code }).inc();
        self.call_seconds
            .get_or_create(&CallMethod { method })
            .observe(elapsed.as_secs_f64());
    }

    pub(crate) fn count_commit(&self, committed: &Committed) {
        if !committed.replayed {
            self.commits.inc();
            self.events_written.inc_by(committed.events.len() as u64);
        }
    }

    pub(crate) fn count_executed(&self, executed: &Executed) {
        if executed.commit.is_some() && !executed.replayed {
            self.commits.inc();
            self.events_written.inc_by(executed.events.len() as u64);
        }
    }

    fn set_memory(&self, memory: MemoryUse) {
        let kinds = [
            ("unsaved", memory.unsaved_bytes),
            ("blocks", memory.block_bytes),
            ("entries", memory.entry_bytes),
        ];
        for (kind, bytes) in kinds {
            let gauge = self.database_memory.get_or_create(&MemoryLabels { kind });
            gauge.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// The answer of `/metrics`.
    pub(crate) fn answer(&self, shared: &Shared) -> HttpAnswer {
        let as_gauge = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.connections.set(as_gauge(shared.connections.count()));
        self.client_memory.set(as_gauge(shared.budget.used()));
        let as_bytes = |bytes: Option<u64>| i64::try_from(bytes.unwrap_or(0)).unwrap_or(i64::MAX);
        self.memory.set(as_bytes(memory::resident()));
        let free = shared.namespaces.free_bytes().ok().flatten();
        self.disk_free.set(as_bytes(free));
        self.set_memory(shared.namespaces.memory_use());
        let of_resp = as_gauge(shared.resp.count());
        self.resp.connections.set(of_resp);
        self.namespaces.set(as_gauge(
            shared.namespaces.list().map_or(0, |list| list.len()),
        ));
        let clock = shared.namespaces.clock();
        let jumps = clock.n_jumps().saturating_sub(self.clock_jumps.get());
        self.clock_jumps.inc_by(jumps);
        self.clock_behind.set(clock.behind().as_secs_f64());
        let refusing = shared.namespaces.refusing_writes().len();
        self.namespaces_refusing_writes.set(as_gauge(refusing));
        let mut text = String::new();
        // Writing into a buffer in memory does not fail.
        let _ = encode(&mut text, &self.registry);
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let content_type = HeaderValue::from_static(content_type);
        answer(StatusCode::OK, content_type, HttpBody::Whole(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_paths_share_one_label() {
        assert_eq!(RequestLabels::of_path("/rpc").endpoint, "/rpc");
        assert_eq!(RequestLabels::of_path("/rpc/x").endpoint, OTHER_ENDPOINT);
        assert_eq!(RequestLabels::of_path("/secret").endpoint, OTHER_ENDPOINT);
        for path in ["/", "/console/app.js", "/console/secret", "/console.json"] {
            assert_eq!(RequestLabels::of_path(path).endpoint, CONSOLE_ENDPOINT);
        }
    }
}
