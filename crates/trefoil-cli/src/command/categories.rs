//! `trefoil categories`: which categories there are.

use serde::{Deserialize, Serialize};

use crate::client::ConnectionArguments;
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

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CategoryRow {
    category: String,
    message_count: u64,
    stream_count: u64,
}

const COLUMNS: &[Column<CategoryRow>] = &[
    Column::Text("CATEGORY", |row| row.category.clone()),
    Column::Text("EVENTS", |row| row.message_count.to_string()),
    Column::Text("STREAMS", |row| row.stream_count.to_string()),
];

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let rows: Vec<CategoryRow> = self.connection.client()?.call(&("ns.categories",))?;
        Ok(output.table(&rows, COLUMNS)?)
    }
}
