//! Who has a seat, and how many seats of an event somebody has.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trefoil_state::Keyspace;

use super::fields::{HashFields, number};
use super::json;
use super::names::{EventNames, SectionNames};
use super::refusal;
use super::seat::Seat;
use crate::Result;

/// Who has a seat that is not available, as JSON in the hash of its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    #[serde(rename = "buyer_id")]
    pub(crate) buyer: String,
    #[serde(rename = "booking_id")]
    pub(crate) booking: String,
    pub(crate) price: i64,
    /// Milliseconds since 1970.
    pub(crate) reserved_at: u64,
}

/// Returns the owner of a seat.
pub(super) fn owner(
    keyspace: &Keyspace<'_>,
    names: &SectionNames,
    seat: Seat,
) -> Result<Option<Owner>> {
    let key = names.owners_key(seat.row);
    let fields = HashFields::of(keyspace, key.clone())?;
    let owner = fields.get(&seat.number.to_string())?;
    let read = |owner: Bytes| {
        let wrong = || refusal::not_ours(&key, &format!("the owner of seat {seat}"));
        json::read(&owner).ok_or_else(wrong)
    };
    owner.map(read).transpose()
}

/// Returns the owners of the seats of a row as they are stored, by field.
pub(super) fn owners_of_row(
    keyspace: &Keyspace<'_>,
    names: &SectionNames,
    row: u32,
) -> Result<BTreeMap<Bytes, Bytes>> {
    let Some(hash) = keyspace.hash(&names.owners_key(row))? else {
        return Ok(BTreeMap::new());
    };
    hash.all().collect()
}

/// Gives seats to an owner, or to nobody.
pub(super) fn set_owner(
    keyspace: &mut Keyspace<'_>,
    names: &SectionNames,
    seats: &[Seat],
    owner: Option<&Owner>,
) -> Result<()> {
    let mut rows: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for seat in seats {
        let row = rows.entry(seat.row).or_default();
        row.push(seat.number.to_string());
    }
    let json = owner.map(json::write).transpose()?;
    for (row, numbers) in rows {
        let key = names.owners_key(row);
        let numbers = numbers.iter().map(String::as_str);
        match &json {
            Some(json) => {
                let settings: Vec<_> = numbers.map(|number| (number, json.clone())).collect();
                keyspace.set_fields(&key, &settings)?;
            }
            None => keyspace.remove_fields(&key, numbers)?,
        }
    }
    Ok(())
}

/// Returns how many seats of an event a buyer has.
pub(super) fn seats_of_buyer(
    keyspace: &Keyspace<'_>,
    names: &EventNames,
    buyer: &str,
) -> Result<i64> {
    let fields = HashFields::of(keyspace, names.buyers_key())?;
    fields.integer(buyer).map(Option::unwrap_or_default)
}

/// Remembers how many seats of an event a buyer has.
pub(super) fn set_seats_of_buyer(
    keyspace: &mut Keyspace<'_>,
    names: &EventNames,
    buyer: &str,
    n: i64,
) -> Result<()> {
    let key = names.buyers_key();
    match n > 0 {
        true => keyspace.set_fields(&key, &[number(buyer, n)]),
        false => keyspace.remove_fields(&key, std::iter::once(buyer)),
    }
}
