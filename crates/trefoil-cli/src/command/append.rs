//! `trefoil append`: one event with tags, if nothing stands in its way.

use std::borrow::Cow;

use anyhow::Context as _;

use super::commit::{CommitCondition, CommitEvent, CommitReply, CommitRequest};
use super::terms::GuardArguments;
use crate::client::ConnectionArguments;
use crate::input::{json_object, json_value};
use crate::output::CommandOutput;

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

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let metadata = self.metadata.as_deref();
        let metadata = metadata.map(|text| json_object("metadata", text));
        let event = CommitEvent::Parts {
            stream: self.stream.as_deref(),
            event_type: &self.event_type,
            data: Cow::Owned(json_value("data", &self.data)?),
            metadata: metadata.transpose()?,
            tags: &self.tags,
            id: self.id.as_deref(),
        };
        let commit = CommitRequest {
            conditions: self.conditions(),
            events: vec![event],
            ..CommitRequest::default()
        };
        let client = self.connection.client()?;
        let committed: CommitReply = client.call(&("commit", commit))?;
        let appended = committed.events.first();
        let appended = appended.context("the server's answer has no event")?;
        match output.is_text() {
            true => output.line(appended)?,
            false => output.value(appended)?,
        }
        Ok(())
    }

    fn conditions(&self) -> Vec<CommitCondition<'_>> {
        let version = self.stream.as_deref().zip(self.expected_version);
        let version = version.map(|(stream, expected_version)| CommitCondition::Version {
            stream,
            expected_version,
        });
        let guards = self.guards.iter();
        let guards = guards.map(|guard| CommitCondition::none_of(guard, self.after));
        version.into_iter().chain(guards).collect()
    }
}
