//! `trefoil retention`: how long and how many events are kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{ConnectionArguments, HttpClient};
use crate::input::confirm;
use crate::output::{Column, CommandOutput};
use crate::settings::parse_duration;

/// How many policies are asked for at a time.
const PAGE: usize = 1000;

const EXAMPLES: &str =
    "What is beyond a policy is removed in the background, within seconds. A policy of a \
stream counts instead of that of its category.

Examples:
  trefoil retention set --category session --max-age 30d
  trefoil retention set --stream ticker-1 --max-count 1000
  trefoil retention list
  trefoil retention remove --category session";

/// Sets, lists and removes retention policies.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: RetentionAction,
}

#[derive(Debug, clap::Subcommand)]
enum RetentionAction {
    /// Set the policy of a stream or a category
    #[command(
        after_help = "Example:\n  trefoil retention set --category session --max-age 30d --yes",
        override_usage = "trefoil retention set --category <CATEGORY> --max-age <DURATION> [OPTIONS]"
    )]
    Set(SetPolicy),
    /// List the policies
    #[command(after_help = "Example:\n  trefoil retention list --json")]
    List {
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Remove the policy of a stream or a category: from then on everything is kept
    #[command(after_help = "Example:\n  trefoil retention remove --category session")]
    Remove {
        #[command(flatten)]
        target: PolicyTarget,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

/// What a policy is about.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct PolicyTarget {
    /// This stream
    #[arg(long, value_name = "STREAM")]
    stream: Option<String>,
    /// Each stream of this category that has no policy of its own
    #[arg(long, value_name = "CATEGORY")]
    category: Option<String>,
}

#[derive(Debug, clap::Args)]
struct SetPolicy {
    #[command(flatten)]
    target: PolicyTarget,
    #[command(flatten)]
    maxima: PolicyMaxima,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// What is kept.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct PolicyMaxima {
    /// Remove events that are older, like 90s, 30m, 24h or 7d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    max_age: Option<Duration>,
    /// Keep so many events of each stream
    #[arg(long, value_name = "COUNT")]
    max_count: Option<u64>,
}

/// A policy, as the server tells of it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedPolicy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<String>,
    max_age: Option<u64>,
    max_count: Option<u64>,
}

impl ListedPolicy {
    fn target(&self) -> Value {
        match (&self.stream, &self.category) {
            (Some(stream), _) => json!({"stream": stream}),
            (None, category) => json!({"category": category}),
        }
    }
}

const COLUMNS: &[Column<ListedPolicy>] = &[
    Column::Text("CATEGORY", |row| or_dash(row.category.as_ref())),
    Column::Text("STREAM", |row| or_dash(row.stream.as_ref())),
    Column::Text("MAX AGE", |row| or_dash(row.max_age.map(age).as_ref())),
    Column::Text("MAX COUNT", |row| or_dash(row.max_count.as_ref())),
];

fn or_dash(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}

/// An age in the largest unit in which it is a whole number.
fn age(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let unit = units.iter().find(|(unit, _)| seconds.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or(&(1, "s"));
    format!("{}{name}", seconds / unit)
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.action {
            RetentionAction::Set(arguments) => arguments.run(output),
            RetentionAction::List { connection } => {
                Ok(output.table(&all_policies(&connection.client()?)?, COLUMNS)?)
            }
            RetentionAction::Remove { target, connection } => {
                let policy = json!({"stream": target.stream, "category": target.category});
                set(&connection.client()?, policy, output)
            }
        }
    }
}

impl SetPolicy {
    fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let PolicyTarget { stream, category } = &self.target;
        let name = match (stream, category) {
            (Some(stream), _) => format!("stream '{stream}'"),
            (None, category) => format!("category '{}'", or_dash(category.as_ref())),
        };
        confirm(
            &format!("Remove all events of {name} beyond this?"),
            self.yes,
        )?;
        let policy = json!({
            "stream": stream,
            "category": category,
            "maxAge": self.maxima.max_age.map(|age| age.as_secs()),
            "maxCount": self.maxima.max_count,
        });
        set(&client, policy, output)
    }
}

fn set(client: &HttpClient, policy: Value, output: &mut CommandOutput) -> anyhow::Result<()> {
    let policy: ListedPolicy = client.call(&("retention.set", policy))?;
    if !output.is_text() {
        return Ok(output.value(&policy)?);
    }
    let name = policy.stream.as_ref().or(policy.category.as_ref());
    let kept = match (policy.max_age, policy.max_count) {
        (None, None) => "everything is kept".to_owned(),
        (Some(seconds), None) => format!("kept for {}", age(seconds)),
        (None, Some(count)) => format!("{count} events are kept"),
        (Some(seconds), Some(count)) => format!("{count} events are kept for {}", age(seconds)),
    };
    Ok(output.line(format!("{}  {kept}", or_dash(name)))?)
}

fn all_policies(client: &HttpClient) -> anyhow::Result<Vec<ListedPolicy>> {
    let (mut policies, mut after) = (Vec::new(), Value::Null);
    loop {
        let options = json!({"limit": PAGE, "after": after});
        let page: Vec<ListedPolicy> = client.call(&("retention.list", options))?;
        let is_last = page.len() < PAGE;
        policies.extend(page);
        match policies.last() {
            Some(last) if !is_last => after = last.target(),
            _ => return Ok(policies),
        }
    }
}
