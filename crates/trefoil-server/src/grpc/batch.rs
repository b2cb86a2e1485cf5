//! Events as protobuf, written straight from what is stored into framed responses. A response is
//! full when it holds as many events as the client wants, or about as many bytes as it should.

use bytes::Bytes;
use prost::encoding::encoded_len_varint;
use tonic::Code;
use trefoil::{Event, EventId, Tracking};
use trefoil_grpc::ErrorType;

use super::body::{begin_frame, end_frame};
use super::metadata::put_entries;
use super::status::{Result, status};
use super::wire::{bytes_field_length, put_bytes_field, put_message_head, put_number_field};
use crate::budget::Reservation;
use crate::limits::{GRPC_MESSAGE_BYTES, GRPC_MESSAGE_BYTES_MAX};

/// The field numbers of a response.
const EVENTS: u32 = 1;
const HEAD: u32 = 2;

/// The most bytes that a head takes.
const HEAD_BYTES_MAX: usize = 11;

/// What a response says of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// Nothing.
    Unsaid,
    /// Where the log ended; 0 if it was empty.
    Log(u64),
    /// The position of the response's last event.
    LastEvent,
}

/// Framed responses, and what went wrong after them.
pub(super) struct ResponseBatch {
    pub(super) frames: Bytes,
    pub(super) failure: Result<()>,
}

impl ResponseBatch {
    /// The same, with the memory that it takes.
    pub(super) fn holding(self, mut reservation: Reservation) -> Self {
        let bytes = self.frames.len();
        reservation.shrink_to(bytes);
        reservation.grow_anyway(bytes);
        Self {
            frames: reservation.hold(self.frames),
            failure: self.failure,
        }
    }
}

/// Writes events into responses of at most `batch_size` of them. Without events there is one
/// response all the same.
pub(super) fn encode(events: &[Event], batch_size: usize, head: Head) -> ResponseBatch {
    let bytes: usize = events.iter().map(Event::stored_bytes).sum();
    let mut writer = BatchWriter {
        out: Vec::with_capacity(bytes + bytes / 8 + 16 * events.len() + 64),
        start: 0,
        count: 0,
        last: 0,
        batch_size,
        head,
        parts: Parts::default(),
    };
    begin_frame(&mut writer.out);
    let failure = events.iter().try_for_each(|event| writer.event(event));
    let is_failed_at_once = failure.is_err() && writer.count == 0;
    if is_failed_at_once {
        writer.out.truncate(writer.start);
    } else {
        writer.end_response();
    }
    ResponseBatch {
        frames: writer.out.into(),
        failure,
    }
}

struct BatchWriter {
    out: Vec<u8>,
    /// Where the frame of the current response begins.
    start: usize,
    /// How many events are in it.
    count: usize,
    /// The position of the last one.
    last: u64,
    batch_size: usize,
    head: Head,
    parts: Parts,
}

impl BatchWriter {
    fn event(&mut self, event: &Event) -> Result<()> {
        let length = self.parts.measure(event);
        let needed = bytes_field_length(length);
        let is_full = self.out.len() - self.start + needed > GRPC_MESSAGE_BYTES;
        if self.count > 0 && (is_full || self.count == self.batch_size) {
            self.end_response();
            self.start = self.out.len();
            self.count = 0;
            begin_frame(&mut self.out);
        }
        if needed + HEAD_BYTES_MAX > GRPC_MESSAGE_BYTES_MAX {
            return Err(too_large(event.position(), needed));
        }
        put_message_head(&mut self.out, EVENTS, length);
        self.parts.put(&mut self.out, event);
        self.count += 1;
        self.last = event.position();
        Ok(())
    }

    fn end_response(&mut self) {
        let head = match self.head {
            Head::Log(head) if head > 0 => Some(head),
            Head::LastEvent if self.count > 0 => Some(self.last),
            _ => None,
        };
        if let Some(head) = head {
            put_number_field(&mut self.out, HEAD, head);
        }
        end_frame(&mut self.out, self.start);
    }
}

fn too_large(position: u64, bytes: usize) -> Box<tonic::Status> {
    let text = format!(
        "the event at position {position} takes {bytes} bytes, a message may have \
         {GRPC_MESSAGE_BYTES_MAX}: read it over HTTP"
    );
    status(Code::OutOfRange, ErrorType::Io, text)
}

/// The field numbers of a `SequencedEvent`, and of the `Event` in it.
const POSITION: u32 = 1;
const EVENT: u32 = 2;
const TRACKING: u32 = 3;
const EVENT_TYPE: u32 = 1;
const TAGS: u32 = 2;
const DATA: u32 = 3;
const UUID: u32 = 4;
const METADATA: u32 = 5;

/// The field numbers of a `TrackingInfo`.
const TRACKING_SOURCE: u32 = 1;
const TRACKING_POSITION: u32 = 2;

/// What has to be known of an event before it is written, because lengths come first.
#[derive(Debug, Default)]
struct Parts {
    event_length: usize,
    id: Option<EventId>,
    /// The encoded entries.
    metadata: Vec<u8>,
    /// The encoded tracked position.
    tracking: Vec<u8>,
}

impl Parts {
    /// Returns how many bytes the `SequencedEvent` of this event takes.
    fn measure(&mut self, event: &Event) -> usize {
        self.id = event.given_id();
        self.metadata.clear();
        if let Some(metadata) = event.metadata() {
            put_entries(&mut self.metadata, METADATA, metadata);
        }
        self.tracking.clear();
        if let Some(tracking) = event.tracking() {
            put_tracking(&mut self.tracking, &tracking);
        }
        let tags: usize = event.tags().map(|tag| bytes_field_length(tag.len())).sum();
        let id = self.id.map_or(0, |_| bytes_field_length(ID_BYTES));
        self.event_length = bytes_field_length(event.event_type().len())
            + tags
            + bytes_field_length(event.data().len())
            + id
            + self.metadata.len();
        let tracking = match self.tracking.len() {
            0 => 0,
            length => bytes_field_length(length),
        };
        1 + encoded_len_varint(event.position()) + bytes_field_length(self.event_length) + tracking
    }

    /// Appends the `SequencedEvent` of the event that was measured last.
    fn put(&self, out: &mut Vec<u8>, event: &Event) {
        put_number_field(out, POSITION, event.position());
        put_message_head(out, EVENT, self.event_length);
        put_bytes_field(out, EVENT_TYPE, event.event_type().as_bytes());
        for tag in event.tags() {
            put_bytes_field(out, TAGS, tag.as_bytes());
        }
        put_bytes_field(out, DATA, event.data());
        if let Some(id) = self.id {
            let mut text = [0; ID_BYTES];
            put_bytes_field(
                out,
                UUID,
                id.hyphenated().encode_lower(&mut text).as_bytes(),
            );
        }
        out.extend_from_slice(&self.metadata);
        if !self.tracking.is_empty() {
            put_bytes_field(out, TRACKING, &self.tracking);
        }
    }
}

const ID_BYTES: usize = uuid::fmt::Hyphenated::LENGTH;

fn put_tracking(out: &mut Vec<u8>, tracking: &Tracking) {
    put_bytes_field(out, TRACKING_SOURCE, tracking.source.as_bytes());
    put_number_field(out, TRACKING_POSITION, tracking.position);
}
