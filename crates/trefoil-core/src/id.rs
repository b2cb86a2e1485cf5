//! Event ids. One the server makes is a UUID of version 7 that carries the position of its event.
//!
//! A server-made id needs no index entry: the position inside it says where to look, and the log
//! says whether the event there has this id. Layout, from the most significant bit: 48 bits of
//! milliseconds, version 7, 12 random bits, variant, 22 random bits, 40 bits of position.

use uuid::Uuid;

/// The id of an event.
pub type EventId = Uuid;

const POSITION_BITS: u32 = 40;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;
const RANDOM_LOW_MASK: u64 = (1 << (62 - POSITION_BITS)) - 1;

/// Returns the id of the event at `position`, made at `millis` since 1970 with 34 bits taken from
/// `random`.
pub fn make_event_id(millis: u64, random: u64, position: u64) -> EventId {
    let high = (millis << 16) | 0x7000 | ((random >> 32) & 0xfff);
    let low =
        (0b10 << 62) | ((random & RANDOM_LOW_MASK) << POSITION_BITS) | (position & POSITION_MASK);
    Uuid::from_u64_pair(high, low)
}

/// Returns the position at which the event with this id stands, if the server made it.
///
/// An id from elsewhere may look the same: only the event at that position can tell.
pub fn located_position(id: &EventId) -> Option<u64> {
    (id.get_version_num() == 7).then_some(id.as_u64_pair().1 & POSITION_MASK)
}

/// Reads an id in any of the usual spellings: hyphenated, plain, in braces, or as a URN.
pub fn parse_event_id(text: &str) -> Option<EventId> {
    Uuid::try_parse(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_id_is_a_version_7_uuid_that_locates_its_event() {
        for (millis, random, position) in [
            (0, 0, 1),
            (1_794_700_000_000, u64::MAX, 7),
            (1, 12345, POSITION_MASK),
        ] {
            let id = make_event_id(millis, random, position);
            assert_eq!(id.get_version_num(), 7);
            assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
            assert_eq!(located_position(&id), Some(position));
            assert_eq!(id.as_u128() >> 80, u128::from(millis));
        }
    }

    #[test]
    fn ids_of_other_versions_locate_nothing() {
        let id = parse_event_id("550e8400-e29b-41d4-a716-446655440000").unwrap();
        assert_eq!(located_position(&id), None);
    }
}
