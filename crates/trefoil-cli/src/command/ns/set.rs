//! `trefoil ns set`: how a namespace is operated, and its quotas.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::ConnectionArguments;
use crate::output::CommandOutput;
use crate::settings::parse_bytes;

pub(super) const EXAMPLES: &str = "Without options it only shows them. `none` removes a quota.

Examples:
  trefoil ns set tenant-a --disk 10GiB --events-per-second 1000
  trefoil ns set tenant-a --connections none
  trefoil ns set tenant-a --json";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The namespace
    id: String,
    /// Bytes on disk
    #[arg(long, value_name = "BYTES", value_parser = bytes_or_none)]
    disk: Option<QuotaValue>,
    /// Events that may be appended within a second
    #[arg(long, value_name = "COUNT", value_parser = count_or_none)]
    events_per_second: Option<QuotaValue>,
    /// Connections, at each node
    #[arg(long, value_name = "COUNT", value_parser = count_or_none)]
    connections: Option<QuotaValue>,
    /// Open subscriptions
    #[arg(long, value_name = "COUNT", value_parser = count_or_none)]
    subscriptions: Option<QuotaValue>,
    /// Memory that is held for its clients, at each node
    #[arg(long, value_name = "BYTES", value_parser = bytes_or_none)]
    memory: Option<QuotaValue>,
    /// Has no effect any more: all namespaces share one cache
    #[arg(long, value_name = "WEIGHT")]
    cache_share: Option<u32>,
    /// Whether to open it when the server starts
    #[arg(long, value_name = "BOOL")]
    warm: Option<bool>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// A quota, or none.
#[derive(Debug, Clone, Copy)]
struct QuotaValue(Option<u64>);

fn bytes_or_none(text: &str) -> Result<QuotaValue, String> {
    match text {
        "none" => Ok(QuotaValue(None)),
        text => parse_bytes(text).map(|bytes| QuotaValue(Some(bytes))),
    }
}

fn count_or_none(text: &str) -> Result<QuotaValue, String> {
    match text {
        "none" => Ok(QuotaValue(None)),
        text => {
            let count = text.parse().map(|count| QuotaValue(Some(count)));
            count.map_err(|_| format!("{text:?} is neither a number nor none"))
        }
    }
}

#[derive(Serialize, Deserialize)]
struct ChangedSettings {
    namespace: String,
    settings: Value,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let changed: ChangedSettings = match self.changes() {
            Some(changes) => client.call(&json!(["ns.settings", self.id, changes]))?,
            None => client.call(&json!(["ns.settings", self.id]))?,
        };
        if !output.is_text() {
            return Ok(output.value(&changed)?);
        }
        Ok(output.line(format_args!("{}  {}", changed.namespace, changed.settings))?)
    }

    /// What is to be changed; `None` if nothing is.
    fn changes(&self) -> Option<Value> {
        let quotas = [
            ("diskBytes", self.disk),
            ("eventsPerSecond", self.events_per_second),
            ("connections", self.connections),
            ("subscriptions", self.subscriptions),
            ("memoryBytes", self.memory),
        ];
        let quotas = quotas.into_iter();
        let quotas = quotas.filter_map(|(name, quota)| Some((name.to_owned(), json!(quota?.0))));
        let quotas: Map<String, Value> = quotas.collect();
        let mut changes = Map::new();
        if !quotas.is_empty() {
            changes.insert("quotas".to_owned(), Value::Object(quotas));
        }
        if let Some(share) = self.cache_share {
            changes.insert("cacheShare".to_owned(), json!(share));
        }
        if let Some(warm) = self.warm {
            changes.insert("warm".to_owned(), json!(warm));
        }
        (!changes.is_empty()).then_some(Value::Object(changes))
    }
}
