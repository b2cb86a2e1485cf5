//! The nodes of one cluster, which are started, killed and stopped.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Plan;
use crate::http::{ask, get, post};
use crate::running::{Running, free_address};
use crate::usage::Memory;

/// One of them.
pub(super) struct BenchNode {
    pub(super) address: SocketAddr,
    running: Running,
}

/// What is started, and where it keeps its data.
pub(super) struct BenchCluster {
    program: PathBuf,
    directory: PathBuf,
    /// Where the service is, if not where the environment says.
    endpoint: Option<String>,
    pub(super) storage: String,
    pub(super) nodes: Vec<BenchNode>,
}

impl BenchCluster {
    /// A cluster without nodes, on a part of the bucket that nobody has used.
    pub(super) fn new(plan: &Plan, endpoint: Option<String>) -> Self {
        let part = uuid::Uuid::new_v4().simple();
        Self {
            program: plan.program.clone(),
            directory: plan.directory.clone(),
            endpoint,
            storage: format!("{}/bench-{part}", plan.bucket.trim_end_matches('/')),
            nodes: Vec::new(),
        }
    }

    /// The same with nodes.
    pub(super) fn start(plan: &Plan, count: usize) -> Result<Self> {
        let mut cluster = Self::new(plan, None);
        for _ in 0..count {
            cluster.add()?;
        }
        Ok(cluster)
    }

    /// Starts one more node and waits until it is ready.
    pub(super) fn add(&mut self) -> Result<()> {
        let address = free_address()?;
        let mut running = Running::start(&self.directory, |data| {
            let mut command = Command::new(&self.program);
            command.args(["dev", "--log-level", "error", "--storage", &self.storage]);
            command.arg("--cache-dir").arg(data);
            command.args(["--grpc-port", "off", "--resp-port", "off"]);
            command.args(["--port", &address.port().to_string()]);
            if let Some(endpoint) = &self.endpoint {
                command.env("AWS_ENDPOINT_URL", endpoint);
            }
            command
        })?;
        running.wait_until(|| get(address, "/ready").is_ok())?;
        self.nodes.push(BenchNode { address, running });
        Ok(())
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    /// Creates namespaces. Returns their tokens.
    pub(super) fn create_namespaces(&self, count: usize) -> Result<Vec<String>> {
        self.create_namespaces_named("bench", count)
    }

    /// The same with names that begin with something else.
    pub(super) fn create_namespaces_named(&self, name: &str, count: usize) -> Result<Vec<String>> {
        let address = self.nodes.first().context("there is no node")?.address;
        let create = |number: usize| {
            let call = json!(["ns.create", format!("{name}-{number}")]).to_string();
            let answer = ask(address, &post(address, &call))?;
            let answer: Value = serde_json::from_slice(&answer)?;
            let token = answer["token"].as_str().context("there is no token")?;
            Ok(token.to_owned())
        };
        (0..count).map(create).collect()
    }
}

impl BenchNode {
    pub(super) fn kill(&mut self) -> Result<()> {
        self.running.kill()
    }

    pub(super) fn stop(&mut self) -> Result<()> {
        self.running.stop()
    }

    /// Returns the memory in no file, in KiB.
    pub(super) fn memory_kib(&self) -> Result<f64> {
        let memory = Memory::of(self.running.id()).context("/proc does not say")?;
        Ok(memory.anonymous * 1024.0)
    }
}
