//! Several servers that share an engine and reach each other: any of them answers for all.

mod door;
mod forwarding;
mod grpc;
mod listing;
mod lost;
mod moving;
mod quotas;
mod resp;
mod tokens;

use std::sync::Arc;

use tempfile::TempDir;
use trefoil::{DEFAULT_NAMESPACE, NamespaceId, Namespaces, NamespacesOptions};
use trefoil_kv::memory::MemoryEngine;
use trefoil_kv::{KvHome, KvHomeOptions};
use trefoil_server::{Config, PeersConfig};

use crate::client::request;
use crate::harness::TestServer;

/// A node of a cluster.
struct TestNode {
    server: TestServer,
    namespaces: Namespaces,
}

impl TestNode {
    /// Returns whether it has a namespace.
    fn has(&self, id: &NamespaceId) -> bool {
        self.namespaces.opened(id).is_some()
    }

    /// Stops it as a planned stop does.
    fn stop(mut self) {
        self.server.begin_shutdown();
        self.server.wait();
        self.namespaces.close().unwrap();
    }
}

/// What nodes share.
struct TestCluster {
    data: MemoryEngine,
    cache: TempDir,
}

impl TestCluster {
    fn new() -> Self {
        Self {
            data: MemoryEngine::default(),
            cache: tempfile::tempdir().unwrap(),
        }
    }

    /// Namespaces of one more process.
    fn namespaces(&self, name: &str) -> Namespaces {
        let options = KvHomeOptions::new(self.cache.path().join(name));
        let home = KvHome::open(Arc::new(self.data.clone()), options).unwrap();
        Namespaces::open_in(Arc::new(home), NamespacesOptions::default()).unwrap()
    }

    /// Starts a node.
    fn node(&self, name: &str) -> TestNode {
        let namespaces = self.namespaces(name);
        let config = Config {
            peers: Some(PeersConfig::default()),
            ..Config::default()
        };
        TestNode {
            server: TestServer::on(config, namespaces.clone()),
            namespaces,
        }
    }
}

fn default_namespace() -> NamespaceId {
    NamespaceId::new(DEFAULT_NAMESPACE).unwrap()
}

/// Returns the node that has the default namespace, and the others.
fn owner_and_others(mut nodes: Vec<TestNode>) -> (TestNode, Vec<TestNode>) {
    let id = default_namespace();
    let owner = nodes.iter().position(|node| node.has(&id)).unwrap();
    let owner = nodes.swap_remove(owner);
    (owner, nodes)
}

/// The value of a counter.
fn metric(node: &TestNode, line: &str) -> u64 {
    metric_so_far(node, line).unwrap_or_else(|| panic!("there is no {line}"))
}

/// The same of one that is there when something was counted.
fn metric_so_far(node: &TestNode, line: &str) -> Option<u64> {
    let reply = request(node.server.address, "GET", "/metrics", "", b"");
    let text = reply.text().to_owned();
    let value = text.lines().find_map(|found| found.strip_prefix(line))?;
    Some(value.trim().parse().unwrap())
}
