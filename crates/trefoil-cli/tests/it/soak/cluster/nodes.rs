//! Three nodes on one store, each with its own way to the store, its own cache and its own clock.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use super::clock::{Clocks, NodeClock};
use super::proxy::Proxy;
use crate::harness::{ADMIN, Server, binary};
use crate::object_storage::services::{BUCKET, Service};
use crate::tls::CertificateFiles;

pub(super) const NODES: usize = 3;

/// How often a node is started while the store may be away.
const STARTS_MAX: u32 = 60;

/// All of it. Files are below `directory`.
pub(super) struct Nodes {
    pub(super) service: Service,
    pub(super) all: Vec<ClusterNode>,
    certificate: CertificateFiles,
    directory: TempDir,
}

/// One of them; `server` is there while it runs.
pub(super) struct ClusterNode {
    pub(super) server: Option<Server>,
    pub(super) proxy: Proxy,
    pub(super) clock: NodeClock,
    arguments: Vec<String>,
    cache: PathBuf,
}

impl Nodes {
    /// Starts everything; `None` if there is no S3 service on this machine.
    pub(super) fn start() -> Option<Self> {
        let service = Service::seaweedfs()?;
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let certificate = CertificateFiles::new();
        let clocks = Clocks::build(directory.path());
        let node = |number: usize| {
            let cache = path(&format!("cache-{number}"));
            let options = [
                ("--storage", &format!("s3://{BUCKET}/soak")),
                ("--cache-dir", &cache),
                ("--token", &ADMIN.to_owned()),
                ("--log-level", &"warn".to_owned()),
            ];
            let options = options.map(|(name, value)| format!("{name}={value}"));
            let arguments = options.into_iter().chain(certificate.arguments());
            ClusterNode {
                server: None,
                proxy: Proxy::to(service.port()),
                clock: clocks.clock(path(&format!("clock-{number}")).into()),
                arguments: arguments.collect(),
                cache: cache.into(),
            }
        };
        let all = (0..NODES).map(node).collect();
        let mut nodes = Self {
            service,
            all,
            certificate,
            directory,
        };
        for number in 0..NODES {
            nodes.launch(number);
        }
        Some(nodes)
    }

    /// Starts a node and tells the clients its ports.
    pub(super) fn launch(&mut self, number: usize) {
        let mut variables = self.service.variables();
        let node = &mut self.all[number];
        let endpoint = format!("http://127.0.0.1:{}", node.proxy.port);
        variables.insert("AWS_ENDPOINT_URL".to_owned(), endpoint);
        let arguments: Vec<&str> = node.arguments.iter().map(String::as_str).collect();
        let started = (0..STARTS_MAX).find_map(|_| {
            let mut command = binary();
            command.envs(&variables);
            node.clock.give_to(&mut command);
            Server::try_launch(command, &arguments)
        });
        assert!(started.is_some(), "node {number} does not start");
        node.server = started;
        self.tell_ports();
    }

    /// A node that is down keeps its place, with ports that nobody listens on.
    fn tell_ports(&self) {
        let ports = |node: &ClusterNode| match &node.server {
            Some(server) => {
                json!({"http": server.port, "grpc": server.grpc_port, "resp": server.resp_port})
            }
            None => json!({"http": 1, "grpc": 1, "resp": 1}),
        };
        let ports: Vec<_> = self.all.iter().map(ports).collect();
        let new = self.directory.path().join("nodes.new");
        std::fs::write(&new, json!(ports).to_string()).unwrap();
        std::fs::rename(&new, self.ports_file()).unwrap();
    }

    pub(super) fn ports_file(&self) -> PathBuf {
        self.directory.path().join("nodes")
    }

    pub(super) fn authority(&self) -> PathBuf {
        self.certificate.authority()
    }

    /// Makes a namespace. Returns its token.
    pub(super) fn create_namespace(&self, name: &str) -> String {
        let url = format!("https://localhost:{}", self.server(0).port);
        let mut create = binary();
        create.args(["ns", "create", name, "--url", &url, "--admin-token", ADMIN]);
        let created = create.arg("--cacert").arg(self.authority());
        let created = created.output().unwrap();
        let errors = String::from_utf8_lossy(&created.stderr);
        assert!(created.status.success(), "{errors}");
        String::from_utf8(created.stdout).unwrap().trim().to_owned()
    }

    /// The server of a node that runs.
    pub(super) fn server(&self, number: usize) -> &Server {
        self.all[number].server.as_ref().unwrap()
    }

    /// Kills a node and deletes what its machine has, if that is lost too.
    pub(super) fn kill(&mut self, number: usize, with_cache: bool) {
        self.all[number].server.take().unwrap().kill();
        if with_cache {
            remove(&self.all[number].cache);
        }
    }

    /// Stops a node as an operator does. Returns whether it says that all went well, which it cannot if
    /// the store is away.
    pub(super) fn stop(&mut self, number: usize) -> bool {
        let server = self.all[number].server.take().unwrap();
        server.terminate().success()
    }

    /// What must never be in a log, whatever fails.
    pub(super) fn check_logs(&self) {
        let mut wrong = String::new();
        for (number, node) in self.all.iter().enumerate() {
            let log = node.server.as_ref().map(Server::log).unwrap_or_default();
            for line in log.lines().filter(|line| line.contains("panicked")) {
                writeln!(wrong, "node {number}: {line}").unwrap();
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }

    /// Stops all nodes and compares every byte in the store with its checksum.
    pub(super) fn verify(mut self) {
        for number in 0..NODES {
            assert!(self.stop(number), "node {number} does not end well");
        }
        let url = format!("s3://{BUCKET}/soak");
        let verified = binary()
            .envs(self.service.variables())
            .current_dir(self.directory.path())
            .args(["verify", &url])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&verified.stdout);
        let errors = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success(), "{said}\n{errors}");
        assert!(said.contains("sound"), "{said}");
    }
}

fn remove(directory: &Path) {
    if directory.exists() {
        std::fs::remove_dir_all(directory).unwrap();
    }
}
