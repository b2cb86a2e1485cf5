//! Events: as they are handed in, as they are stored, and as they are read.
//!
//! An [`Event`] keeps its stored bytes and knows where in them its parts are, so that reading one
//! costs one allocation. The byte layout is described in `docs/format.md`.

use bytes::Bytes;

use crate::commit::validate_stream_name;
use crate::limits::{
    EVENT_DATA_BYTES_MAX, EVENT_METADATA_BYTES_MAX, EVENT_TYPE_BYTES_MAX, POSITION_MAX,
    TAG_BYTES_MAX, TAGS_BYTES_PER_EVENT_MAX, TAGS_PER_EVENT_MAX,
};
use crate::{
    Error, EventId, Json, Payload, Result, Timestamp, Tracking, correlation_category,
    located_position, put_bytes, put_varint, take_bytes, take_varint,
};

/// An event to be appended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewEvent {
    /// The id; the server makes one if there is none.
    pub id: Option<EventId>,
    /// The stream to append to; an event without one is found by position, type and tags only.
    pub stream: Option<String>,
    /// The type.
    pub event_type: String,
    /// The body.
    pub data: Payload,
    /// A JSON object, kept byte for byte.
    pub metadata: Option<Json>,
    /// The tags.
    pub tags: Vec<String>,
}

impl NewEvent {
    /// Returns an event with a JSON body for a stream.
    pub fn new(
        stream: impl Into<String>,
        event_type: impl Into<String>,
        data: impl Into<Bytes>,
    ) -> Self {
        let mut event = Self::of(event_type, Payload::json(data));
        event.stream = Some(stream.into());
        event
    }

    /// Returns an event with a JSON body and without a stream, to be found by its type and its tags.
    pub fn without_stream(event_type: impl Into<String>, data: impl Into<Bytes>) -> Self {
        Self::of(event_type, Payload::json(data))
    }

    /// Returns an event with any body, and without a stream before it gets one.
    pub fn of(event_type: impl Into<String>, data: Payload) -> Self {
        Self {
            id: None,
            stream: None,
            event_type: event_type.into(),
            data,
            metadata: None,
            tags: Vec::new(),
        }
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: EventId) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the body, which need not be JSON then.
    #[must_use]
    pub fn with_data(mut self, data: Payload) -> Self {
        self.data = data;
        self
    }

    /// Sets the metadata, a JSON object.
    #[must_use]
    pub fn with_metadata(mut self, metadata: impl Into<Json>) -> Self {
        self.metadata = Some(metadata.into());
        self
    }

    /// Adds a tag.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Adds tags.
    #[must_use]
    pub fn with_tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags.extend(tags.into_iter().map(Into::into));
        self
    }

    /// Says which of the two a body is that may be JSON or not. The nil UUID is no id.
    pub fn settle(&mut self) {
        self.data.settle();
        self.id = self.id.filter(|id| !id.is_nil());
    }

    /// Returns about how many bytes the event takes in the log.
    pub fn size(&self) -> usize {
        let tags: usize = self.tags.iter().map(|tag| tag.len() + 1).sum();
        let stream = self.stream.as_ref().map_or(0, String::len);
        let metadata = self.metadata.as_ref().map_or(0, |metadata| metadata.len());
        64 + stream + self.event_type.len() + tags + metadata + self.data.bytes().len()
    }

    /// Checks every limit. Without a stream the type and the tags may be empty, as in UmaDB.
    pub fn validate(&self, data_bytes_max: usize) -> Result<()> {
        if let Some(stream) = &self.stream {
            validate_stream_name(stream)?;
        }
        let length = self.event_type.len();
        if length == 0 && self.stream.is_some() {
            return Err(Error::invalid("event type must be a non-empty string"));
        }
        if length > EVENT_TYPE_BYTES_MAX {
            return Err(Error::over_limit(
                "event type length",
                length,
                EVENT_TYPE_BYTES_MAX,
            ));
        }
        self.validate_tags()?;
        let length = self.data.bytes().len();
        if length > data_bytes_max {
            return Err(Error::DataTooLarge {
                bytes: length,
                limit: data_bytes_max,
            });
        }
        if self.data.is_broken() {
            return Err(Error::invalid("event data is not valid JSON"));
        }
        match &self.metadata {
            Some(metadata) if metadata.len() > EVENT_METADATA_BYTES_MAX => Err(Error::over_limit(
                "event metadata length",
                metadata.len(),
                EVENT_METADATA_BYTES_MAX,
            )),
            Some(metadata) if !metadata.is_object() => {
                Err(Error::invalid("event metadata is not a JSON object"))
            }
            _ => Ok(()),
        }
    }

    fn validate_tags(&self) -> Result<()> {
        if self.tags.len() > TAGS_PER_EVENT_MAX {
            return Err(Error::over_limit(
                "number of tags",
                self.tags.len(),
                TAGS_PER_EVENT_MAX,
            ));
        }
        let bytes: usize = self.tags.iter().map(String::len).sum();
        if bytes > TAGS_BYTES_PER_EVENT_MAX {
            let what = "bytes of all tags";
            return Err(Error::over_limit(what, bytes, TAGS_BYTES_PER_EVENT_MAX));
        }
        for tag in &self.tags {
            if tag.is_empty() && self.stream.is_some() {
                return Err(Error::invalid("a tag must be a non-empty string"));
            }
            if tag.len() > TAG_BYTES_MAX {
                return Err(Error::over_limit("tag length", tag.len(), TAG_BYTES_MAX));
            }
        }
        Ok(())
    }
}

