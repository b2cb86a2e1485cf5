//! When keys expire.

use bytes::Bytes;

use super::arguments::{integer, is_word};
use super::deadline::invalid_time;
use super::{CommandAccess, CommandSpec, Keys};
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("expire", -3, CommandAccess::Write, Keys::ONE, expire),
    CommandSpec::new("pexpire", -3, CommandAccess::Write, Keys::ONE, pexpire),
    CommandSpec::new("expireat", -3, CommandAccess::Write, Keys::ONE, expireat),
    CommandSpec::new("pexpireat", -3, CommandAccess::Write, Keys::ONE, pexpireat),
    CommandSpec::new("ttl", 2, CommandAccess::FastRead, Keys::ONE, ttl),
    CommandSpec::new("pttl", 2, CommandAccess::FastRead, Keys::ONE, pttl),
    CommandSpec::new(
        "expiretime",
        2,
        CommandAccess::FastRead,
        Keys::ONE,
        expiretime,
    ),
    CommandSpec::new(
        "pexpiretime",
        2,
        CommandAccess::FastRead,
        Keys::ONE,
        pexpiretime,
    ),
    CommandSpec::new("persist", 2, CommandAccess::Write, Keys::ONE, persist),
];

/// Milliseconds of a second.
const SECOND: i64 = 1000;

/// `EXPIRE key seconds [NX | XX] [GT | LT]`
fn expire(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let now = keyspace.now();
    set_expiry(keyspace, arguments, "expire", SECOND, now)
}

/// `PEXPIRE key milliseconds [NX | XX] [GT | LT]`
fn pexpire(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let now = keyspace.now();
    set_expiry(keyspace, arguments, "pexpire", 1, now)
}

/// `EXPIREAT key second [NX | XX] [GT | LT]`
fn expireat(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    set_expiry(keyspace, arguments, "expireat", SECOND, 0)
}

/// `PEXPIREAT key millisecond [NX | XX] [GT | LT]`
fn pexpireat(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    set_expiry(keyspace, arguments, "pexpireat", 1, 0)
}

/// Makes a key expire at a time that counts from `base` in units of this many milliseconds.
fn set_expiry(
    keyspace: &mut Keyspace<'_>,
    arguments: &[Bytes],
    command: &str,
    unit: i64,
    base: u64,
) -> Result<Reply> {
    let key = &arguments[1];
    let conditions = Conditions::parse(&arguments[3..])?;
    let time = integer(&arguments[2])?
        .checked_mul(unit)
        .and_then(|time| time.checked_add_unsigned(base))
        .ok_or_else(|| invalid_time(command))?;
    let Some(mut meta) = keyspace.find(key)? else {
        return Ok(Reply::flag(false));
    };
    if !conditions.allow(meta.expires, time) {
        return Ok(Reply::flag(false));
    }
    // A time before all times is one that is past.
    meta.expires = Some(u64::try_from(time).unwrap_or_default());
    keyspace.put_or_expire(key, &meta)?;
    Ok(Reply::flag(true))
}

/// Which times of expiry a command may replace.
#[derive(Default)]
struct Conditions {
    none: bool,
    any: bool,
    earlier: bool,
    later: bool,
}

