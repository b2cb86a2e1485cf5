//! Redaction: an event without what it said, for ever.

use bytes::Bytes;

use crate::{Event, EventItem, Payload, Timestamp};

impl Event {
    /// Returns the bytes of what stays of the event when it is redacted: its id, time, stream, position,
    /// type, tracked position and, if they are kept, its tags. Its data is `null`, and its metadata says
    /// when that happened.
    pub fn redacted(&self, time: Timestamp, keeps_tags: bool) -> Bytes {
        let tags: Vec<String> = match keeps_tags {
            true => self.tags().map(str::to_owned).collect(),
            false => Vec::new(),
        };
        let metadata = format!("{{\"redacted\":\"{time}\"}}");
        let tracking = self.tracking();
        let item = EventItem {
            id: self.id(),
            time: self.time(),
            commit_offset: self.position().wrapping_sub(self.commit()) as i64,
            stream: self.stream().zip(self.stream_position()),
            event_type: self.event_type(),
            tags: &tags,
            metadata: Some(metadata.as_bytes()),
            tracking: tracking.as_ref(),
            data: &Payload::json("null"),
            is_redacted: true,
        };
        let mut out = Vec::new();
        item.encode(&mut out);
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventId, Tracking};

    #[test]
    fn a_redacted_event_keeps_what_is_not_secret() {
        let tags = ["account:1".to_owned()];
        let tracking = Tracking::new("orders", 7);
        let item = EventItem {
            id: EventId::from_u128(77),
            time: Timestamp(-5),
            commit_offset: -3,
            stream: Some(("account-1", 300)),
            event_type: "Deposited",
            tags: &tags,
            metadata: Some(b"{\"by\":\"Ada\"}"),
            tracking: Some(&tracking),
            data: &Payload::json("{\"secret\":1}"),
            is_redacted: false,
        };
        let mut bytes = Vec::new();
        item.encode(&mut bytes);
        let event = Event::decode(9, bytes.into()).unwrap();
        assert!(!event.is_redacted());
        for keeps_tags in [true, false] {
            let stub = event.redacted(Timestamp(0), keeps_tags);
            let stub = Event::decode(9, stub).unwrap();
            assert!(stub.is_redacted());
            let kept = |event: &Event| {
                let stream = event.stream().map(str::to_owned);
                let place = (stream, event.stream_position(), event.commit());
                (place, event.id(), event.time(), event.tracking())
            };
            assert_eq!(kept(&stub), kept(&event));
            assert_eq!(stub.event_type(), "Deposited");
            assert_eq!(stub.tags().count(), usize::from(keeps_tags));
            let metadata = r#"{"redacted":"1970-01-01T00:00:00Z"}"#;
            assert_eq!(stub.metadata(), Some(metadata.as_bytes()));
            assert_eq!(stub.data(), b"null");
        }
    }
}
