//! Events as the server sends them, and as the command line shows them.

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::output::{Look, QUIET, STREAM, TAGS, TYPE, visible};

/// A row of `stream.get`: id, type, position, global position, data, metadata, time, tags. A
/// server that is older than they are does not tell the tags.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamRow(
    String,
    String,
    i64,
    u64,
    Box<RawValue>,
    Option<Box<RawValue>>,
    String,
    #[serde(default)] Vec<String>,
);

/// A row of `category.get`, `events.query` and `/events`: as of a stream, with the stream's name
/// after the id.
#[derive(Debug, Deserialize)]
pub(crate) struct EventRow(
    String,
    String,
    String,
    i64,
    u64,
    Box<RawValue>,
    Option<Box<RawValue>>,
    String,
    #[serde(default)] Vec<String>,
);

/// An event. Data and metadata are kept byte for byte, but for line breaks between their tokens
/// where an event has to fit into a line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownEvent {
    pub(crate) id: String,
    pub(crate) stream: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) position: i64,
    pub(crate) global_position: u64,
    #[serde(serialize_with = "on_one_line")]
    pub(crate) data: Box<RawValue>,
    #[serde(serialize_with = "on_one_line_if_any")]
    pub(crate) metadata: Option<Box<RawValue>>,
    pub(crate) time: String,
    pub(crate) tags: Vec<String>,
}

/// A line break between tokens is as good as a space, and within a string there is none.
fn on_one_line<S: Serializer>(json: &RawValue, serializer: S) -> Result<S::Ok, S::Error> {
    if !json.get().contains(['\n', '\r']) {
        return json.serialize(serializer);
    }
    let line = RawValue::from_string(json.get().replace(['\n', '\r'], " "));
    line.map_err(S::Error::custom)?.serialize(serializer)
}

fn on_one_line_if_any<S: Serializer>(
    json: &Option<Box<RawValue>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match json {
        Some(json) => on_one_line(json, serializer),
        None => serializer.serialize_none(),
    }
}

impl StreamRow {
    pub(crate) fn into_event(self, stream: &str) -> ShownEvent {
        let Self(id, event_type, position, global, data, metadata, time, tags) = self;
        let stream = stream.to_owned();
        EventRow(
            id, stream, event_type, position, global, data, metadata, time, tags,
        )
        .into_event()
    }
}

impl EventRow {
    pub(crate) fn into_event(self) -> ShownEvent {
        ShownEvent {
            id: self.0,
            stream: self.1,
            event_type: self.2,
            position: self.3,
            global_position: self.4,
            data: self.5,
            metadata: self.6,
            time: self.7,
            tags: self.8,
        }
    }
}

impl ShownEvent {
    /// One line: global position, time, stream and position in it or a dash, type, tags if there
    /// are any, data.
    pub(crate) fn line(&self, look: &Look) -> String {
        let time = look.time(&self.time);
        let stream = match self.stream.as_str() {
            "" => "-".to_owned(),
            stream => {
                let position = look.paint(QUIET, format_args!("@{}", self.position));
                format!("{}{position}", look.paint(STREAM, visible(stream)))
            }
        };
        let tags = match self.tags.is_empty() {
            true => String::new(),
            false => {
                let tags = self.tags.join(", ");
                look.paint(TAGS, format_args!("[{}]", visible(&tags))) + "  "
            }
        };
        format!(
            "{}  {}  {stream}  {}  {tags}{}",
            look.paint(QUIET, self.global_position),
            look.paint(QUIET, time),
            look.paint(TYPE, visible(&self.event_type)),
            visible(self.data.get())
        )
    }
}
