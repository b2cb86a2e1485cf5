//! `trefoil audit`: who did what to namespaces and tokens.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::ConnectionArguments;
use crate::output::{Column, CommandOutput};

const EXAMPLES: &str = "Needs the token of the server, or that of `default`.

Examples:
  trefoil audit
  trefoil audit --limit 1000 --json | jq 'select(.action == \"token.revoke\")'
  trefoil audit --before 4711                    The page before that record";

/// Shows the audit log of the server, the newest record first.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// How many records to show, at most 1000
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: u64,
    /// Only records with lower numbers
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Serialize, Deserialize)]
struct ListedRecord {
    number: u64,
    time: String,
    action: String,
    namespace: String,
    by: ListedActor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<ListedFailure>,
}

#[derive(Serialize, Deserialize)]
struct ListedActor {
    namespace: String,
    token: String,
    address: String,
    protocol: String,
}

#[derive(Serialize, Deserialize)]
struct ListedFailure {
    record: u64,
    error: String,
}

const COLUMNS: &[Column<ListedRecord>] = &[
    Column::Text("NUMBER", |row| row.number.to_string()),
    Column::Time("TIME", |row| row.time.clone()),
    Column::Text("ACTION", |row| row.action.clone()),
    Column::Text("NAMESPACE", |row| row.namespace.clone()),
    Column::Text("BY", |row| match row.by.token.as_str() {
        "" => row.by.namespace.clone(),
        token => format!("{}/{token}", row.by.namespace),
    }),
    Column::Text("FROM", |row| row.by.address.clone()),
    Column::Text("DETAILS", |row| match (&row.failed, &row.details) {
        (Some(failed), _) => format!("{} failed: {}", failed.record, failed.error),
        (None, Some(details)) => details.to_string(),
        (None, None) => String::new(),
    }),
];

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let options = json!({"limit": self.limit, "before": self.before});
        let records: Vec<ListedRecord> =
            self.connection.client()?.call(&("audit.read", options))?;
        Ok(output.table(&records, COLUMNS)?)
    }
}
