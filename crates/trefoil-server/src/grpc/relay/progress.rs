//! How far the client of a stream has come, and what is left for another node to answer.

use bytes::Bytes;
use prost::Message as _;
use trefoil_grpc::{ReadRequest, SubscribeRequest};

use super::super::wire::{WireFields, WireValue};

/// A flag and the length of the message.
const PREFIX_BYTES: usize = 5;

/// The fields of a response and of an event in it.
const EVENTS: u32 = 1;
const POSITION: u32 = 1;

/// What a client has got of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamProgress {
    /// The position of the last event.
    pub(super) last: Option<u64>,
    n_events: u64,
    /// Whether there was a response, perhaps without events.
    has_answered: bool,
    /// Up to where a read reads, once that is known.
    pub(super) as_of: Option<u64>,
}

impl StreamProgress {
    /// Notes framed responses. Returns whether they tell anything new: one without events is the
    /// answer to a read that finds nothing, and is told once.
    pub(super) fn note(&mut self, mut frames: &[u8]) -> bool {
        let (before, had_answered) = (self.n_events, self.has_answered);
        while let Some((prefix, rest)) = frames.split_first_chunk::<PREFIX_BYTES>() {
            let [_, length @ ..] = *prefix;
            let length = (u32::from_be_bytes(length) as usize).min(rest.len());
            let (message, rest) = rest.split_at(length);
            self.note_response(message);
            frames = rest;
        }
        self.has_answered = true;
        self.n_events > before || !had_answered
    }

    fn note_response(&mut self, message: &[u8]) {
        for field in WireFields::of(message) {
            if let Ok((EVENTS, WireValue::Bytes(event))) = field {
                self.n_events += 1;
                let position = WireFields::of(event).find_map(|field| match field {
                    Ok((POSITION, WireValue::Number(position))) => Some(position),
                    _ => None,
                });
                self.last = position.or(self.last);
            }
        }
    }

    /// Returns the position that the log has for certain.
    pub(super) fn known(&self) -> Option<u64> {
        self.as_of.max(self.last)
    }

    /// Returns what is left of a read; `None` if nothing is.
    pub(super) fn rest_of_read(&self, request: &Bytes) -> Option<Bytes> {
        // Whoever answers says what is wrong with a request that nobody understands.
        let (Some(last), Ok(mut rest)) = (self.last, ReadRequest::decode(request.clone())) else {
            return Some(request.clone());
        };
        if let Some(limit) = rest.limit {
            let left = u64::from(limit).saturating_sub(self.n_events);
            rest.limit = Some(u32::try_from(left).ok().filter(|left| *left > 0)?);
        }
        rest.start = Some(match rest.backwards {
            Some(true) => last.checked_sub(1).filter(|start| *start > 0)?,
            _ => last.checked_add(1)?,
        });
        Some(rest.encode_to_vec().into())
    }

    /// Returns what is left of a subscription; `None` if nothing can come.
    pub(super) fn rest_of_subscribe(&self, request: &Bytes) -> Option<Bytes> {
        let Ok(mut rest) = SubscribeRequest::decode(request.clone()) else {
            return Some(request.clone());
        };
        rest.after = self.last.or(rest.after);
        (rest.after != Some(u64::MAX)).then(|| rest.encode_to_vec().into())
    }
}

#[cfg(test)]
mod tests {
    use trefoil_grpc::{ReadResponse, SequencedEvent};

    use super::super::super::body::framed;
    use super::*;

    fn response(positions: &[u64]) -> Bytes {
        let event = |position: &u64| SequencedEvent {
            position: *position,
            ..SequencedEvent::default()
        };
        framed(&ReadResponse {
            events: positions.iter().map(event).collect(),
            head: Some(9),
        })
    }

    fn noted(responses: &[&[u64]]) -> StreamProgress {
        let mut progress = StreamProgress::default();
        for positions in responses {
            progress.note(&response(positions));
        }
        progress
    }

    #[track_caller]
    fn check_rest(request: &ReadRequest, got: &[&[u64]], expected: Option<&ReadRequest>) {
        let bytes = Bytes::from(request.encode_to_vec());
        let rest = noted(got).rest_of_read(&bytes);
        let rest = rest.map(|rest| ReadRequest::decode(rest).unwrap());
        assert_eq!(rest.as_ref(), expected);
    }

    #[test]
    fn a_read_goes_on_after_what_was_got_and_keeps_its_limit() {
        let all = ReadRequest::default;
        check_rest(&all(), &[], Some(&all()));
        check_rest(&all(), &[&[]], Some(&all()));
        let from = |start| ReadRequest {
            start: Some(start),
            batch_size: Some(2),
            ..all()
        };
        check_rest(&from(3), &[&[3, 4], &[7, 8]], Some(&from(9)));
        let limited = |start, limit| ReadRequest {
            start: Some(start),
            limit: Some(limit),
            ..all()
        };
        check_rest(&limited(1, 5), &[&[1, 2], &[5]], Some(&limited(6, 2)));
        check_rest(&limited(1, 3), &[&[1, 2], &[5]], None);
        let back = |start, limit| ReadRequest {
            backwards: Some(true),
            ..limited(start, limit)
        };
        check_rest(&back(9, 5), &[&[9, 8]], Some(&back(7, 3)));
        check_rest(&back(9, 50), &[&[2, 1]], None);
    }

    #[test]
    fn a_subscription_goes_on_after_the_last_event() {
        let request = |after| SubscribeRequest {
            after,
            batch_size: Some(7),
            ..SubscribeRequest::default()
        };
        let rest = |after, got: &[&[u64]]| {
            let bytes = Bytes::from(request(after).encode_to_vec());
            let rest = noted(got).rest_of_subscribe(&bytes);
            rest.map(|rest| SubscribeRequest::decode(rest).unwrap())
        };
        assert_eq!(rest(Some(4), &[]), Some(request(Some(4))));
        assert_eq!(rest(None, &[&[1], &[2, 6]]), Some(request(Some(6))));
        assert_eq!(rest(Some(u64::MAX), &[]), None);
    }

    #[test]
    fn a_response_without_events_is_told_once() {
        let mut progress = StreamProgress::default();
        assert!(progress.note(&response(&[])));
        assert!(!progress.note(&response(&[])));
        let both = [response(&[]), response(&[3])].concat();
        assert!(progress.note(&both));
        assert_eq!((progress.last, progress.known()), (Some(3), Some(3)));
    }
}