/// An event that brings its positions and its time along.
#[derive(Debug, Clone)]
pub struct ImportedEvent {
    /// The event itself.
    pub event: NewEvent,
    /// Its position in its stream; ignored for an event without one.
    pub stream_position: u64,
    /// Its global position.
    pub position: u64,
    /// Its time.
    pub time: Timestamp,
    /// The position in another log that was recorded with it.
    pub tracking: Option<Tracking>,
    /// Whether it is what stays of a redacted event.
    pub is_redacted: bool,
}

impl ImportedEvent {
    /// Checks every limit on a single imported event.
    pub fn validate(&self) -> Result<()> {
        for (what, position) in [
            ("global position", self.position),
            ("stream position", self.stream_position),
        ] {
            if position > POSITION_MAX {
                return Err(Error::invalid(format!(
                    "{what} is {position}, the limit is {POSITION_MAX}"
                )));
            }
        }
        if let Some(tracking) = &self.tracking {
            tracking.validate()?;
        }
        self.event.validate(EVENT_DATA_BYTES_MAX)
    }
}

/// The parts of an event that is about to be stored, and their encoding.
#[derive(Debug, Clone, Copy)]
pub struct EventItem<'a> {
    /// The id.
    pub id: EventId,
    /// The time.
    pub time: Timestamp,
    /// The event's global position less the number of its commit: small, and the same for all
    /// events until a commit has none or several of them.
    pub commit_offset: i64,
    /// The stream and the position in it.
    pub stream: Option<(&'a str, u64)>,
    /// The type.
    pub event_type: &'a str,
    /// The tags.
    pub tags: &'a [String],
    /// The metadata.
    pub metadata: Option<&'a [u8]>,
    /// The position in another log that is recorded with it.
    pub tracking: Option<&'a Tracking>,
    /// The body.
    pub data: &'a Payload,
    /// Whether it is what stays of a redacted event.
    pub is_redacted: bool,
}

const HAS_STREAM: u8 = 1;
const HAS_METADATA: u8 = 2;
const DATA_IS_BINARY: u8 = 4;
const HAS_TRACKING: u8 = 8;
/// What it said was removed.
const REDACTED: u8 = 16;
const KNOWN_FLAGS: u8 = HAS_STREAM | HAS_METADATA | DATA_IS_BINARY | HAS_TRACKING | REDACTED;

/// Flags, id and time.
const FIXED_BYTES: usize = 1 + 16 + 8;

impl EventItem<'_> {
    /// Appends the stored form to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut flags = 0;
        if self.stream.is_some() {
            flags |= HAS_STREAM;
        }
        if self.metadata.is_some() {
            flags |= HAS_METADATA;
        }
        if !self.data.is_json() {
            flags |= DATA_IS_BINARY;
        }
        if self.tracking.is_some() {
            flags |= HAS_TRACKING;
        }
        if self.is_redacted {
            flags |= REDACTED;
        }
        out.push(flags);
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(&self.time.0.to_le_bytes());
        put_varint(out, zigzag(self.commit_offset));
        if let Some((stream, position)) = self.stream {
            put_varint(out, position);
            put_bytes(out, stream.as_bytes());
        }
        put_bytes(out, self.event_type.as_bytes());
        put_varint(out, self.tags.len() as u64);
        for tag in self.tags {
            put_bytes(out, tag.as_bytes());
        }
        if let Some(metadata) = self.metadata {
            put_bytes(out, metadata);
        }
        if let Some(tracking) = self.tracking {
            put_varint(out, tracking.position);
            put_bytes(out, tracking.source.as_bytes());
        }
        out.extend_from_slice(self.data.bytes());
    }
}

