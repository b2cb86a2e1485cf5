//! How many seats are in which state.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trefoil_state::Keyspace;

use super::fields::{HashFields, Setting, number, text};
use super::names::{EventNames, SectionNames};
use super::refusal;
use super::seat::SeatState;
use crate::Result;

/// How many seats of a section or an event are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeatCounts {
    pub(crate) available: i64,
    pub(crate) reserved: i64,
    pub(crate) sold: i64,
    pub(crate) total: i64,
}

impl SeatCounts {
    /// Returns the counts in the hash under a key.
    pub(super) fn load(keyspace: &Keyspace<'_>, key: Bytes) -> Result<Self> {
        let fields = HashFields::of(keyspace, key)?;
        let count = |name| fields.integer(name).map(Option::unwrap_or_default);
        Ok(Self {
            available: count("available")?,
            reserved: count("reserved")?,
            sold: count("sold")?,
            total: count("total")?,
        })
    }

    /// Returns the same after some seats changed their state.
    #[must_use]
    pub(super) fn moved(mut self, n: usize, from: SeatState, to: SeatState) -> Self {
        let n = n as i64;
        for (state, n) in [(from, -n), (to, n)] {
            match state {
                SeatState::Available => self.available = self.available.saturating_add(n),
                SeatState::Reserved => self.reserved = self.reserved.saturating_add(n),
                SeatState::Sold => self.sold = self.sold.saturating_add(n),
                SeatState::Blocked => {}
            }
        }
        self
    }

    /// Returns the same with more or, if `n` is negative, fewer seats, all of them available.
    #[must_use]
    pub(super) fn grown(mut self, n: i64) -> Self {
        self.available = self.available.saturating_add(n);
        self.total = self.total.saturating_add(n);
        self
    }

    /// Returns these and others together.
    #[must_use]
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            available: self.available.saturating_add(other.available),
            reserved: self.reserved.saturating_add(other.reserved),
            sold: self.sold.saturating_add(other.sold),
            total: self.total.saturating_add(other.total),
        }
    }

    /// Writes to the hash under a key what differs from other counts, and when that changed.
    pub(super) fn save(
        self,
        keyspace: &mut Keyspace<'_>,
        key: &Bytes,
        before: Self,
        ids: &[Setting<'_>],
    ) -> Result<()> {
        let counts = [
            ("available", before.available, self.available),
            ("reserved", before.reserved, self.reserved),
            ("sold", before.sold, self.sold),
            ("total", before.total, self.total),
        ];
        // Those of a new hash are written even if they are 0.
        let is_new = before.total == 0;
        let changed = counts.into_iter();
        let changed = changed.filter(|(_, before, after)| is_new || before != after);
        let mut settings: Vec<_> = changed
            .map(|(name, _, after)| number(name, after))
            .collect();
        settings.push(number("updated_at", keyspace.now() / 1000));
        if is_new {
            settings.extend_from_slice(ids);
        }
        keyspace.set_fields(key, &settings)
    }
}

/// How many seats of a section, and of all sections of its event, are in which state.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeatTotals {
    pub(super) section: SeatCounts,
    pub(super) event: SeatCounts,
}

impl SeatTotals {
    pub(super) fn load(keyspace: &Keyspace<'_>, names: &SectionNames) -> Result<Self> {
        Ok(Self {
            section: SeatCounts::load(keyspace, names.stats_key())?,
            event: SeatCounts::load(keyspace, names.of.stats_key())?,
        })
    }

    /// Returns the same after some seats changed their state.
    #[must_use]
    pub(super) fn moved(self, n: usize, from: SeatState, to: SeatState) -> Self {
        Self {
            section: self.section.moved(n, from, to),
            event: self.event.moved(n, from, to),
        }
    }

    /// Returns the same with more or, if `n` is negative, fewer seats, all of them available.
    #[must_use]
    pub(super) fn grown(self, n: i64) -> Self {
        Self {
            section: self.section.grown(n),
            event: self.event.grown(n),
        }
    }

    /// Writes what differs from other ones.
    pub(super) fn save(
        self,
        keyspace: &mut Keyspace<'_>,
        names: &SectionNames,
        before: Self,
    ) -> Result<()> {
        let event_id = text("event_id", &names.of.event);
        let ids = [text("section_id", &names.section), event_id.clone()];
        self.section
            .save(keyspace, &names.stats_key(), before.section, &ids)?;
        let key = names.of.stats_key();
        self.event.save(keyspace, &key, before.event, &[event_id])
    }
}

/// Counts, and when they changed.
#[derive(Debug)]
pub(crate) struct CountedSeats {
    pub(crate) counts: SeatCounts,
    /// Seconds since 1970.
    pub(crate) updated_at: i64,
}

impl CountedSeats {
    /// Returns the counts of a section.
    pub(crate) fn of_section(keyspace: &Keyspace<'_>, names: &SectionNames) -> Result<Self> {
        let counted = Self::load(keyspace, &names.stats_key())?;
        counted.ok_or_else(|| refusal::no_section(names))
    }

    /// Returns the counts of all sections of an event.
    pub(crate) fn of_event(keyspace: &Keyspace<'_>, names: &EventNames) -> Result<Self> {
        let counted = Self::load(keyspace, &names.stats_key())?;
        counted.ok_or_else(|| refusal::no_sections(names))
    }

    fn load(keyspace: &Keyspace<'_>, key: &Bytes) -> Result<Option<Self>> {
        let fields = HashFields::of(keyspace, key.clone())?;
        if !fields.exist() {
            return Ok(None);
        }
        Ok(Some(Self {
            counts: SeatCounts::load(keyspace, key.clone())?,
            updated_at: fields.integer("updated_at")?.unwrap_or_default(),
        }))
    }
}
