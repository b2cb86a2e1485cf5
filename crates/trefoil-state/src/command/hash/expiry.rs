//! When fields expire.

use bytes::Bytes;

use super::field::HashField;
use super::fields::{Hash, HashChange};
use super::options::{NOT_POSITIVE, field_names, field_time};
use crate::command::arguments::ArgumentReader;
use crate::command::clock::TimeUnit;
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// There is no such field.
const NO_FIELD: Reply = Reply::Integer(-2);
/// The field does not expire.
const NO_EXPIRY: Reply = Reply::Integer(-1);
/// The condition does not hold.
const NOT_MET: Reply = Reply::Integer(0);
/// It is done.
const DONE: Reply = Reply::Integer(1);
/// The time has passed already, so the field was removed.
const REMOVED: Reply = Reply::Integer(2);

/// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field [field …]`
pub(super) fn hexpire(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    expire(keyspace, arguments, TimeUnit::EX, "hexpire")
}

/// `HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field …]`
pub(super) fn hpexpire(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    expire(keyspace, arguments, TimeUnit::PX, "hpexpire")
}

/// `HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field …]`
pub(super) fn hexpireat(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    expire(keyspace, arguments, TimeUnit::EXAT, "hexpireat")
}

/// `HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field …]`
pub(super) fn hpexpireat(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    expire(keyspace, arguments, TimeUnit::PXAT, "hpexpireat")
}

/// On what condition a field is to expire at another time.
#[derive(Debug, Clone, Copy)]
enum ExpiryCondition {
    Always,
    /// It does not expire.
    Never,
    /// It expires.
    Expires,
    /// The other time is later.
    Later,
    /// The other time is earlier; what does not expire would expire last.
    Earlier,
}

impl ExpiryCondition {
    fn take(rest: &mut ArgumentReader<'_>) -> Self {
        match () {
            () if rest.take("NX") => Self::Never,
            () if rest.take("XX") => Self::Expires,
            () if rest.take("GT") => Self::Later,
            () if rest.take("LT") => Self::Earlier,
            () => Self::Always,
        }
    }

    fn holds(self, before: Option<u64>, after: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Never => before.is_none(),
            Self::Expires => before.is_some(),
            Self::Later => before.is_some_and(|before| after > before),
            Self::Earlier => before.is_none_or(|before| after < before),
        }
    }
}

fn expire(
    keyspace: &mut Keyspace<'_>,
    arguments: &[Bytes],
    clock: TimeUnit,
    command: &str,
) -> Result<Reply> {
    let now = keyspace.now();
    let change = HashChange::existing(keyspace, &arguments[1])?;
    let time = field_time(clock, &arguments[2], now, command)?;
    let mut rest = ArgumentReader::new(&arguments[3..]);
    let condition = ExpiryCondition::take(&mut rest);
    let not_positive = CommandError::refused("ERR Parameter `numFields` should be greater than 0");
    let names = field_names(rest, not_positive)?;
    change_each(change, names, |change, name, before| {
        if !condition.holds(before.expires, time) {
            return Ok(NOT_MET);
        }
        match expire_field(change, name, &before, time)? {
            true => Ok(DONE),
            false => Ok(REMOVED),
        }
    })
}

/// Lets a field expire at a time, or removes it if that has passed. Returns whether it is there.
pub(super) fn expire_field(
    change: &mut HashChange<'_, '_>,
    name: &[u8],
    before: &HashField,
    time: u64,
) -> Result<bool> {
    if time <= change.now() {
        change.remove(name, before)?;
        return Ok(false);
    }
    let after = HashField {
        value: before.value.clone(),
        expires: Some(time),
    };
    change.replace(name, Some(before), &after)?;
    Ok(true)
}

/// Does something to each field that is there.
fn change_each(
    change: Option<HashChange<'_, '_>>,
    names: &[Bytes],
    each: impl Fn(&mut HashChange<'_, '_>, &Bytes, HashField) -> Result<Reply>,
) -> Result<Reply> {
    let Some(mut change) = change else {
        return Ok(Reply::Array(vec![NO_FIELD; names.len()]));
    };
    let mut replies = Vec::with_capacity(names.len());
    for name in names {
        replies.push(match change.get(name)? {
            Some(before) => each(&mut change, name, before)?,
            None => NO_FIELD,
        });
    }
    change.save()?;
    Ok(Reply::Array(replies))
}

/// `HPERSIST key FIELDS numfields field [field …]`
pub(super) fn hpersist(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let change = HashChange::existing(keyspace, &arguments[1])?;
    let names = field_names(ArgumentReader::new(&arguments[2..]), NOT_POSITIVE)?;
    change_each(change, names, |change, name, before| {
        match keep_field(change, name, &before)? {
            true => Ok(DONE),
            false => Ok(NO_EXPIRY),
        }
    })
}

/// Lets a field never expire. Returns whether it was to.
pub(super) fn keep_field(
    change: &mut HashChange<'_, '_>,
    name: &[u8],
    before: &HashField,
) -> Result<bool> {
    if before.expires.is_none() {
        return Ok(false);
    }
    change.replace(name, Some(before), &HashField::plain(before.value.clone()))?;
    Ok(true)
}

/// `HTTL key FIELDS numfields field [field …]`
pub(super) fn httl(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    tell(keyspace, arguments, TimeUnit::EX)
}

/// `HPTTL key FIELDS numfields field [field …]`
pub(super) fn hpttl(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    tell(keyspace, arguments, TimeUnit::PX)
}

/// `HEXPIRETIME key FIELDS numfields field [field …]`
pub(super) fn hexpiretime(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    tell(keyspace, arguments, TimeUnit::EXAT)
}

/// `HPEXPIRETIME key FIELDS numfields field [field …]`
pub(super) fn hpexpiretime(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    tell(keyspace, arguments, TimeUnit::PXAT)
}

/// Tells when fields expire.
fn tell(keyspace: &Keyspace<'_>, arguments: &[Bytes], clock: TimeUnit) -> Result<Reply> {
    let hash = Hash::find(keyspace, &arguments[1])?;
    let names = field_names(ArgumentReader::new(&arguments[2..]), NOT_POSITIVE)?;
    let Some(hash) = hash else {
        return Ok(Reply::Array(vec![NO_FIELD; names.len()]));
    };
    let times = names.iter().map(|name| {
        Ok(match hash.get(keyspace, name)? {
            Some(HashField {
                expires: Some(time),
                ..
            }) => Reply::Integer(clock.tell(time, keyspace.now())),
            Some(_) => NO_EXPIRY,
            None => NO_FIELD,
        })
    });
    times.collect::<Result<_>>().map(Reply::Array)
}
