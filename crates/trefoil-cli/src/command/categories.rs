//! `trefoil categories`: which categories there are.

use serde::{Deserialize, Serialize};

use crate::client::{ConnectionArguments, HttpClient};
use crate::output::{Column, CommandOutput};

const EXAMPLES: &str = "Examples:
  trefoil categories
  trefoil categories --json | jq -r .category";

/// Lists categories by name.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// A category, and how much it has.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CategoryRow {
    pub(super) category: String,
    pub(super) message_count: u64,
    pub(super) stream_count: u64,
}

const COLUMNS: &[Column<CategoryRow>] = &[
    Column::Text("CATEGORY", |row| row.category.clone()),
    Column::Text("EVENTS", |row| row.message_count.to_string()),
    Column::Text("STREAMS", |row| row.stream_count.to_string()),
];

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let rows = list(&self.connection.client()?)?;
        Ok(output.table(&rows, COLUMNS)?)
    }
}

/// All categories by name.
pub(super) fn list(client: &HttpClient) -> anyhow::Result<Vec<CategoryRow>> {
    client.call(&("ns.categories",))
}
