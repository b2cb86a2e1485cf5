//! `trefoil categories`: which categories there are.

use serde::{Deserialize, Serialize};

use crate::client::Connection;
use crate::output::{Column, Output};

const EXAMPLES: &str = "Examples:
  trefoil categories
  trefoil categories --json | jq -r .category";

/// Lists categories by name.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    category: String,
    message_count: u64,
    stream_count: u64,
}

const COLUMNS: &[Column<Row>] = &[
    ("CATEGORY", |row| row.category.clone()),
    ("EVENTS", |row| row.message_count.to_string()),
    ("STREAMS", |row| row.stream_count.to_string()),
];

impl Arguments {
    pub(crate) fn run(self, output: &mut Output) -> anyhow::Result<()> {
        let rows: Vec<Row> = self.connection.client()?.call(&("ns.categories",))?;
        Ok(output.table(&rows, COLUMNS)?)
    }
}
