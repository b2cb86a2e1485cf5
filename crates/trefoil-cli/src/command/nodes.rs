//! `trefoil nodes`: the nodes of a cluster.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::ConnectionArguments;
use crate::output::{Column, CommandOutput};

const EXAMPLES: &str = "Examples:
  trefoil nodes
  trefoil nodes --namespace shop                 Only the node that has it
  trefoil nodes --json | jq -r .address";

/// Lists the nodes of the cluster, as the one that is asked sees them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only the node that has this namespace
    #[arg(long, value_name = "ID")]
    namespace: Option<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Deserialize)]
struct ListedNodes {
    nodes: Vec<ListedNode>,
    #[serde(default)]
    owner: Option<String>,
}

/// A node.
#[derive(Serialize, Deserialize)]
struct ListedNode {
    id: String,
    address: Option<String>,
    version: String,
    started: String,
    state: String,
    namespaces: u64,
    #[serde(rename = "this")]
    is_this: bool,
}

const COLUMNS: &[Column<ListedNode>] = &[
    Column::Text("NODE", |row| row.id.chars().take(8).collect()),
    Column::Text("ADDRESS", |row| row.address.clone().unwrap_or_default()),
    Column::Text("VERSION", |row| row.version.clone()),
    Column::Time("STARTED", |row| row.started.clone()),
    Column::Text("STATE", |row| row.state.clone()),
    Column::Text("NAMESPACES", |row| row.namespaces.to_string()),
];

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let options = match &self.namespace {
            Some(namespace) => json!({"namespace": namespace}),
            None => json!({}),
        };
        let listed: ListedNodes = client.call(&("sys.nodes", options))?;
        let ListedNodes { mut nodes, owner } = listed;
        if self.namespace.is_some() {
            nodes.retain(|node| owner.as_ref() == Some(&node.id));
        }
        Ok(output.table(&nodes, COLUMNS)?)
    }
}