impl Conditions {
    fn parse(arguments: &[Bytes]) -> Result<Self> {
        let mut conditions = Self::default();
        for word in arguments {
            let condition = match word {
                word if is_word(word, "NX") => &mut conditions.none,
                word if is_word(word, "XX") => &mut conditions.any,
                word if is_word(word, "GT") => &mut conditions.earlier,
                word if is_word(word, "LT") => &mut conditions.later,
                word => {
                    let word = String::from_utf8_lossy(word);
                    return Err(CommandError::because(format!(
                        "ERR Unsupported option {word}"
                    )));
                }
            };
            *condition = true;
        }
        if conditions.none && (conditions.any || conditions.earlier || conditions.later) {
            return Err(CommandError::refused(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if conditions.earlier && conditions.later {
            return Err(CommandError::refused(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(conditions)
    }

    /// Returns whether a time may be replaced by this one. A key without a time expires after all
    /// times.
    fn allow(&self, before: Option<u64>, time: i64) -> bool {
        let is_earlier = before.is_some_and(|before| i128::from(before) < i128::from(time));
        let is_later = before.is_none_or(|before| i128::from(before) > i128::from(time));
        let is_refused = self.none && before.is_some()
            || self.any && before.is_none()
            || self.earlier && !is_earlier
            || self.later && !is_later;
        !is_refused
    }
}

/// `TTL key`
fn ttl(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let now = keyspace.now();
    time(keyspace, &arguments[1], |time| seconds(time - now))
}

/// `PTTL key`
fn pttl(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let now = keyspace.now();
    time(keyspace, &arguments[1], |time| time - now)
}

/// `EXPIRETIME key`
fn expiretime(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    time(keyspace, &arguments[1], seconds)
}

/// `PEXPIRETIME key`
fn pexpiretime(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    time(keyspace, &arguments[1], |time| time)
}

/// Returns what there is to say about when a key expires: -1 if it does not, -2 if it is not there.
fn time(keyspace: &Keyspace<'_>, key: &[u8], say: impl FnOnce(u64) -> u64) -> Result<Reply> {
    Ok(Reply::Integer(match keyspace.find(key)? {
        None => -2,
        Some(meta) => meta.expires.map_or(-1, |time| say(time) as i64),
    }))
}

/// Returns milliseconds as seconds, rounded.
fn seconds(milliseconds: u64) -> u64 {
    (milliseconds + 500) / 1000
}

/// `PERSIST key`
fn persist(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let key = &arguments[1];
    let Some(mut meta) = keyspace.find(key)? else {
        return Ok(Reply::flag(false));
    };
    let was_to_expire = meta.expires.take().is_some();
    if was_to_expire {
        keyspace.put(key, &meta)?;
    }
    Ok(Reply::flag(was_to_expire))
}

#[cfg(test)]
mod tests {
    use crate::testing::World;

    #[test]
    fn keys_expire_when_they_are_told_to() {
        let mut world = World::default();
        world.moment.now = 1_000_000;
        world.check(&[
            ("SET a 1", "+OK"),
            ("TTL a", ":-1"),
            ("PTTL x", ":-2"),
            ("EXPIRE a 10", ":1"),
            ("TTL a", ":10"),
            ("PEXPIRETIME a", ":1010000"),
            ("PEXPIRE a 1501", ":1"),
            ("TTL a", ":2"),
            ("PTTL a", ":1501"),
            ("EXPIREAT a 2000", ":1"),
            ("EXPIRETIME a", ":2000"),
            ("PEXPIREAT a 2000499", ":1"),
            ("EXPIRETIME a", ":2000"),
            ("EXPIRE x 10", ":0"),
            ("PERSIST a", ":1"),
            ("PERSIST a", ":0"),
            ("PERSIST x", ":0"),
            ("EXPIRETIME a", ":-1"),
            ("EXPIRETIME x", ":-2"),
            ("PEXPIREAT a 1000001", ":1"),
        ]);
        world.moment.now += 1;
        world.check(&[("TTL a", ":-2"), ("EXISTS a", ":0"), ("EXPIRE a 10", ":0")]);
        world.check(&[("DBSIZE", ":1"), ("DEL a", ":0"), ("DBSIZE", ":0")]);
        assert!(world.left().is_empty(), "{:?}", world.left());
    }

    #[test]
    fn a_time_that_is_past_removes_the_key() {
        let mut world = World::default();
        world.moment.now = 1_000_000;
        for line in [
            "EXPIRE a 0",
            "PEXPIRE a -9223372036854775808",
            "EXPIREAT a 1000",
        ] {
            world.check(&[("SET a 1 EX 10", "+OK"), (line, ":1"), ("DBSIZE", ":0")]);
            assert!(world.left().is_empty(), "{:?}", world.left());
        }
    }

    #[test]
    fn conditions_compare_times() {
        let not_with = "-ERR NX and XX, GT or LT options at the same time are not compatible";
        let either = "-ERR GT and LT options at the same time are not compatible";
        World::default().check(&[
            ("SET a 1", "+OK"),
            ("EXPIRE a 10 XX", ":0"),
            ("EXPIRE a 10 GT", ":0"),
            ("EXPIRE a 10 LT", ":1"),
            ("EXPIRE a 20 NX", ":0"),
            ("EXPIRE a 10 GT", ":0"),
            ("EXPIRE a 11 GT", ":1"),
            ("EXPIRE a 11 LT", ":0"),
            ("EXPIRE a 9 XX LT", ":1"),
            ("TTL a", ":9"),
            ("EXPIRE a 9 NX XX", not_with),
            ("EXPIRE a 9 NX GT", not_with),
            ("EXPIRE a 9 GT LT", either),
            ("EXPIRE a x FOO", "-ERR Unsupported option FOO"),
            ("EXPIRE a x", "-ERR value is not an integer or out of range"),
            (
                "EXPIRE a 9223372036854775807",
                "-ERR invalid expire time in 'expire' command",
            ),
        ]);
    }
}
