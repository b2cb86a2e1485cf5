//! Opening a section, and changing one: more rows, other prices, other limits.

use trefoil_state::Keyspace;

use super::counts::SeatTotals;
use super::events::emit_opened;
use super::map::SeatMap;
use super::names::SectionNames;
use super::refusal;
use super::section::{SectionConfig, note_section};
use crate::Result;
use crate::limits::SEATS_PER_BOOKING_DEFAULT;

/// What a section is to be like. What is `None` stays as it is.
#[derive(Debug)]
pub(crate) struct SectionOpening {
    pub(crate) rows: usize,
    pub(crate) seats_per_row: usize,
    pub(crate) price: Option<i64>,
    pub(crate) max_per_booking: Option<usize>,
    pub(crate) max_per_buyer: Option<usize>,
}

/// What a section is like now.
#[derive(Debug)]
pub(crate) struct OpenedSection {
    pub(crate) config: SectionConfig,
    /// Whether it was not there before.
    pub(crate) is_new: bool,
}

/// Opens a section, or changes it. If it is like that already, nothing happens.
pub(crate) fn open(
    keyspace: &mut Keyspace<'_>,
    names: &SectionNames,
    opening: &SectionOpening,
) -> Result<OpenedSection> {
    keyspace.run_due_timers()?;
    let before = SectionConfig::load(keyspace, names)?;
    let config = opening.config(before);
    let is_new = before.is_none();
    if before == Some(config) {
        return Ok(OpenedSection { config, is_new });
    }
    change_map(keyspace, names, before, &config)?;
    let n_before = before.map_or(0, |before| before.n_seats());
    let n_more = config.n_seats() as i64 - n_before as i64;
    let totals = SeatTotals::load(keyspace, names)?;
    totals.grown(n_more).save(keyspace, names, totals)?;
    config.save(keyspace, names)?;
    note_section(keyspace, names)?;
    emit_opened(keyspace, names, &config, is_new)?;
    Ok(OpenedSection { config, is_new })
}

impl SectionOpening {
    /// Returns the configuration that follows on another one.
    fn config(&self, before: Option<SectionConfig>) -> SectionConfig {
        let kept = |of: fn(SectionConfig) -> usize| before.map(of);
        let max_per_booking = self.max_per_booking.or(kept(|of| of.max_per_booking));
        let max_per_buyer = self.max_per_buyer.or(kept(|of| of.max_per_buyer));
        let price = self.price.or(before.map(|of| of.price));
        SectionConfig {
            rows: self.rows,
            seats_per_row: self.seats_per_row,
            price: price.unwrap_or_default(),
            max_per_booking: max_per_booking.unwrap_or(SEATS_PER_BOOKING_DEFAULT),
            max_per_buyer: max_per_buyer.unwrap_or_default(),
        }
    }
}

/// Makes the map as long as the seats need. Seats keep their place only if rows are added at the
/// end: anything else needs a section of which every seat is available.
fn change_map(
    keyspace: &mut Keyspace<'_>,
    names: &SectionNames,
    before: Option<SectionConfig>,
    config: &SectionConfig,
) -> Result<()> {
    let mut map = SeatMap::load(keyspace, names)?;
    let keeps_seats = before.is_some_and(|before| {
        before.seats_per_row == config.seats_per_row && before.rows <= config.rows
    });
    if keeps_seats {
        map.grow(config.n_seats())?;
        return map.save(keyspace);
    }
    match map.is_clear(keyspace)? {
        true => map.clear(keyspace, config.n_seats()),
        false => Err(refusal::section_in_use()),
    }
}
