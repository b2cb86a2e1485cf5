//! Holds that run out: their seats return, once.
//!
//! The end of a hold is an expiry of the keyspace under the key of the booking. It is due when the
//! cleaning comes to it, or when another command on seats runs before that. The keyspace remembers
//! a time before which no hold ends, so that commands rarely have to look.

use bytes::Bytes;
use trefoil_core::limits::HOLDS_PER_COMMAND_MAX;

use super::booking::{Booking, Status};
use super::names::split_booking_key;
use super::settle::Settlement;
use crate::failure::{Failure, Result};
use crate::keyspace::Keyspace;
use crate::layout::{self, HOLD_EXPIRES};

/// About how many entries the end of a hold changes.
const ENTRIES_PER_HOLD: usize = 16;

/// At most how many expiries, most of which are not of holds, a command looks at.
const EXPIRIES_PASSED_MAX: usize = 1024;

/// Notes that the hold of the booking under a key ends at this time.
pub(super) fn begin_hold(keyspace: &mut Keyspace<'_>, key: &Bytes, time: u64) -> Result<()> {
    keyspace.set_expiry(HOLD_EXPIRES, key, None, Some(time))?;
    let next = &mut keyspace.root.next_hold;
    *next = Some(next.unwrap_or(time).min(time));
    keyspace.save_root()
}

/// Ends the holds that are due, the earliest first: nobody is refused a seat because of them.
pub(super) fn end_due_holds(keyspace: &mut Keyspace<'_>) -> Result<()> {
    let now = keyspace.now();
    let Some(first) = keyspace.root.next_hold.filter(|first| *first <= now) else {
        return Ok(());
    };
    let mut due = Vec::new();
    let mut next = None;
    let from = layout::expiry(keyspace.root.epoch, first, 0, b"");
    for (n_passed, expiry) in keyspace.expiries(&from).enumerate() {
        let expiry = expiry?;
        let is_hold = expiry.what == HOLD_EXPIRES;
        let is_due = is_hold && expiry.time <= now && due.len() < HOLDS_PER_COMMAND_MAX;
        if (is_hold && !is_due) || n_passed == EXPIRIES_PASSED_MAX {
            next = Some(expiry.time);
            break;
        }
        if is_due {
            due.push((expiry.time, expiry.key));
        }
    }
    for (time, key) in due {
        end_hold(keyspace, &key, time)?;
    }
    keyspace.root.next_hold = next;
    keyspace.save_root()
}

/// Ends the hold that a booking had until this time, if it still has it. Answers about how many
/// entries changed.
pub(crate) fn end_hold(keyspace: &mut Keyspace<'_>, key: &Bytes, time: u64) -> Result<usize> {
    match held(keyspace, key, time) {
        Ok(Some(settlement)) => {
            settlement.complete(keyspace, Status::Expired)?;
            Ok(ENTRIES_PER_HOLD)
        }
        // A plain command has changed what belongs to the booking: there is nothing to return.
        Ok(None) | Err(Failure::Refused(_)) => {
            keyspace.set_expiry(HOLD_EXPIRES, key, Some(time), None)?;
            Ok(1)
        }
        Err(failure) => Err(failure),
    }
}

/// What is to change if the booking under a key is reserved until this time.
fn held(keyspace: &Keyspace<'_>, key: &Bytes, time: u64) -> Result<Option<Settlement>> {
    let Some((prefix, id)) = split_booking_key(key) else {
        return Ok(None);
    };
    let booking = Booking::load(keyspace, prefix, id)?;
    let is_held =
        |booking: &Booking| booking.status == Status::Reserved && booking.expires_at == Some(time);
    let booking = booking.filter(is_held);
    let settlement = booking.map(|booking| Settlement::prepare(keyspace, booking));
    settlement.transpose()
}
