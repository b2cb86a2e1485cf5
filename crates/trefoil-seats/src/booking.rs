//! What is remembered of a booking: enough to reply to every repeated request as to the first one.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use trefoil_state::Keyspace;

use super::counts::SeatCounts;
use super::fields::{HashFields, number, text};
use super::holds::HOLD_ENDS;
use super::json;
use super::names::{EventNames, SectionNames, booking_key};
use super::refusal;
use super::seat::Seat;
use crate::Result;
use crate::limits::BOOKING_KEPT_MILLIS;

/// What has become of a booking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Its seats are reserved.
    Reserved,
    /// Its seats are sold.
    Sold,
    /// Its seats were released.
    Released,
    /// Its hold ran out.
    Expired,
}

impl Status {
    pub(super) const ALL: [Self; 4] = [Self::Reserved, Self::Sold, Self::Released, Self::Expired];

    /// Returns the name that is stored and replied.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reserved => "RESERVED",
            Self::Sold => "SOLD",
            Self::Released => "RELEASED",
            Self::Expired => "EXPIRED",
        }
    }
}

/// How the seats of a booking were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The buyer named them.
    Manual,
    /// They were the best that were available.
    BestAvailable,
}

impl Mode {
    const ALL: [Self; 2] = [Self::Manual, Self::BestAvailable];

    /// Returns the name that is stored and replied.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::BestAvailable => "best_available",
        }
    }
}

/// A booking. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Booking {
    pub(crate) id: String,
    pub(crate) buyer: String,
    /// The section that its seats are in.
    pub(crate) names: SectionNames,
    pub(crate) status: Status,
    pub(crate) mode: Mode,
    pub(crate) seats: Vec<Seat>,
    pub(crate) total_price: i64,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
    /// When the hold ends or ended, if it has an end.
    pub(crate) expires_at: Option<u64>,
    /// The global position of the event of its reservation.
    pub(crate) position: u64,
    /// That of its last event.
    pub(crate) last_position: u64,
    /// How many seats of the section were in which state after the reservation.
    pub(crate) stats: SeatCounts,
}

impl Booking {
    /// Returns the booking under a key with this prefix, if it is there.
    pub(crate) fn load(keyspace: &Keyspace<'_>, prefix: &str, id: &str) -> Result<Option<Self>> {
        let fields = HashFields::of(keyspace, booking_key(prefix, id))?;
        if !fields.exist() {
            return Ok(None);
        }
        let required = |name: &str| fields.count(name)?.ok_or_else(|| fields.wrong(name));
        let of = EventNames::new(prefix.to_owned(), fields.text("event_id")?.as_bytes())?;
        let status = fields.text("status")?;
        let status = Status::ALL.into_iter().find(|one| one.name() == status);
        let mode = fields.text("seat_selection_mode")?;
        let mode = Mode::ALL.into_iter().find(|one| one.name() == mode);
        Ok(Some(Self {
            id: id.to_owned(),
            buyer: fields.text("buyer_id")?,
            names: SectionNames::new(of, fields.text("section")?.as_bytes())?,
            status: status.ok_or_else(|| fields.wrong("status"))?,
            mode: mode.ok_or_else(|| fields.wrong("seat_selection_mode"))?,
            seats: read_json(&fields, "seats")?,
            total_price: fields.integer("total_price")?.unwrap_or_default(),
            created_at: required("created_at")?,
            updated_at: required("updated_at")?,
            expires_at: fields.count("expires_at")?,
            position: required("position")?,
            last_position: required("last_position")?,
            stats: read_json(&fields, "stats")?,
        }))
    }

    /// Returns the booking of this id, which must be there and the buyer's.
    pub(super) fn of_buyer(
        keyspace: &Keyspace<'_>,
        prefix: &str,
        id: &str,
        buyer: &str,
    ) -> Result<Self> {
        let booking = Self::load(keyspace, prefix, id)?;
        let booking = booking.ok_or_else(|| refusal::no_booking(id))?;
        match booking.buyer == buyer {
            true => Ok(booking),
            false => Err(refusal::not_owner(id, buyer)),
        }
    }

    /// Its key.
    pub(super) fn key(&self) -> Bytes {
        booking_key(&self.names.of.prefix, &self.id)
    }

    /// Returns what one of its seats costs.
    pub(super) fn price(&self) -> i64 {
        self.total_price / self.seats.len().max(1) as i64
    }

    /// Remembers a new booking, and when its hold ends.
    pub(super) fn save(&self, keyspace: &mut Keyspace<'_>) -> Result<()> {
        let key = self.key();
        let mut settings = vec![
            text("booking_id", &self.id),
            text("buyer_id", &self.buyer),
            text("event_id", &self.names.of.event),
            text("section", &self.names.section),
            text("status", self.status.name()),
            text("seat_selection_mode", self.mode.name()),
            ("seats", json::write(&self.seats)?),
            number("total_price", self.total_price),
            number("created_at", self.created_at),
            number("updated_at", self.updated_at),
            number("position", self.position),
            number("last_position", self.last_position),
            ("stats", json::write(&self.stats)?),
        ];
        settings.extend(self.expires_at.map(|time| number("expires_at", time)));
        keyspace.set_fields(&key, &settings)?;
        match self.expires_at {
            Some(time) => keyspace.set_timer(&HOLD_ENDS, &key, time),
            None => Ok(()),
        }
    }

    /// Remembers what has become of a booking that was reserved. It is forgotten some time later.
    pub(super) fn settle(&self, keyspace: &mut Keyspace<'_>) -> Result<()> {
        let key = self.key();
        let settings = [
            text("status", self.status.name()),
            number("updated_at", self.updated_at),
            number("last_position", self.last_position),
        ];
        keyspace.set_fields(&key, &settings)?;
        if let Some(time) = self.expires_at {
            keyspace.clear_timer(&HOLD_ENDS, &key, time)?;
        }
        let until = self.updated_at.saturating_add(BOOKING_KEPT_MILLIS);
        keyspace.expire_key(&key, until)
    }

    /// Returns whether its hold has run out.
    pub(super) fn is_overdue(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|time| time <= now)
    }
}

fn read_json<T: DeserializeOwned>(fields: &HashFields<'_, '_>, name: &str) -> Result<T> {
    let value = fields.get(name)?.unwrap_or_default();
    json::read(&value).ok_or_else(|| fields.wrong(name))
}
