//! Events as `/rpc` and `/events` return them: as arrays, which are EventoDB's rows, or as objects if the
//! caller asks for them. The command line prints the same objects.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trefoil::Event;

use crate::error::{Failure, Result};
use crate::json::{put_array, put_display, put_id, put_number, put_string, put_time};
use crate::reading::EventWriter;

/// How an event is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EventShape {
    /// `[id, streamName?, type, position, globalPosition, data, metadata, time, tags?]`
    Row { has_stream: bool, has_tags: bool },
    /// `{"id", "stream", "type", "position", "globalPosition", "data", "metadata", "time", "tags"}`
    Object,
}

impl EventShape {
    /// A row with all that it may hold.
    pub(crate) const WHOLE_ROW: Self = Self::Row {
        has_stream: true,
        has_tags: true,
    };

    /// Returns this shape, or another one if the caller asks for it; `what` is how errors call the
    /// option.
    pub(crate) fn or_as_asked(self, asked: Option<&str>, what: &str) -> Result<Self> {
        match asked {
            None | Some("arrays") => Ok(self),
            Some("objects") => Ok(Self::Object),
            Some(_) => Err(Failure::invalid(format!(
                "{what} must be \"arrays\" or \"objects\""
            ))),
        }
    }
}

/// Appends an event. Data and metadata appear byte for byte as they were written.
pub(crate) fn put_event(out: &mut Vec<u8>, event: &Event, shape: EventShape) {
    out.reserve(event.stored_bytes() + 240);
    match shape {
        EventShape::Row {
            has_stream,
            has_tags,
        } => put_row(out, event, has_stream, has_tags),
        EventShape::Object => put_object(out, event),
    }
}

fn put_object(out: &mut Vec<u8>, event: &Event) {
    out.extend_from_slice(b"{\"id\":");
    put_id(out, event.id());
    out.extend_from_slice(b",\"stream\":");
    put_string(out, event.stream().unwrap_or_default());
    out.extend_from_slice(b",\"type\":");
    put_string(out, event.event_type());
    out.extend_from_slice(b",\"position\":");
    put_stream_position(out, event);
    out.extend_from_slice(b",\"globalPosition\":");
    put_number(out, event.position());
    out.extend_from_slice(b",\"data\":");
    put_data(out, event);
    out.extend_from_slice(b",\"metadata\":");
    out.extend_from_slice(event.metadata().unwrap_or(b"null"));
    out.extend_from_slice(b",\"time\":");
    put_time(out, event.time());
    out.extend_from_slice(b",\"tags\":");
    put_tags(out, event);
    out.push(b'}');
}

fn put_row(out: &mut Vec<u8>, event: &Event, has_stream: bool, has_tags: bool) {
    out.push(b'[');
    put_id(out, event.id());
    out.push(b',');
    if has_stream {
        put_string(out, event.stream().unwrap_or_default());
        out.push(b',');
    }
    put_string(out, event.event_type());
    out.push(b',');
    put_stream_position(out, event);
    out.push(b',');
    put_number(out, event.position());
    out.push(b',');
    put_data(out, event);
    out.push(b',');
    out.extend_from_slice(event.metadata().unwrap_or(b"null"));
    out.push(b',');
    put_time(out, event.time());
    if has_tags {
        out.push(b',');
        put_tags(out, event);
    }
    out.push(b']');
}

/// Appends the tags as an array.
pub(crate) fn put_tags(out: &mut Vec<u8>, event: &Event) {
    put_array(out, event.tags(), put_string);
}

/// Appends the position in the stream; -1 for an event without a stream.
pub(crate) fn put_stream_position(out: &mut Vec<u8>, event: &Event) {
    let position = event.stream_position();
    put_number(out, position.map_or(-1, i128::from));
}

/// Appends the data; what is not JSON appears in base64.
pub(crate) fn put_data(out: &mut Vec<u8>, event: &Event) {
    if event.data_is_json() {
        out.extend_from_slice(event.data());
        return;
    }
    out.extend_from_slice(b"{\"$base64\":");
    put_display(out, STANDARD.encode(event.data()));
    out.push(b'}');
}

/// Writes an array of events.
#[derive(Debug)]
pub(crate) struct EventRows {
    shape: EventShape,
    is_first: bool,
}

impl EventRows {
    pub(crate) fn new(shape: EventShape) -> Self {
        Self {
            shape,
            is_first: true,
        }
    }
}

impl EventWriter for EventRows {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.push(b'[');
    }

    fn event(&mut self, out: &mut Vec<u8>, event: &Event) {
        if !self.is_first {
            out.push(b',');
        }
        self.is_first = false;
        put_event(out, event, self.shape);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.push(b']');
    }
}
