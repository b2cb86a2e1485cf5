//! The frames of a subscription. Clients split at blank lines and want exactly one space after a
//! colon, so every frame is written here.

use trefoil::Event;

use crate::json::{put_number, put_on_one_line, put_string};
use crate::rpc::rows::{self, EventShape, put_stream_position};

/// What a subscription sends for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedKind {
    /// That it was written.
    Poke,
    /// The event itself.
    Event,
}

/// Sent at once, so that a client knows that it is subscribed.
pub(super) const READY: &[u8] = b": ready\n\n";
/// Sent when there has been nothing else to send for a while.
pub(super) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Appends the frame of an event, which is written in this shape if it is sent itself.
pub(super) fn put(out: &mut Vec<u8>, event: &Event, kind: FeedKind, shape: EventShape) {
    match kind {
        FeedKind::Poke => put_poke(out, event),
        FeedKind::Event => put_event(out, event, shape),
    }
}

fn put_poke(out: &mut Vec<u8>, event: &Event) {
    out.extend_from_slice(b"event: poke\ndata: {\"stream\":");
    put_string(out, event.stream().unwrap_or_default());
    out.extend_from_slice(b",\"position\":");
    put_stream_position(out, event);
    out.extend_from_slice(b",\"globalPosition\":");
    put_number(out, event.position());
    out.extend_from_slice(b"}\n\n");
}

fn put_event(out: &mut Vec<u8>, event: &Event, shape: EventShape) {
    out.extend_from_slice(b"id: ");
    put_number(out, event.position());
    out.extend_from_slice(b"\nevent: event\ndata: ");
    let mut data = Vec::new();
    rows::put_event(&mut data, event, shape);
    put_on_one_line(out, &data);
    out.extend_from_slice(b"\n\n");
}
