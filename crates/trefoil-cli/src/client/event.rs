//! Events as the server sends them, and as the command line shows them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::output::visible;

/// A row of `stream.get`: id, type, position, global position, data, metadata, time.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamRow(
    String,
    String,
    i64,
    u64,
    Box<RawValue>,
    Option<Box<RawValue>>,
    String,
);

/// A row of `category.get`: as of a stream, with the stream's name after the id.
#[derive(Debug, Deserialize)]
pub(crate) struct CategoryRow(
    String,
    String,
    String,
    i64,
    u64,
    Box<RawValue>,
    Option<Box<RawValue>>,
    String,
);

/// An event. Data and metadata are kept byte for byte.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) stream: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) position: i64,
    pub(crate) global_position: u64,
    pub(crate) data: Box<RawValue>,
    pub(crate) metadata: Option<Box<RawValue>>,
    pub(crate) time: String,
}

impl StreamRow {
    pub(crate) fn into_event(self, stream: &str) -> Event {
        let Self(id, event_type, position, global, data, metadata, time) = self;
        CategoryRow(
            id,
            stream.to_owned(),
            event_type,
            position,
            global,
            data,
            metadata,
            time,
        )
        .into_event()
    }
}

impl CategoryRow {
    pub(crate) fn into_event(self) -> Event {
        Event {
            id: self.0,
            stream: self.1,
            event_type: self.2,
            position: self.3,
            global_position: self.4,
            data: self.5,
            metadata: self.6,
            time: self.7,
        }
    }
}

/// One line: global position, time, stream and position in it, type, data.
impl std::fmt::Display for Event {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{}  {}  {}@{}  {}  {}",
            self.global_position,
            self.time,
            visible(&self.stream),
            self.position,
            visible(&self.event_type),
            visible(self.data.get()),
        )
    }
}
