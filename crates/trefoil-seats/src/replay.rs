//! The keys that events lead to, without anything else: what a section's events say must be what
//! is stored.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Deserialize;
use trefoil_core::{Error, Result};

use super::booking::Status;
use super::counts::SeatCounts;
use super::events::{SECTION_OPENED, SeatsChanged, SectionOpened, type_of};
use super::names::{EventNames, SectionNames};
use super::owners::Owner;
use super::seat::{Seat, SeatState};

/// What a key holds that events lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeatValue {
    /// A string.
    String(Bytes),
    /// A hash: values under fields.
    Hash(BTreeMap<String, String>),
    /// A sorted set whose members all have the score 0.
    Members(BTreeSet<String>),
}

/// A section as its events describe it.
#[derive(Debug)]
struct Rebuilt {
    names: SectionNames,
    opened: SectionOpened,
    states: Vec<SeatState>,
    owners: BTreeMap<Seat, Owner>,
    updated_at: u64,
}

/// Returns the keys, and what they hold, that the events of sections lead to, given by their types
/// and data in their order: `seats_bf`, `section_config`, `section_stats`, `seat_meta`,
/// `event_sections`, `event_stats` and `buyer_seats`. Events of other types are passed over.
pub fn replay_seats<'e>(
    events: impl IntoIterator<Item = (&'e str, &'e [u8])>,
) -> Result<BTreeMap<String, SeatValue>> {
    let mut sections: BTreeMap<Bytes, Rebuilt> = BTreeMap::new();
    for (event_type, data) in events {
        if event_type == SECTION_OPENED {
            let opened: SectionOpened = read(data)?;
            let names = opened.place.names();
            let key = names.config_key();
            match sections.get_mut(&key).filter(|_| !opened.created) {
                Some(section) => section.reopen(&opened),
                None => drop(sections.insert(key, Rebuilt::new(names, &opened))),
            }
            continue;
        }
        let mut statuses = Status::ALL.into_iter();
        let Some(status) = statuses.find(|status| type_of(*status) == event_type) else {
            continue;
        };
        let changed: SeatsChanged = read(data)?;
        let section = sections.get_mut(&changed.place.names().config_key());
        let section =
            section.ok_or_else(|| Error::invalid("seats of a section that is not open"))?;
        section.change(&changed, status)?;
    }
    Ok(keys(sections.into_values()))
}

fn read<'d, T: Deserialize<'d>>(data: &'d [u8]) -> Result<T> {
    serde_json::from_slice(data)
        .map_err(|error| Error::invalid(format!("not the event of a seat: {error}")))
}

impl Rebuilt {
    fn new(names: SectionNames, opened: &SectionOpened) -> Self {
        let mut section = Self {
            names,
            opened: opened.clone(),
            states: Vec::new(),
            owners: BTreeMap::new(),
            updated_at: opened.at,
        };
        section.reopen(opened);
        section
    }

    fn reopen(&mut self, opened: &SectionOpened) {
        let n_seats = opened.rows * opened.seats_per_row;
        self.states.resize(n_seats, SeatState::Available);
        self.opened = opened.clone();
        self.updated_at = opened.at;
    }

    fn change(&mut self, changed: &SeatsChanged, status: Status) -> Result<()> {
        self.updated_at = changed.at;
        for seat in &changed.seats {
            let state = self.states.get_mut(seat.index(self.opened.seats_per_row));
            let state = state.ok_or_else(|| Error::invalid("a seat that is not there"))?;
            *state = match status {
                Status::Reserved => SeatState::Reserved,
                Status::Sold => SeatState::Sold,
                Status::Released | Status::Expired => SeatState::Available,
            };
            match status {
                Status::Sold => {}
                Status::Reserved => {
                    let owner = Owner {
                        buyer: changed.buyer.clone(),
                        booking: changed.booking.clone(),
                        price: changed.price,
                        reserved_at: changed.at,
                    };
                    self.owners.insert(*seat, owner);
                }
                Status::Released | Status::Expired => {
                    self.owners.remove(seat);
                }
            }
        }
        Ok(())
    }

