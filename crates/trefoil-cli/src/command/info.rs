//! `trefoil info`: what a server says about itself, and about one namespace.

use std::time::Duration;

use serde::Serialize;
use trefoil::{Clock, Timestamp};

use crate::client::{ConnectionArguments, HttpClient, MetricsReading, NamespaceInfo};
use crate::output::{CommandOutput, count, duration, short, size};

/// How long rates are measured.
const MEASURED: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "What the server does not say is left out: an older server says less, and only the token of `default`
may see the data directory.

Examples:
  trefoil info
  trefoil info tenant-a
  trefoil info --json | jq .eventsPerSecond";

/// Shows a server: version, namespace of the token, room, load. Or shows one namespace.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only this namespace
    namespace: Option<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// What is known about a server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerInfo {
    url: String,
    version: String,
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_ready_because: Option<String>,
    uptime_seconds: Option<f64>,
    data_dir: Option<String>,
    namespaces: Option<f64>,
    refusing_writes: Vec<String>,
    memory_bytes: Option<f64>,
    stored_bytes: f64,
    disk_free_bytes: Option<f64>,
    connections: f64,
    subscriptions: Option<f64>,
    events_per_second: f64,
    commits_per_second: f64,
    requests_per_second: f64,
    mean_sync_seconds: Option<f64>,
    namespace: Option<NamespaceInfo>,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        if let Some(id) = &self.namespace {
            let info = client.namespace_info(id)?;
            let printed = match output.is_text() {
                true => output.facts(&namespace_facts(&info)),
                false => output.value(&info),
            };
            return Ok(printed?);
        }
        let info = ServerInfo::of(&client)?;
        if !output.is_text() {
            return Ok(output.value(&info)?);
        }
        output.facts(&info.facts())?;
        if let Some(namespace) = &info.namespace {
            output.line("")?;
            output.facts(&namespace_facts(namespace))?;
        }
        Ok(())
    }
}

impl ServerInfo {
    fn of(client: &HttpClient) -> anyhow::Result<Self> {
        let version = client.version()?;
        // Without the right token nothing else is of use.
        let refusing_writes = client.refusing_writes()?;
        let current = client.current()?;
        let clock = Clock::default();
        let before = client.metrics(clock.steady())?;
        std::thread::sleep(MEASURED);
        let now = client.metrics(clock.steady())?;
        let namespace = match &current {
            Some(current) => Some(client.namespace_info(&current.namespace)?),
            None => None,
        };
        let not_ready_because = client.not_ready()?;
        Ok(Self {
            url: client.url().to_owned(),
            version,
            ready: not_ready_because.is_none(),
            not_ready_because,
            uptime_seconds: uptime(&now, clock.now()),
            data_dir: client.setting("data-dir")?,
            namespaces: now.gauge("trefoil_namespaces"),
            refusing_writes,
            memory_bytes: now.gauge("trefoil_memory_bytes"),
            stored_bytes: ["log", "index", "state"]
                .iter()
                .map(|kind| now.total(&format!("trefoil_{kind}_bytes")))
                .sum(),
            disk_free_bytes: now
                .gauge("trefoil_disk_free_bytes")
                .filter(|free| *free > 0.0),
            connections: connections(&now),
            subscriptions: now.gauge("trefoil_subscribers"),
            events_per_second: now.rate(&before, "trefoil_events_written_total"),
            commits_per_second: now.rate(&before, "trefoil_group_commits_sum"),
            requests_per_second: requests(&now, &before),
            mean_sync_seconds: now.mean(&MetricsReading::default(), "trefoil_group_sync_seconds"),
            namespace,
        })
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let refusing = &self.refusing_writes;
        let ready = match (&self.not_ready_because, refusing.is_empty()) {
            (Some(reason), _) => format!("no: {reason}"),
            (None, true) => "yes".to_owned(),
            (None, false) => format!("yes, but {} refuse writes", refusing.join(", ")),
        };
        let known = [
            Some(("server", self.url.clone())),
            Some(("version", self.version.clone())),
            Some(("ready", ready)),
            self.uptime_seconds.map(|up| ("uptime", duration(up))),
            self.data_dir.clone().map(|path| ("data directory", path)),
            self.namespaces.map(|number| ("namespaces", short(number))),
            self.memory_bytes.map(|bytes| ("memory", size(bytes))),
            Some(("stored", size(self.stored_bytes))).filter(|_| self.stored_bytes > 0.0),
            self.disk_free_bytes.map(|bytes| ("disk free", size(bytes))),
            Some(("connections", short(self.connections))),
            self.subscriptions
                .map(|open| ("subscriptions", short(open))),
            Some((
                "load",
                format!(
                    "{} commits/s, {} events/s, {} requests/s",
                    short(self.commits_per_second),
                    short(self.events_per_second),
                    short(self.requests_per_second)
                ),
            )),
            self.mean_sync_seconds.map(|mean| {
                let text = format!("{} in the mean since the start", duration(mean));
                ("sync", text)
            }),
        ];
        known.into_iter().flatten().collect()
    }
}

/// For how long the server has been running, in seconds.
pub(super) fn uptime(now: &MetricsReading, time: Timestamp) -> Option<f64> {
    let started = now.gauge("trefoil_start_time_seconds")?;
    Some((time.0 as f64 / 1e9 - started).max(0.0))
}

/// The open connections of all protocols.
pub(super) fn connections(now: &MetricsReading) -> f64 {
    ["http", "resp", "grpc"]
        .iter()
        .map(|protocol| now.total(&format!("trefoil_{protocol}_connections")))
        .sum()
}

/// The requests of all protocols per second.
pub(super) fn requests(now: &MetricsReading, before: &MetricsReading) -> f64 {
    [
        "trefoil_http_requests_total",
        "trefoil_resp_commands_total",
        "trefoil_grpc_calls_total",
    ]
    .iter()
    .map(|name| now.rate(before, name))
    .sum()
}

fn namespace_facts(info: &NamespaceInfo) -> Vec<(&'static str, String)> {
    let last = info.last_activity.clone();
    let known = [
        Some(("namespace", info.namespace.clone())),
        Some(("description", info.description.clone())).filter(|(_, text)| !text.is_empty()),
        Some(("events", count(info.message_count))),
        Some(("streams", count(info.stream_count))),
        Some(("created", info.created_at.clone())),
        Some(("last activity", last.unwrap_or_else(|| "never".to_owned()))),
        info.refuses_writes
            .as_ref()
            .map(|reason| ("refuses writes", reason.clone())),
    ];
    known.into_iter().flatten().collect()
}
