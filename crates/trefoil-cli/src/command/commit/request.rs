//! A commit as the server takes it, and what it answers.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::super::terms::{GuardArguments, ItemArguments, QueryArguments};
use super::reply::StateReply;
use crate::output::visible;

/// Conditions, events and commands that take effect together.
#[derive(Default, Serialize)]
pub(crate) struct CommitRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<CommitCondition<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<CommitEvent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) state: Vec<Vec<StateWord<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tracking: Option<&'a TrackedPosition>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum CommitCondition<'a> {
    #[serde(rename_all = "camelCase")]
    Version {
        stream: &'a str,
        expected_version: i64,
    },
    NoMatch {
        query: QueryArguments<'a>,
        after: Option<u64>,
    },
    Equals {
        key: &'a str,
        equals: &'a str,
    },
    Exists {
        key: &'a str,
        exists: bool,
    },
}

impl<'a> CommitCondition<'a> {
    /// No event matches, or none after a position: its own, else this one.
    pub(crate) fn none_of(guard: &'a GuardArguments, after: Option<u64>) -> Self {
        Self::NoMatch {
            query: QueryArguments::of(&guard.item),
            after: guard.after.or(after),
        }
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

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum CommitEvent<'a> {
    /// As it was given.
    Whole(&'a RawValue),
    Parts {
        #[serde(skip_serializing_if = "Option::is_none")]
        stream: Option<&'a str>,
        #[serde(rename = "type")]
        event_type: &'a str,
        data: Cow<'a, RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Box<RawValue>>,
        tags: &'a [String],
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
    },
}

/// A word of a command: text, or any bytes.
pub(crate) struct StateWord<'a>(pub(crate) Cow<'a, [u8]>);

impl<'a> From<&'a OsStr> for StateWord<'a> {
    fn from(word: &'a OsStr) -> Self {
        Self(Cow::Borrowed(word.as_bytes()))
    }
}

impl Serialize for StateWord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => json!({"$base64": STANDARD.encode(&self.0)}).serialize(serializer),
        }
    }
}

/// How far a writer has read in another log.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TrackedPosition {
    pub(crate) source: String,
    pub(crate) position: u64,
}

/// What the server answers.
#[derive(Deserialize)]
pub(crate) struct CommitReply {
    pub(crate) events: Vec<AppendedEvent>,
    #[serde(default)]
    pub(crate) state: Vec<StateReply>,
}

/// Where an event came to stand.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppendedEvent {
    id: String,
    stream: String,
    position: i64,
    global_position: u64,
}

/// The position, after the stream and the position in it if there is one.
impl std::fmt::Display for AppendedEvent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.stream.as_str() {
            "" => write!(formatter, "{}", self.global_position),
            stream => write!(
                formatter,
                "{}@{}  {}",
                visible(stream),
                self.position,
                self.global_position
            ),
        }
    }
}
