//! Metrics, and what is made of them: the table of the documentation, the dashboard for Grafana and the
//! alert rules for Prometheus; and what the log says about requests.

mod exposed;
mod load;
mod log;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::harness::Server;
use exposed::{Exposed, names_in};

/// What changes only after a fault that a test cannot make on this machine, or on a node of a cluster, or
/// never while a server runs: such a metric has to be there.
const STILL: &[&str] = &[
    "trefoil_archive_failures_total",
    "trefoil_archive_lag_seconds",
    "trefoil_archive_written_bytes_total",
    "trefoil_background_failures_total",
    "trefoil_build",
    "trefoil_client_memory_max_bytes",
    "trefoil_clock_behind_seconds",
    "trefoil_clock_jumps_total",
    "trefoil_cluster_clock_ahead_seconds",
    "trefoil_cluster_lease_seconds",
    "trefoil_cluster_members",
    "trefoil_cluster_moves_total",
    "trefoil_cluster_owned",
    "trefoil_cluster_recovery_seconds",
    "trefoil_connections_max",
    "trefoil_forwarded_requests_total",
    "trefoil_namespaces_refusing_writes",
    "trefoil_open_files_max",
    "trefoil_overdue_redactions",
    "trefoil_panics_total",
    "trefoil_recovery_cut_bytes_total",
    "trefoil_start_time_seconds",
    "trefoil_store_failures_total",
    "trefoil_store_received_bytes_total",
    "trefoil_store_requests_total",
    "trefoil_store_sent_bytes_total",
];

fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The queries of the dashboard.
fn dashboard() -> Vec<String> {
    fn collect(json: &Json, found: &mut Vec<String>) {
        match json {
            Json::Object(members) => members.iter().for_each(|(name, value)| match value {
                Json::String(text) if name == "expr" || name == "query" => found.push(text.clone()),
                value => collect(value, found),
            }),
            Json::Array(elements) => elements.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    let json = serde_json::from_str(&file("monitoring/grafana/trefoil.json")).unwrap();
    collect(&json, &mut found);
    found
}

#[test]
fn the_documentation_lists_every_metric() {
    let exposed = Exposed::of(&Server::in_test_mode());
    let page = file("docs/operations.md");
    let (_, section) = page.split_once("\n## Metrics\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let first_cells = rows.filter_map(|row| row.split('|').nth(1));
    let listed: Vec<String> = first_cells.flat_map(names_in).collect();
    let once: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), once.len(), "a metric is listed twice");
    assert_eq!(once, exposed.names);
}

#[test]
fn what_dashboard_and_alerts_use_exists_and_moves() {
    let queries = dashboard();
    assert!(queries.len() > 40, "{queries:?}");
    let used: BTreeSet<String> = queries
        .iter()
        .map(|query| names_in(query))
        .chain([names_in(&file("monitoring/alerts.yml"))])
        .flatten()
        .collect();
    let data = TempDir::new().unwrap();
    let before = load::before(data.path());
    let (exposed, after) = load::after(data.path());
    let unknown: Vec<&String> = used.iter().filter(|name| !exposed.has(name)).collect();
    assert!(unknown.is_empty(), "no such metrics: {unknown:?}");
    let moves = |name: &&String| {
        let values = [&before, &exposed, &after].map(|moment| moment.values(name));
        values[1] != values[2] || values[0] != values[1]
    };
    let is_still = |name: &&String| STILL.contains(&name.trim_end_matches("_bucket"));
    let idle: Vec<&String> = { used.iter() }
        .filter(|name| !is_still(name) && !moves(name))
        .collect();
    assert!(idle.is_empty(), "these never changed: {idle:?}");
    for name in STILL.iter().copied() {
        assert!(exposed.names.contains(name), "{name}");
    }
}

#[test]
fn every_alert_says_what_it_means_and_what_to_do() {
    let alerts = file("monitoring/alerts.yml");
    let alerts: Vec<&str> = alerts.split("- alert: ").skip(1).collect();
    assert!(alerts.len() >= 15);
    for alert in alerts {
        for part in ["expr: ", "severity: ", "summary: ", "action: "] {
            assert_eq!(alert.matches(part).count(), 1, "{part} in {alert}");
        }
    }
}
