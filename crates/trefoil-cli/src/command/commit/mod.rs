//! `trefoil commit`: conditions, events and state, all or nothing.

mod flags;
mod reply;
mod request;

pub(super) use reply::StateReply;
pub(super) use request::{CommitCondition, CommitEvent, CommitReply, CommitRequest, StateWord};

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::terms::GuardArguments;
use crate::client::{ConnectionArguments, HttpClient};
use crate::exit::UsageError;
use crate::input::json_file;
use crate::output::CommandOutput;
use flags::EventArgument;
use request::TrackedPosition;

const EXAMPLES: &str = "A commit writes all of its events and runs all of its commands, or does nothing and exits with 3 if a
condition does not hold. Simple ones are made of flags. FILE has everything that a commit can have, as
the method `commit` of the HTTP API takes it.

Examples:
  trefoil commit --event 'Opened@account-1={\"owner\":\"Ada\"}' --expect account-1=-1
  trefoil commit --if-missing seat:7 --state 'SET seat:7 ada' --event Reserved@show-1 --tag seat:7
  trefoil commit --event Enrolled --tag course:c1 --if-none tag=course:c1 --after 41
  trefoil commit commit.json
  jq -n '{events: [{type: \"Opened\", data: {}}]}' | trefoil commit -";

/// Commits events and commands on the state, if all conditions hold.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The commit as JSON; - reads standard input
    #[arg(
        value_name = "FILE",
        required_unless_present_any = ["events", "commands", "track"],
        conflicts_with_all = [
            "events", "tags", "commands", "guards", "versions", "equal", "existing", "missing",
            "track", "id",
        ],
    )]
    file: Option<String>,
    /// An event: TYPE, TYPE@STREAM or TYPE@STREAM=JSON, or all of it as JSON; may be repeated
    #[arg(long = "event", value_name = "EVENT", value_parser = EventArgument::parse)]
    events: Vec<EventArgument>,
    /// A tag of every event that is not JSON; may be repeated
    #[arg(long = "tag", value_name = "TAG", requires = "events")]
    tags: Vec<String>,
    /// A command on the state, such as 'SET key value'; may be repeated
    #[arg(long = "state", value_name = "COMMAND", value_parser = CommandArgument::parse)]
    commands: Vec<CommandArgument>,
    /// Only if there is no such event; may be repeated
    #[arg(long = "if-none", value_name = "TERMS", value_parser = GuardArguments::parse)]
    guards: Vec<GuardArguments>,
    /// Only events after this global position count for --if-none
    #[arg(long, value_name = "POSITION", requires = "guards")]
    after: Option<u64>,
    /// Only if the stream is at this version, -1 if it must not exist; may be repeated
    #[arg(long = "expect", value_name = "STREAM=VERSION", value_parser = flags::parse_version)]
    versions: Vec<(String, i64)>,
    /// Only if the key has this value; may be repeated
    #[arg(long = "if-key", value_name = "KEY=VALUE", value_parser = flags::parse_equals)]
    equal: Vec<(String, String)>,
    /// Only if the key exists; may be repeated
    #[arg(long = "if-exists", value_name = "KEY")]
    existing: Vec<String>,
    /// Only if the key does not exist; may be repeated
    #[arg(long = "if-missing", value_name = "KEY")]
    missing: Vec<String>,
    /// Also record how far a source has been read
    #[arg(long, value_name = "SOURCE=POSITION", value_parser = flags::parse_tracking)]
    track: Option<TrackedPosition>,
    /// The id, a UUID: a commit that is sent again does nothing
    #[arg(long, value_name = "UUID")]
    id: Option<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// The words of a command.
#[derive(Debug, Clone)]
struct CommandArgument(Vec<String>);

impl CommandArgument {
    fn parse(text: &str) -> Result<Self, String> {
        flags::parse_command(text).map(Self)
    }
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let reply = match &self.file {
            Some(file) => {
                let commit = json_file("the commit", file)?;
                match commit.get().trim_start().starts_with('{') {
                    true => send(&client, &commit)?,
                    false => {
                        let text = "the commit must be a JSON object".to_owned();
                        return Err(UsageError(text).into());
                    }
                }
            }
            None => send(&client, &self.request())?,
        };
        if !output.is_text() {
            return Ok(output.value(&reply)?);
        }
        let CommitReply { events, state } = serde_json::from_str(reply.get())?;
        events.iter().try_for_each(|event| output.line(event))?;
        state
            .iter()
            .try_for_each(|reply| output.line(reply.typed()))?;
        Ok(())
    }

    fn request(&self) -> CommitRequest<'_> {
        let versions = self.versions.iter().map(|(stream, version)| {
            let expected_version = *version;
            CommitCondition::Version {
                stream,
                expected_version,
            }
        });
        let guards = self.guards.iter();
        let guards = guards.map(|guard| CommitCondition::none_of(guard, self.after));
        let equal = self.equal.iter();
        let equal = equal.map(|(key, equals)| CommitCondition::Equals { key, equals });
        let exists = |exists: bool| move |key| CommitCondition::Exists { key, exists };
        let existing = self.existing.iter().map(String::as_str).map(exists(true));
        let missing = self.missing.iter().map(String::as_str).map(exists(false));
        let word = |word: &'_ String| StateWord(Cow::Owned(word.clone().into_bytes()));
        CommitRequest {
            id: self.id.as_deref(),
            conditions: versions
                .chain(guards)
                .chain(equal)
                .chain(existing)
                .chain(missing)
                .collect(),
            events: self
                .events
                .iter()
                .map(|event| event.event(&self.tags))
                .collect(),
            state: self
                .commands
                .iter()
                .map(|command| command.0.iter().map(word).collect())
                .collect(),
            tracking: self.track.as_ref(),
        }
    }
}

fn send(client: &HttpClient, commit: &impl serde::Serialize) -> anyhow::Result<Box<RawValue>> {
    client.call(&("commit", commit))
}