    fn counts(&self) -> SeatCounts {
        let count = |wanted| self.states.iter().filter(|state| **state == wanted).count() as i64;
        SeatCounts {
            available: count(SeatState::Available),
            reserved: count(SeatState::Reserved),
            sold: count(SeatState::Sold),
            total: self.states.len() as i64,
        }
    }

    fn bits(&self) -> Bytes {
        let byte = |seats: &[SeatState]| {
            let bits = seats.iter().zip([6, 4, 2, 0]);
            bits.fold(0, |byte, (state, shift)| byte | (*state as u8) << shift)
        };
        self.states.chunks(4).map(byte).collect()
    }

    fn config(&self) -> SeatValue {
        hash([
            ("rows", self.opened.rows.to_string()),
            ("seats_per_row", self.opened.seats_per_row.to_string()),
            ("price", self.opened.price.to_string()),
            ("max_per_booking", self.opened.max_per_booking.to_string()),
            ("max_per_buyer", self.opened.max_per_buyer.to_string()),
        ])
    }
}

fn hash<const N: usize>(fields: [(&str, String); N]) -> SeatValue {
    let own = |(name, value): (&str, String)| (name.to_owned(), value);
    SeatValue::Hash(fields.into_iter().map(own).collect())
}

fn stats(event: &str, section: Option<&str>, counts: SeatCounts, updated_at: u64) -> SeatValue {
    let stats = hash([
        ("event_id", event.to_owned()),
        ("available", counts.available.to_string()),
        ("reserved", counts.reserved.to_string()),
        ("sold", counts.sold.to_string()),
        ("total", counts.total.to_string()),
        ("updated_at", (updated_at / 1000).to_string()),
    ]);
    match (stats, section) {
        (SeatValue::Hash(mut fields), Some(section)) => {
            fields.insert("section_id".to_owned(), section.to_owned());
            SeatValue::Hash(fields)
        }
        (stats, _) => stats,
    }
}

/// What the sections of one event come to.
#[derive(Debug, Default)]
struct EventSum {
    sections: BTreeSet<String>,
    counts: SeatCounts,
    updated_at: u64,
    buyers: BTreeMap<String, u64>,
}

fn keys(sections: impl Iterator<Item = Rebuilt>) -> BTreeMap<String, SeatValue> {
    let mut keys = BTreeMap::new();
    let mut put = |key: Bytes, value| {
        keys.insert(String::from_utf8_lossy(&key).into_owned(), value);
    };
    let mut events: BTreeMap<Bytes, (EventNames, EventSum)> = BTreeMap::new();
    for section in sections {
        let names = &section.names;
        let counts = section.counts();
        let event = &names.of.event;
        let stats = stats(event, Some(&names.section), counts, section.updated_at);
        put(names.map_key(), SeatValue::String(section.bits()));
        put(names.config_key(), section.config());
        put(names.stats_key(), stats);
        let (_, sum) = events
            .entry(names.of.stats_key())
            .or_insert_with(|| (names.of.clone(), EventSum::default()));
        sum.sections.insert(names.section.clone());
        sum.counts = sum.counts.plus(counts);
        sum.updated_at = sum.updated_at.max(section.updated_at);
        let mut rows: BTreeMap<u32, BTreeMap<String, String>> = BTreeMap::new();
        for (seat, owner) in &section.owners {
            *sum.buyers.entry(owner.buyer.clone()).or_default() += 1;
            let json = serde_json::to_string(owner).unwrap_or_default();
            let row = rows.entry(seat.row).or_default();
            row.insert(seat.number.to_string(), json);
        }
        for (row, owners) in rows {
            put(names.owners_key(row), SeatValue::Hash(owners));
        }
    }
    for (names, sum) in events.into_values() {
        let stats = stats(&names.event, None, sum.counts, sum.updated_at);
        put(names.stats_key(), stats);
        put(names.sections_key(), SeatValue::Members(sum.sections));
        let buyers = sum.buyers.into_iter();
        let buyers: BTreeMap<_, _> = buyers.map(|(buyer, n)| (buyer, n.to_string())).collect();
        if !buyers.is_empty() {
            put(names.buyers_key(), SeatValue::Hash(buyers));
        }
    }
    keys
}
