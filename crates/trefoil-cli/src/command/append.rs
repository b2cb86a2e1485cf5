//! `trefoil append`: one event with tags, if nothing stands in its way.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::terms::{GuardArguments, ItemArguments, QueryArguments};
use crate::client::ConnectionArguments;
use crate::input::{json_object, json_value};
use crate::output::{CommandOutput, visible};

const EXAMPLES: &str = "A condition names types and tags: type=A,type=B,tag=x,tag=y is an event of type A or B with both
tags. The event is written only if there is no such event, or none after a position; otherwise the
exit code is 3. With after=N in it, a condition has a position of its own. A name with a comma needs
JSON: {\"types\":[\"A\"],\"tags\":[\"a,b\"]}.

Examples:
  trefoil append CourseDefined '{\"seats\":20}' --tag course:c1 --if-none type=CourseDefined,tag=course:c1
  trefoil append Enrolled --tag course:c1 --tag student:s1 --if-none tag=course:c1 --after 41
  trefoil append Placed '{\"total\":5}' --stream order-1 --expected-version -1 --if-none tag=token:77";

/// Appends one event, with or without a stream, and prints its position once it is on disk.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The type of the event
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// Data of the event, any JSON; - reads standard input
    #[arg(default_value = "{}")]
    data: String,
    /// A tag; repeat it for several
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// The stream; without one the event is found by its type and tags only
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// Metadata of the event, a JSON object
    #[arg(long, value_name = "JSON", alias = "meta")]
    metadata: Option<String>,
    /// The id, a UUID; appending an id again does nothing [default: a new one]
    #[arg(long, value_name = "UUID")]
    id: Option<String>,
    /// Append only if there is no such event; repeat it for several
    #[arg(long = "if-none", value_name = "TERMS", value_parser = GuardArguments::parse)]
    guards: Vec<GuardArguments>,
    /// Only events after this global position count for --if-none
    #[arg(long, value_name = "POSITION", requires = "guards")]
    after: Option<u64>,
    /// Append only if the stream is at this version; -1 if it must not exist
    #[arg(
        long,
        value_name = "VERSION",
        allow_negative_numbers = true,
        requires = "stream"
    )]
    expected_version: Option<i64>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Serialize)]
struct CommitRequest<'a> {
    conditions: Vec<CommitCondition<'a>>,
    events: [CommitEvent<'a>; 1],
}

#[derive(Serialize)]
#[serde(untagged)]
enum CommitCondition<'a> {
    #[serde(rename_all = "camelCase")]
    Version {
        stream: &'a str,
        expected_version: i64,
    },
    NoMatch {
        query: QueryArguments<'a>,
        after: Option<u64>,
    },
}

#[derive(Serialize)]
struct CommitEvent<'a> {
    stream: Option<&'a str>,
    #[serde(rename = "type")]
    event_type: &'a str,
    data: Box<RawValue>,
    metadata: Option<Box<RawValue>>,
    tags: &'a [String],
    id: Option<&'a str>,
}

#[derive(Deserialize)]
struct CommitReply {
    events: [AppendedEvent; 1],
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AppendedEvent {
    id: String,
    stream: String,
    position: i64,
    global_position: u64,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let metadata = self.metadata.as_deref();
        let metadata = metadata.map(|text| json_object("metadata", text));
        let event = CommitEvent {
            stream: self.stream.as_deref(),
            event_type: &self.event_type,
            data: json_value("data", &self.data)?,
            metadata: metadata.transpose()?,
            tags: &self.tags,
            id: self.id.as_deref(),
        };
        let commit = CommitRequest {
            conditions: self.conditions(),
            events: [event],
        };
        let client = self.connection.client()?;
        let committed: CommitReply = client.call(&("commit", commit))?;
        let [appended] = committed.events;
        if !output.is_text() {
            return Ok(output.value(&appended)?);
        }
        let AppendedEvent {
            position,
            global_position,
            ..
        } = appended;
        match &self.stream {
            None => output.line(global_position)?,
            Some(stream) => output.line(format_args!(
                "{}@{position}  {global_position}",
                visible(stream)
            ))?,
        }
        Ok(())
    }

    fn conditions(&self) -> Vec<CommitCondition<'_>> {
        let version = self.stream.as_deref().zip(self.expected_version);
        let version = version.map(|(stream, expected_version)| CommitCondition::Version {
            stream,
            expected_version,
        });
        let guards = self.guards.iter().map(|guard| CommitCondition::NoMatch {
            query: QueryArguments::of(&guard.item),
            after: guard.after.or(self.after),
        });
        version.into_iter().chain(guards).collect()
    }
}

impl<'a> QueryArguments<'a> {
    /// The events of one alternative, wherever they stand.
    fn of(item: &'a ItemArguments) -> Self {
        Self {
            items: vec![item],
            stream: None,
            category: None,
        }
    }
}
