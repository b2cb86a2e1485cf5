//! `trefoil read`: events of the past.

use serde::Serialize;

use super::source::{ReadSource, SourceArguments};
use crate::client::{ConnectionArguments, EventRow, HttpClient, ShownEvent, StreamRow};
use crate::exit::{NotFound, UsageError};
use crate::output::CommandOutput;

/// How many events are asked for at a time.
const PAGE: u64 = 500;

const EXAMPLES: &str =
    "A line shows the global position, the time, the stream with the position in \
it, the type, the tags if there are any, and the data.

Examples:
  trefoil read account-1
  trefoil read account --from 1000 --limit 10 --json
  trefoil read account-1 --last --type Deposited
  trefoil read account --group 0/3 --correlation audit";

/// Reads events, oldest first: of a stream, of a category, or all.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// Begin here: a position in the stream, else a global position
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    from: u64,
    /// At most this many [default: all]
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only the last event of the stream
    #[arg(long, conflicts_with_all = ["from", "limit", "group", "correlation", "all"])]
    last: bool,
    /// With --last: the last event of this type
    #[arg(long = "type", value_name = "TYPE", requires = "last")]
    event_type: Option<String>,
    /// Only events correlated with a stream of this category; not for a stream
    #[arg(long, value_name = "CATEGORY")]
    correlation: Option<String>,
    /// Only streams of one member of a consumer group, as 0/3; not for a stream
    #[arg(long, value_name = "MEMBER/SIZE", value_parser = parse_group)]
    group: Option<GroupArguments>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct GroupArguments {
    member: u64,
    size: u64,
}

fn parse_group(text: &str) -> Result<GroupArguments, String> {
    let parts = text.split_once('/').and_then(|(member, size)| {
        let (member, size) = (member.parse().ok()?, size.parse().ok()?);
        Some(GroupArguments { member, size })
    });
    parts
        .filter(|group| group.member < group.size)
        .ok_or_else(|| "expected 0/3".to_owned())
}

/// One page of a read.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadRange<'a> {
    position: u64,
    batch_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_group: Option<GroupArguments>,
    tags: bool,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        output.begin_list();
        let client = self.connection.client()?;
        let source = self.source.source()?;
        let filtered = self.correlation.is_some() || self.group.is_some();
        match &source {
            ReadSource::Stream(_) if filtered => Err(UsageError(
                "--correlation and --group are for categories, not for a stream".to_owned(),
            )
            .into()),
            ReadSource::Stream(stream) if self.last => self.read_last(&client, stream, output),
            _ if self.last => Err(UsageError("--last is for a stream".to_owned()).into()),
            source => self.read_pages(&client, source, output),
        }
    }

    fn read_last(
        &self,
        client: &HttpClient,
        stream: &str,
        output: &mut CommandOutput,
    ) -> anyhow::Result<()> {
        let options = serde_json::json!({"type": self.event_type, "tags": true});
        let row: Option<StreamRow> = client.call(&("stream.last", stream, options))?;
        match row {
            Some(row) => print(&row.into_event(stream), output),
            None => Err(NotFound(format!("stream '{stream}' has no such event")).into()),
        }
    }

    fn read_pages(
        &self,
        client: &HttpClient,
        source: &ReadSource,
        output: &mut CommandOutput,
    ) -> anyhow::Result<()> {
        let mut position = self.from;
        let mut left = self.limit.unwrap_or(u64::MAX);
        let mut found = false;
        while left > 0 {
            let batch_size = left.min(PAGE);
            let events = self.page(client, source, position, batch_size)?;
            let Some(last) = events.last() else { break };
            found = true;
            position = 1 + match source {
                ReadSource::Stream(_) => u64::try_from(last.position)?,
                _ => last.global_position,
            };
            left -= (events.len() as u64).min(left);
            let is_full = events.len() as u64 == batch_size;
            events.iter().try_for_each(|event| print(event, output))?;
            if !is_full {
                break;
            }
        }
        match source {
            ReadSource::Stream(stream) if !found && left > 0 => check_exists(client, stream),
            _ => Ok(()),
        }
    }

    fn page(
        &self,
        client: &HttpClient,
        source: &ReadSource,
        position: u64,
        batch_size: u64,
    ) -> anyhow::Result<Vec<ShownEvent>> {
        let page = ReadRange {
            position,
            batch_size,
            correlation: self.correlation.as_deref(),
            consumer_group: self.group,
            tags: true,
        };
        let category = match source {
            ReadSource::Stream(stream) => {
                let rows: Vec<StreamRow> = client.call(&("stream.get", stream, page))?;
                return Ok(rows.into_iter().map(|row| row.into_event(stream)).collect());
            }
            ReadSource::Category(category) => category.as_str(),
            ReadSource::All => "",
        };
        let rows: Vec<EventRow> = client.call(&("category.get", category, page))?;
        Ok(rows.into_iter().map(EventRow::into_event).collect())
    }
}

/// An empty answer is right for a stream without events from there on, not for no stream at all.
fn check_exists(client: &HttpClient, stream: &str) -> anyhow::Result<()> {
    let version: Option<u64> = client.call(&("stream.version", stream))?;
    match version {
        Some(_) => Ok(()),
        None => Err(NotFound(format!("stream '{stream}' does not exist")).into()),
    }
}

pub(super) fn print(event: &ShownEvent, output: &mut CommandOutput) -> anyhow::Result<()> {
    match output.is_text() {
        true => output.line(event.line(&output.look))?,
        false => output.item(event)?,
    }
    Ok(())
}
