//! The frames of a subscription. Clients split at blank lines and want exactly one space after a
//! colon, so every frame is written here.

use memchr::memmem;
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

/// What ends a frame; there is none of it inside one.
pub(super) const END: &[u8] = b"\n\n";

/// Returns the position of the last event in whole frames.
pub(super) fn last_position(frames: &[u8]) -> Option<u64> {
    let mut rest = frames.strip_suffix(END)?;
    loop {
        let (before, last) = match memmem::rfind(rest, END) {
            Some(end) => (Some(&rest[..end]), &rest[end + END.len()..]),
            None => (None, rest),
        };
        if let Some(position) = position(last) {
            return Some(position);
        }
        rest = before?;
    }
}

/// Returns the position of the event of a frame; `None` if it is a comment.
fn position(frame: &[u8]) -> Option<u64> {
    let digits = match frame.strip_prefix(ID) {
        Some(rest) => rest,
        None => {
            let name = memmem::rfind(frame, POSITION)?;
            frame.strip_prefix(POKE)?;
            &frame[name + POSITION.len()..]
        }
    };
    let end = digits.iter().position(|byte| !byte.is_ascii_digit());
    let digits = digits.get(..end.unwrap_or(digits.len()))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

const ID: &[u8] = b"id: ";
const POKE: &[u8] = b"event: poke\ndata: {\"stream\":";
const POSITION: &[u8] = b",\"globalPosition\":";

/// Appends the frame of an event, which is written in this shape if it is sent itself.
pub(super) fn put(out: &mut Vec<u8>, event: &Event, kind: FeedKind, shape: EventShape) {
    match kind {
        FeedKind::Poke => put_poke(out, event),
        FeedKind::Event => put_event(out, event, shape),
    }
}

fn put_poke(out: &mut Vec<u8>, event: &Event) {
    out.extend_from_slice(POKE);
    put_string(out, event.stream().unwrap_or_default());
    out.extend_from_slice(b",\"position\":");
    put_stream_position(out, event);
    out.extend_from_slice(POSITION);
    put_number(out, event.position());
    out.push(b'}');
    out.extend_from_slice(END);
}

fn put_event(out: &mut Vec<u8>, event: &Event, shape: EventShape) {
    out.extend_from_slice(ID);
    put_number(out, event.position());
    out.extend_from_slice(b"\nevent: event\ndata: ");
    let mut data = Vec::new();
    rows::put_event(&mut data, event, shape);
    put_on_one_line(out, &data);
    out.extend_from_slice(END);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_position_is_that_of_the_last_event() {
        let event = b"id: 41\nevent: event\ndata: {\"globalPosition\":7}\n\n";
        let poke = b"event: poke\ndata: {\"stream\":\",\\\"globalPosition\\\":9\",\"position\":3,\"globalPosition\":42}\n\n";
        assert_eq!(last_position(event), Some(41));
        assert_eq!(last_position(poke), Some(42));
        assert_eq!(
            last_position(&[&event[..], READY, KEEP_ALIVE].concat()),
            Some(41)
        );
        assert_eq!(
            last_position(&[&event[..], poke, KEEP_ALIVE].concat()),
            Some(42)
        );
        assert_eq!(last_position(KEEP_ALIVE), None);
        assert_eq!(last_position(b""), None);
    }
}
