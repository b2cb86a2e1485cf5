//! Events as rows: the arrays in which `/rpc` and `/events` return them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trefoil::Event;

use crate::json::{put_display, put_id, put_number, put_string, put_time};
use crate::reading::EventWriter;

/// What a row holds: `[id, streamName?, type, position, globalPosition, data, metadata, time, tags?]`
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowShape {
    pub(crate) has_stream: bool,
    pub(crate) has_tags: bool,
}

impl RowShape {
    /// All of it.
    pub(crate) const WHOLE: Self = Self {
        has_stream: true,
        has_tags: true,
    };
}

/// Appends an event as a row. Data and metadata appear byte for byte as they were written.
pub(crate) fn put_row(out: &mut Vec<u8>, event: &Event, shape: RowShape) {
    out.reserve(event.stored_bytes() + 160);
    out.push(b'[');
    put_id(out, event.id());
    out.push(b',');
    if shape.has_stream {
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
    if shape.has_tags {
        out.push(b',');
        put_tags(out, event);
    }
    out.push(b']');
}

/// Appends the tags as an array.
pub(crate) fn put_tags(out: &mut Vec<u8>, event: &Event) {
    out.push(b'[');
    for (index, tag) in event.tags().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_string(out, tag);
    }
    out.push(b']');
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

/// Writes an array of rows.
#[derive(Debug)]
pub(crate) struct EventRows {
    shape: RowShape,
    is_first: bool,
}

impl EventRows {
    pub(crate) fn new(shape: RowShape) -> Self {
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
        put_row(out, event, self.shape);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.push(b']');
    }
}
