//! Ids, and what keys, streams and tags are made of them.

use bytes::Bytes;
use trefoil_core::limits::TAG_BYTES_MAX;
use trefoil_state::CommandError;

use crate::Result;
use crate::limits::{SEAT_ID_BYTES_MAX, SEAT_PREFIX_BYTES_MAX};

/// The longest prefix, event and section together fit into a tag.
const _: () =
    assert!("section:/".len() + SEAT_PREFIX_BYTES_MAX + 2 * SEAT_ID_BYTES_MAX <= TAG_BYTES_MAX);

const BOOKING: &str = "booking:";

/// Checks an id of an event, a section, a buyer or a booking, which `what` says.
pub(crate) fn check_id(what: &str, id: &[u8]) -> Result<String> {
    let is_fine = (1..=SEAT_ID_BYTES_MAX).contains(&id.len()) && id.iter().all(is_id_byte);
    if !is_fine {
        return Err(CommandError::because(format!(
            "ERR the {what} must be 1 to {SEAT_ID_BYTES_MAX} letters, digits and any of - _ . @"
        )));
    }
    Ok(String::from_utf8_lossy(id).into_owned())
}

/// Checks the prefix of keys.
pub(crate) fn check_prefix(prefix: &[u8]) -> Result<String> {
    let is_prefix_byte = |byte: &u8| *byte == b':' || is_id_byte(byte);
    if prefix.len() > SEAT_PREFIX_BYTES_MAX || !prefix.iter().all(is_prefix_byte) {
        return Err(CommandError::because(format!(
            "ERR the prefix must be at most {SEAT_PREFIX_BYTES_MAX} letters, digits and any of \
             - _ . @ :"
        )));
    }
    Ok(String::from_utf8_lossy(prefix).into_owned())
}

fn is_id_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.@".contains(byte)
}

/// Returns the key of a booking.
pub(crate) fn booking_key(prefix: &str, booking: &str) -> Bytes {
    format!("{prefix}{BOOKING}{booking}").into()
}

/// Returns the prefix and the id in the key of a booking.
pub(super) fn split_booking_key(key: &[u8]) -> Option<(&str, &str)> {
    // An id has no colon, so the last one is ours whatever the prefix is.
    std::str::from_utf8(key).ok()?.rsplit_once(BOOKING)
}

/// An event that has sections, and the prefix of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventNames {
    pub(super) prefix: String,
    pub(crate) event: String,
}

/// A section of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SectionNames {
    pub(crate) of: EventNames,
    pub(crate) section: String,
}

impl EventNames {
    /// Returns the event of an id, if that can be one.
    pub(crate) fn new(prefix: String, event: &[u8]) -> Result<Self> {
        let event = check_id("event", event)?;
        Ok(Self { prefix, event })
    }

    /// Returns the key of a kind of data on the whole event.
    fn key(&self, kind: &str) -> Bytes {
        let Self { prefix, event } = self;
        format!("{prefix}{kind}:{event}").into()
    }

    /// Returns the sorted set of the sections.
    pub(super) fn sections_key(&self) -> Bytes {
        self.key("event_sections")
    }

    /// Returns the hash that counts the seats of all sections.
    pub(super) fn stats_key(&self) -> Bytes {
        self.key("event_stats")
    }

    /// Returns the hash that counts the seats of each buyer.
    pub(super) fn buyers_key(&self) -> Bytes {
        self.key("buyer_seats")
    }
}

impl SectionNames {
    /// Returns the section of an id, if that can be one.
    pub(crate) fn new(of: EventNames, section: &[u8]) -> Result<Self> {
        let section = check_id("section", section)?;
        Ok(Self { of, section })
    }

    /// Returns the key of a kind of data on the section.
    fn key(&self, kind: &str) -> Bytes {
        let EventNames { prefix, event } = &self.of;
        format!("{prefix}{kind}:{event}:{}", self.section).into()
    }

    /// Returns the string of the states of all seats.
    pub(super) fn map_key(&self) -> Bytes {
        self.key("seats_bf")
    }

    /// Returns the hash that says how many rows and seats there are, and what they cost.
    pub(super) fn config_key(&self) -> Bytes {
        self.key("section_config")
    }

    /// Returns the hash that counts the seats.
    pub(super) fn stats_key(&self) -> Bytes {
        self.key("section_stats")
    }

    /// Returns the hash of the owners of the seats of a row.
    pub(super) fn owners_key(&self, row: u32) -> Bytes {
        let EventNames { prefix, event } = &self.of;
        format!("{prefix}seat_meta:{event}:{}:{row}", self.section).into()
    }

    /// Returns the stream of the section's events; its first id is the event, so that a consumer
    /// group splits by event.
    pub(super) fn stream(&self) -> String {
        let EventNames { prefix, event } = &self.of;
        format!("seats-{prefix}{event}+{}", self.section)
    }

    /// Returns the tags of all events of the section.
    pub(super) fn tags(&self) -> Vec<String> {
        let EventNames { prefix, event } = &self.of;
        vec![
            format!("event:{prefix}{event}"),
            format!("section:{prefix}{event}/{}", self.section),
        ]
    }
}
