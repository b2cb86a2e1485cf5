//! What one node asks of the store: for a commit, for a minute in which nothing happens, and what a
//! month of that costs.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Plan;
use super::bucket;
use super::counting::{Counting, Requests};
use super::load::{Became, Load};
use super::nodes::BenchCluster;

/// List prices of Amazon S3 Standard in us-east-1, in dollars: a thousand requests that write or
/// list, a thousand that read, a gigabyte for a month.
const WRITING: f64 = 0.005 / 1_000.0;
const READING: f64 = 0.0004 / 1_000.0;
const GIGABYTE: f64 = 0.023;
/// What these prices are. They change seldom, but they do.
const PRICES: &str = "S3 Standard in us-east-1, as published in 2025";

/// How long a node has for that.
const SETTLE: Duration = Duration::from_secs(10);

const MINUTES_PER_MONTH: f64 = 30.0 * 24.0 * 60.0;
/// The load whose month is priced: commits of one event per second, day and night.
const COMMITS_PER_SECOND: f64 = 10.0;
const NODES: f64 = 3.0;
/// How many namespaces are open in it.
const NAMESPACES: f64 = 200.0;

/// What was counted, per minute or per commit.
struct Costs {
    idle_node: Requests,
    idle_with_namespaces: Requests,
    commits: u64,
    for_commits: Requests,
    bytes: u64,
}

/// Measures and returns the tables.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let counting = Counting::before(bucket::service()?)?;
    let endpoint = format!("http://{}", counting.address);
    let mut cluster = BenchCluster::new(plan, Some(endpoint));
    cluster.add()?;
    let during = |time: Duration| {
        let before = counting.counts();
        thread::sleep(time);
        counting.counts().since(before)
    };
    let idle_node = during(plan.idle);
    let empty_kib = cluster.nodes[0].memory_kib()?;
    let tokens = cluster.create_namespaces(plan.namespaces)?;
    write(&cluster, &tokens, Duration::from_secs(1))?;
    // What follows a write in the background is no part of being there.
    thread::sleep(SETTLE);
    let open_kib = cluster.nodes[0].memory_kib()?;
    let idle_with_namespaces = during(plan.idle);
    let before = counting.counts();
    let one = cluster.create_namespaces_named("priced", 1)?;
    let bytes_before = bucket::bytes_below(&cluster.storage)?;
    let commits = write(&cluster, &one, plan.time)?;
    let for_commits = counting.counts().since(before);
    let costs = Costs {
        idle_node,
        idle_with_namespaces,
        commits,
        for_commits,
        bytes: bucket::bytes_below(&cluster.storage)?.saturating_sub(bytes_before),
    };
    let memory = (open_kib - empty_kib) / plan.namespaces as f64;
    Ok(costs.table(plan, memory))
}

/// Writes for a while, each namespace by one client that waits. Returns how often.
fn write(cluster: &BenchCluster, tokens: &[String], time: Duration) -> Result<u64> {
    let load = Load {
        nodes: &cluster.addresses(),
        tokens,
        pace: Duration::ZERO,
        is_over: &AtomicBool::new(false),
    };
    let samples = load.run(|_| {
        thread::sleep(time);
        Ok(())
    })?;
    let written = samples
        .iter()
        .filter(|sample| sample.became == Became::Written);
    u64::try_from(written.count()).context("too many")
}

impl Costs {
    fn table(&self, plan: &Plan, memory_kib: f64) -> String {
        let minutes = plan.idle.as_secs_f64() / 60.0;
        let rate = |count: u64| count as f64 / minutes;
        let each = |with: u64, without: u64| {
            (rate(with) - rate(without)).max(0.0) / plan.namespaces as f64
        };
        let (node, open) = (self.idle_node, self.idle_with_namespaces);
        let (writing, reading) = (
            each(open.writing, node.writing),
            each(open.reading, node.reading),
        );
        let per_commit = |count: u64| count as f64 / self.commits.max(1) as f64;
        let bytes = self.bytes as f64 / self.commits.max(1) as f64;
        let mut text =
            String::from("| requests to the store | PUT, LIST | GET, HEAD |\n|---|---:|---:|\n");
        let mut row = |name: &str, writing: f64, reading: f64| {
            let _ = writeln!(text, "| {name} | {writing:.2} | {reading:.2} |");
        };
        let (put, get) = (
            per_commit(self.for_commits.writing),
            per_commit(self.for_commits.reading),
        );
        row("per commit, one client", put, get);
        row(
            "per minute, a node that does nothing",
            rate(node.writing),
            rate(node.reading),
        );
        row(
            "per minute, each namespace that is open and not used",
            writing,
            reading,
        );
        let seconds = MINUTES_PER_MONTH * 60.0;
        let commits = COMMITS_PER_SECOND * seconds;
        let idle_writing = NODES * rate(node.writing) + NAMESPACES * writing;
        let idle_reading = NODES * rate(node.reading) + NAMESPACES * reading;
        let for_commits = commits * (put * WRITING + get * READING);
        let for_idle = MINUTES_PER_MONTH * (idle_writing * WRITING + idle_reading * READING);
        let for_bytes = commits * bytes / 1e9 * GIGABYTE;
        let all = for_commits + for_idle + for_bytes;
        let _ = writeln!(
            text,
            "\nBytes in the bucket per event, right after {} events of about 120 bytes: {bytes:.0}. Memory of \
             the node per open namespace: {memory_kib:.0} KiB.\n\n\
             A month of {COMMITS_PER_SECOND} commits per second, none together with another, on \
             {NODES} nodes with {NAMESPACES} open namespaces: ${for_commits:.2} for the commits, \
             ${for_idle:.2} for being there, ${for_bytes:.2} for what that month stored, ${all:.2} in \
             all. Computed from the counts above at list prices ({PRICES}): $0.005 for 1,000 PUT or LIST, $0.0004 for 1,000 GET, $0.023 for a gigabyte and month.",
            self.commits
        );
        text
    }
}
