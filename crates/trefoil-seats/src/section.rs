//! A section: its configuration, the map of its seats, and how many are in which state.

use bytes::Bytes;
use trefoil_state::{Keyspace, Reply};

use super::best::Grid;
use super::counts::{SeatCounts, SeatTotals};
use super::fields::{HashFields, number};
use super::map::SeatMap;
use super::names::{EventNames, SectionNames};
use super::refusal;
use super::seat::{Seat, SeatState};
use crate::Result;
use crate::limits::{SEATS_PER_BOOKING_DEFAULT, SEATS_PER_SECTION_MAX};

/// How many seats a section has, what they cost, and how many of them one may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SectionConfig {
    pub(crate) rows: usize,
    pub(crate) seats_per_row: usize,
    pub(crate) price: i64,
    pub(crate) max_per_booking: usize,
    /// How many seats of the event a buyer may have; 0: any number.
    pub(crate) max_per_buyer: usize,
}

impl SectionConfig {
    /// Returns the configuration of a section, if it has one.
    pub(crate) fn load(keyspace: &Keyspace<'_>, names: &SectionNames) -> Result<Option<Self>> {
        let fields = HashFields::of(keyspace, names.config_key())?;
        if !fields.exist() {
            return Ok(None);
        }
        let count = |name: &str| -> Result<usize> {
            let count = fields.count(name)?.unwrap_or_default();
            usize::try_from(count).map_err(|_| fields.wrong(name))
        };
        let config = Self {
            rows: count("rows")?,
            seats_per_row: count("seats_per_row")?,
            price: fields.integer("price")?.unwrap_or_default(),
            max_per_booking: match count("max_per_booking")? {
                0 => SEATS_PER_BOOKING_DEFAULT,
                max_per_booking => max_per_booking,
            },
            max_per_buyer: count("max_per_buyer")?,
        };
        let n_seats = config.rows.saturating_mul(config.seats_per_row);
        if !(1..=SEATS_PER_SECTION_MAX).contains(&n_seats) {
            return Err(fields.wrong("rows"));
        }
        Ok(Some(config))
    }

    /// Writes the configuration of a section.
    pub(super) fn save(&self, keyspace: &mut Keyspace<'_>, names: &SectionNames) -> Result<()> {
        let settings = [
            number("rows", self.rows),
            number("seats_per_row", self.seats_per_row),
            number("price", self.price),
            number("max_per_booking", self.max_per_booking),
            number("max_per_buyer", self.max_per_buyer),
        ];
        keyspace.set_fields(&names.config_key(), &settings)
    }

    /// Returns how many seats there are.
    pub(crate) fn n_seats(&self) -> usize {
        self.rows * self.seats_per_row
    }

    /// Returns the place of a seat among all seats, if it is one of the section's.
    pub(crate) fn index(&self, seat: Seat) -> Result<usize> {
        let (row, number) = (seat.row as usize, seat.number as usize);
        if row > self.rows || number > self.seats_per_row {
            return Err(refusal::no_seat(seat, self.rows, self.seats_per_row));
        }
        Ok(seat.index(self.seats_per_row))
    }
}

/// A section with all that a change of its seats changes of it.
#[derive(Debug)]
pub(crate) struct Section {
    pub(super) names: SectionNames,
    pub(crate) config: SectionConfig,
    map: SeatMap,
    pub(super) totals: SeatTotals,
}

impl Section {
    /// Returns the section of these names.
    pub(crate) fn load(keyspace: &Keyspace<'_>, names: &SectionNames) -> Result<Self> {
        let config = SectionConfig::load(keyspace, names)?;
        Ok(Self {
            names: names.clone(),
            config: config.ok_or_else(|| refusal::no_section(names))?,
            map: SeatMap::load(keyspace, names)?,
            totals: SeatTotals::load(keyspace, names)?,
        })
    }

    /// Returns the bytes of the map.
    pub(crate) fn bytes(&self, keyspace: &Keyspace<'_>) -> Result<Bytes> {
        self.map.bytes(keyspace)
    }

    /// Returns the seats as these bytes of the map say.
    pub(super) fn grid<'b>(&self, bits: &'b [u8]) -> Grid<'b> {
        Grid {
            bits,
            rows: self.config.rows,
            seats_per_row: self.config.seats_per_row,
        }
    }

    /// Returns the state of a seat, which must be one of the section's.
    pub(super) fn state(&mut self, keyspace: &Keyspace<'_>, seat: Seat) -> Result<SeatState> {
        let index = self.config.index(seat)?;
        self.map.state(keyspace, index)
    }

    /// Changes the state of seats that are in the state `from`, and counts them. Returns the
    /// counts.
    pub(super) fn change(
        mut self,
        keyspace: &mut Keyspace<'_>,
        seats: &[Seat],
        from: SeatState,
        to: SeatState,
    ) -> Result<SeatCounts> {
        for seat in seats {
            let index = self.config.index(*seat)?;
            self.map.set(keyspace, index, to)?;
        }
        self.map.save(keyspace)?;
        let moved = self.totals.moved(seats.len(), from, to);
        moved.save(keyspace, &self.names, self.totals)?;
        Ok(moved.section)
    }
}

/// Returns the ids of the sections of an event, in order.
pub(crate) fn sections(keyspace: &mut Keyspace<'_>, names: &EventNames) -> Result<Vec<Bytes>> {
    let key = names.sections_key();
    let members = keyspace.run(&[b"ZRANGE", &key, b"0", b"-1"])?;
    let Reply::Array(members) = members else {
        return Ok(Vec::new());
    };
    let id = |member| match member {
        Reply::Bulk(id) => Some(id),
        _ => None,
    };
    Ok(members.into_iter().filter_map(id).collect())
}

/// Notes that an event has a section.
pub(super) fn note_section(keyspace: &mut Keyspace<'_>, names: &SectionNames) -> Result<()> {
    let key = names.of.sections_key();
    let section = names.section.as_bytes();
    keyspace.run(&[b"ZADD", &key, b"NX", b"0", section])?;
    Ok(())
}
