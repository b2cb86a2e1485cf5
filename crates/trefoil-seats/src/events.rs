//! What the events of a section say: enough to rebuild all that is remembered of its seats.

use serde::{Deserialize, Serialize};
use trefoil_core::NewEvent;
use trefoil_state::Keyspace;

use super::booking::{Booking, Status};
use super::json;
use super::names::{EventNames, SectionNames};
use super::seat::Seat;
use super::section::SectionConfig;
use crate::Result;

/// The section was opened, or changed.
pub(super) const SECTION_OPENED: &str = "SectionOpened";

/// Returns the event of a booking that becomes this.
pub(super) fn type_of(status: Status) -> &'static str {
    match status {
        Status::Reserved => "SeatsReserved",
        Status::Sold => "SeatsSold",
        Status::Released => "SeatsReleased",
        Status::Expired => "HoldExpired",
    }
}

/// Where an event happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EventPlace {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    prefix: String,
    event: String,
    section: String,
}

impl EventPlace {
    fn new(names: &SectionNames) -> Self {
        Self {
            prefix: names.of.prefix.clone(),
            event: names.of.event.clone(),
            section: names.section.clone(),
        }
    }

    pub(super) fn names(&self) -> SectionNames {
        SectionNames {
            of: EventNames {
                prefix: self.prefix.clone(),
                event: self.event.clone(),
            },
            section: self.section.clone(),
        }
    }
}

/// What `SectionOpened` says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SectionOpened {
    #[serde(flatten)]
    pub(super) place: EventPlace,
    pub(super) rows: usize,
    pub(super) seats_per_row: usize,
    pub(super) price: i64,
    pub(super) max_per_booking: usize,
    pub(super) max_per_buyer: usize,
    /// Whether there was no such section before.
    pub(super) created: bool,
    /// Milliseconds since 1970.
    pub(super) at: u64,
}

/// What the events of a booking say.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SeatsChanged {
    #[serde(flatten)]
    pub(super) place: EventPlace,
    pub(super) booking: String,
    pub(super) buyer: String,
    pub(super) seats: Vec<Seat>,
    /// What one of the seats costs.
    pub(super) price: i64,
    pub(super) total_price: i64,
    /// When the hold ends, in milliseconds since 1970.
    pub(super) expires_at: Option<u64>,
    /// Milliseconds since 1970.
    pub(super) at: u64,
}

/// Appends the event that says how a section is now. Returns its global position.
pub(super) fn emit_opened(
    keyspace: &mut Keyspace<'_>,
    names: &SectionNames,
    config: &SectionConfig,
    created: bool,
) -> Result<u64> {
    let data = json::write(&SectionOpened {
        place: EventPlace::new(names),
        rows: config.rows,
        seats_per_row: config.seats_per_row,
        price: config.price,
        max_per_booking: config.max_per_booking,
        max_per_buyer: config.max_per_buyer,
        created,
        at: keyspace.now(),
    })?;
    let mut event = NewEvent::new(names.stream(), SECTION_OPENED, data);
    event.tags = names.tags();
    keyspace.append_event(event)
}

/// Appends the event that says what has become of a booking. Returns its global position.
pub(super) fn emit_booking(keyspace: &mut Keyspace<'_>, booking: &Booking) -> Result<u64> {
    let names = &booking.names;
    let data = json::write(&SeatsChanged {
        place: EventPlace::new(names),
        booking: booking.id.clone(),
        buyer: booking.buyer.clone(),
        seats: booking.seats.clone(),
        price: booking.price(),
        total_price: booking.total_price,
        expires_at: booking.expires_at,
        at: booking.updated_at,
    })?;
    let mut event = NewEvent::new(names.stream(), type_of(booking.status), data);
    event.tags = names.tags();
    let prefix = &names.of.prefix;
    event.tags.push(format!("booking:{prefix}{}", booking.id));
    event.tags.push(format!("buyer:{prefix}{}", booking.buyer));
    keyspace.append_event(event)
}
