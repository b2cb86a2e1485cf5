//! Holds that run out: their seats return, once.
//!
//! The end of a hold is a timer under the key of the booking. It is run when its time has come, or
//! before another command changes seats, if that comes first.

use bytes::Bytes;
use trefoil_state::{CommandError, Keyspace, Timer};

use super::booking::{Booking, Status};
use super::names::split_booking_key;
use super::settle::Settlement;
use crate::Result;

/// Ends a hold.
pub(super) static HOLD_ENDS: Timer = Timer::new(2, end_hold);

/// Ends the hold that a booking had until this time, if it still has it.
fn end_hold(keyspace: &mut Keyspace<'_>, key: &Bytes, time: u64) -> Result<()> {
    match held(keyspace, key, time) {
        Ok(Some(settlement)) => settlement.complete(keyspace, Status::Expired).map(drop),
        // A plain command has changed what belongs to the booking: there is nothing to return.
        Ok(None) | Err(CommandError::Refused(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Returns what is to change if the booking under a key is reserved until this time.
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
