//! `trefoil streams`: which streams there are.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::{ConnectionArguments, HttpClient};
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

/// A stream, and what it had last.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedStream {
    pub(super) stream: String,
    pub(super) version: u64,
    pub(super) last_activity: String,
}

const COLUMNS: &[Column<ListedStream>] = &[
    Column::Text("STREAM", |row| row.stream.clone()),
    Column::Text("VERSION", |row| row.version.to_string()),
    Column::Time("LAST ACTIVITY", |row| row.last_activity.clone()),
];

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let mut rows: Vec<ListedStream> = Vec::new();
        let limit = self.limit.unwrap_or(usize::MAX);
        for_each_page(&client, &self.prefix, limit, |page| rows.extend(page))?;
        Ok(output.table(&rows, COLUMNS)?)
    }
}

/// Lists streams by name, page by page, so that nobody has to hold them all.
pub(super) fn for_each_page(
    client: &HttpClient,
    prefix: &str,
    limit: usize,
    mut take: impl FnMut(Vec<ListedStream>),
) -> anyhow::Result<()> {
    let (mut left, mut cursor) = (limit, String::new());
    while left > 0 {
        let asked = PAGE.min(left);
        let options = json!({"prefix": prefix, "limit": asked, "cursor": cursor});
        let page: Vec<ListedStream> = client.call(&("ns.streams", options))?;
        left -= page.len().min(left);
        let Some(last) = page.last() else { break };
        cursor.clone_from(&last.stream);
        let is_last = page.len() < asked;
        take(page);
        if is_last {
            break;
        }
    }
    Ok(())
}