/// A part of an event's stored bytes.
type Span = (u32, u32);

/// An event as it was stored.
#[derive(Clone)]
pub struct Event {
    bytes: Bytes,
    position: u64,
    commit: u64,
    stream_position: u64,
    stream: Span,
    event_type: Span,
    /// From the first tag's length to the end of the last tag.
    tags: Span,
    metadata: Span,
    /// The source and the position in it, if any.
    tracking: Span,
    data: Span,
}

impl Event {
    /// Reads the stored form of the event at `position`; `None` if the bytes are not an event.
    #[inline]
    pub fn decode(position: u64, bytes: Bytes) -> Option<Self> {
        let whole: &[u8] = &bytes;
        let flags = *whole.first()?;
        if flags & !KNOWN_FLAGS != 0 {
            return None;
        }
        let mut rest = whole.get(FIXED_BYTES..)?;
        let span = |rest: &[u8], length: usize| -> Option<Span> {
            let end = u32::try_from(whole.len() - rest.len()).ok()?;
            Some((end - u32::try_from(length).ok()?, end))
        };
        let offset = unzigzag(take_varint(&mut rest)?);
        let commit = position.checked_add_signed(offset.checked_neg()?)?;
        let (mut stream_position, mut stream) = (0, (0, 0));
        if flags & HAS_STREAM != 0 {
            stream_position = take_varint(&mut rest)?;
            let length = take_bytes(&mut rest)?.len();
            stream = span(rest, length)?;
        }
        let length = take_bytes(&mut rest)?.len();
        let event_type = span(rest, length)?;
        let n_tags = take_varint(&mut rest)?;
        let before_tags = rest.len();
        for _ in 0..n_tags {
            take_bytes(&mut rest)?;
        }
        let tags = span(rest, before_tags - rest.len())?;
        let mut metadata = (0, 0);
        if flags & HAS_METADATA != 0 {
            let length = take_bytes(&mut rest)?.len();
            metadata = span(rest, length)?;
        }
        let before_tracking = rest.len();
        if flags & HAS_TRACKING != 0 {
            take_varint(&mut rest)?;
            std::str::from_utf8(take_bytes(&mut rest)?).ok()?;
        }
        let tracking = span(rest, before_tracking - rest.len())?;
        let data = span(&[], rest.len())?;
        let event = Self {
            position,
            commit,
            stream_position,
            stream,
            event_type,
            tags,
            metadata,
            tracking,
            data,
            bytes,
        };
        event.has_text_for_names().then_some(event)
    }

    /// Returns whether the stream, the type and the tags are UTF-8. Mostly they are ASCII and
    /// short, which one look at all of them and the lengths between them shows.
    fn has_text_for_names(&self) -> bool {
        let first = if self.has(HAS_STREAM) {
            self.stream
        } else {
            self.event_type
        };
        let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
        self.part((first.0, self.tags.1)).is_ascii()
            || (is_text(self.part(self.stream))
                && is_text(self.part(self.event_type))
                && self.tags_bytes().all(is_text))
    }

    fn tags_bytes(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut rest = self.part(self.tags);
        std::iter::from_fn(move || take_bytes(&mut rest))
    }

    fn part(&self, span: Span) -> &[u8] {
        &self.bytes[span.0 as usize..span.1 as usize]
    }

    /// Text that [`Event::decode`] has checked to be UTF-8.
    fn text(&self, span: Span) -> &str {
        std::str::from_utf8(self.part(span)).unwrap_or_default()
    }

    fn has(&self, flag: u8) -> bool {
        self.bytes[0] & flag != 0
    }

    /// Returns the id.
    pub fn id(&self) -> EventId {
        let mut id = [0; 16];
        id.copy_from_slice(&self.bytes[1..17]);
        EventId::from_bytes(id)
    }

    /// Returns the id if the writer gave it to the event; `None` if the database made it.
    pub fn given_id(&self) -> Option<EventId> {
        let id = self.id();
        (located_position(&id) != Some(self.position)).then_some(id)
    }

    /// Returns the global position.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of the commit that wrote the event.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// Returns the time.
    pub fn time(&self) -> Timestamp {
        let mut time = [0; 8];
        time.copy_from_slice(&self.bytes[17..FIXED_BYTES]);
        Timestamp(i64::from_le_bytes(time))
    }

