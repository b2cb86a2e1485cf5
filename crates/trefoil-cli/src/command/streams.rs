//! `trefoil streams`: which streams there are.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::ConnectionArguments;
use crate::output::{Column, CommandOutput};

/// How many streams are asked for at a time.
const PAGE: usize = 1000;

const EXAMPLES: &str = "Examples:
  trefoil streams
  trefoil streams account- --limit 20
  trefoil streams --json | jq -r .stream";

/// Lists streams by name.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only names that begin with this
    #[arg(default_value = "")]
    prefix: String,
    /// At most this many [default: all]
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedStream {
    stream: String,
    version: u64,
    last_activity: String,
}

const COLUMNS: &[Column<ListedStream>] = &[
    Column::Text("STREAM", |row| row.stream.clone()),
    Column::Text("VERSION", |row| row.version.to_string()),
    Column::Time("LAST ACTIVITY", |row| row.last_activity.clone()),
];

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let limit = self.limit.unwrap_or(usize::MAX);
        let mut rows: Vec<ListedStream> = Vec::new();
        while rows.len() < limit {
            let asked = PAGE.min(limit - rows.len());
            let cursor = rows.last().map_or("", |row| row.stream.as_str());
            let options = json!({"prefix": self.prefix, "limit": asked, "cursor": cursor});
            let page: Vec<ListedStream> = client.call(&("ns.streams", options))?;
            let is_last = page.len() < asked;
            rows.extend(page);
            if is_last {
                break;
            }
        }
        Ok(output.table(&rows, COLUMNS)?)
    }
}