    /// Returns the stream's name.
    pub fn stream(&self) -> Option<&str> {
        self.has(HAS_STREAM).then(|| self.text(self.stream))
    }

    /// Returns the position in the stream.
    pub fn stream_position(&self) -> Option<u64> {
        self.has(HAS_STREAM).then_some(self.stream_position)
    }

    /// Returns the type.
    pub fn event_type(&self) -> &str {
        self.text(self.event_type)
    }

    /// Returns the tags, in the order in which they were given.
    pub fn tags(&self) -> impl Iterator<Item = &str> + Clone {
        self.tags_bytes()
            .map(|tag| std::str::from_utf8(tag).unwrap_or_default())
    }

    /// Returns the metadata, a JSON object.
    pub fn metadata(&self) -> Option<&[u8]> {
        self.has(HAS_METADATA).then(|| self.part(self.metadata))
    }

    /// Returns the position in another log that was recorded with the event.
    pub fn tracking(&self) -> Option<Tracking> {
        let mut rest = self.part(self.tracking);
        let position = take_varint(&mut rest)?;
        let source = std::str::from_utf8(take_bytes(&mut rest)?).ok()?;
        Some(Tracking::new(source, position))
    }

    /// Returns the body.
    pub fn data(&self) -> &[u8] {
        self.part(self.data)
    }

    /// Returns whether what the event said was removed: this is a stub.
    pub fn is_redacted(&self) -> bool {
        self.has(REDACTED)
    }

    /// Returns whether the body is JSON.
    pub fn data_is_json(&self) -> bool {
        !self.has(DATA_IS_BINARY)
    }

    /// Returns the category of the stream that the metadata correlates this event with.
    pub fn correlation(&self) -> Option<String> {
        self.metadata().and_then(correlation_category)
    }

    /// Returns how many bytes the event takes in the log, without its header.
    pub fn stored_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Small numbers of either sign as small numbers.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Two events are equal if the same bytes are stored for them at the same position.
impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.position == other.position && self.bytes == other.bytes
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Event")
            .field("position", &self.position)
            .field("id", &self.id())
            .field("stream", &self.stream())
            .field("stream_position", &self.stream_position())
            .field("event_type", &self.event_type())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(stream: Option<(&str, u64)>, tags: &[String], metadata: Option<&[u8]>) -> Vec<u8> {
        let data = Payload::json(Bytes::from_static(b"{\"a\":1.0}"));
        let item = EventItem {
            id: EventId::from_u128(77),
            time: Timestamp(-5),
            commit_offset: -3,
            stream,
            event_type: "Deposited",
            tags,
            metadata,
            tracking: None,
            data: &data,
            is_redacted: false,
        };
        let mut out = Vec::new();
        item.encode(&mut out);
        out
    }

    #[test]
    fn an_event_comes_back_as_it_was_stored() {
        let tags = ["account:1".to_owned(), "é".to_owned()];
        let bytes = encoded(Some(("account-1", 300)), &tags, Some(b"{}"));
        let event = Event::decode(9, bytes.into()).unwrap();
        assert_eq!(event.id(), EventId::from_u128(77));
        assert_eq!(
            (event.position(), event.commit(), event.time()),
            (9, 12, Timestamp(-5))
        );
        assert_eq!(
            (event.stream(), event.stream_position()),
            (Some("account-1"), Some(300))
        );
        assert_eq!(event.event_type(), "Deposited");
        assert_eq!(event.tags().collect::<Vec<_>>(), ["account:1", "é"]);
        assert_eq!(event.metadata(), Some(&b"{}"[..]));
        assert_eq!(event.data(), b"{\"a\":1.0}");
    }

    #[test]
    fn an_event_may_have_neither_stream_nor_tags_nor_metadata() {
        let event = Event::decode(1, encoded(None, &[], None).into()).unwrap();
        assert_eq!(
            (event.stream(), event.stream_position(), event.metadata()),
            (None, None, None)
        );
        assert_eq!(event.tags().count(), 0);
    }

    #[test]
    fn cut_bytes_are_no_event() {
        let bytes = encoded(Some(("account-1", 300)), &["t".to_owned()], Some(b"{}"));
        let header = bytes.len() - b"{\"a\":1.0}".len();
        for length in 0..header {
            assert!(
                Event::decode(1, bytes[..length].to_vec().into()).is_none(),
                "{length}"
            );
        }
    }
}
