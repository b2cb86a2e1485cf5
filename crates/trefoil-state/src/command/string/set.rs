//! Replacing whole strings, under conditions.

use bytes::Bytes;

use super::compare::StringComparison;
use crate::command::arguments::{ArgumentReader, check_name, is_word};
use crate::command::deadline::Deadline;
use crate::error::{Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// When a command sets a string.
pub(super) enum SetCondition<'a> {
    Missing,
    Present,
    Compares(StringComparison<'a>),
}

/// What a command that sets strings is told besides them.
#[derive(Default)]
pub(super) struct SetOptions<'a> {
    pub(super) condition: Option<SetCondition<'a>>,
    deadline: Option<Deadline<'a>>,
    keeps_expiry: bool,
    pub(super) answers_value: bool,
}

impl<'a> SetOptions<'a> {
    pub(super) fn parse(arguments: &'a [Bytes]) -> Result<Self> {
        let mut options = Self::default();
        let mut rest = ArgumentReader::new(arguments);
        while let Some(word) = rest.word() {
            if is_word(word, "GET") {
                options.answers_value = true;
            } else if is_word(word, "KEEPTTL") && options.deadline.is_none() {
                options.keeps_expiry = true;
            } else if let Some(condition) = SetCondition::take(word, &mut rest)? {
                options.restrict(condition)?;
            } else if let Some(deadline) = Deadline::take(word, &mut rest)? {
                let before = options.deadline.replace(deadline);
                let is_other = before.is_some_and(|before| !before.is_like(&deadline));
                if options.keeps_expiry || is_other {
                    return Err(SYNTAX);
                }
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(options)
    }

    /// Takes one condition; the same word may stand twice if it says nothing else.
    fn restrict(&mut self, condition: SetCondition<'a>) -> Result<()> {
        match (&self.condition, &condition) {
            (None, _)
            | (Some(SetCondition::Missing), SetCondition::Missing)
            | (Some(SetCondition::Present), SetCondition::Present) => {
                self.condition = Some(condition);
                Ok(())
            }
            _ => Err(SYNTAX),
        }
    }

    /// Returns when the strings are to expire, if a time was given.
    pub(super) fn time(&self, now: u64, command: &str) -> Result<Option<u64>> {
        let deadline = self.deadline.as_ref();
        deadline
            .map(|deadline| deadline.time(now, command))
            .transpose()
    }

    /// Gives a key a string that expires at this time, or when the key did if that is to stay.
    pub(super) fn write(
        &self,
        keyspace: &mut Keyspace<'_>,
        key: &Bytes,
        value: &Bytes,
        time: Option<u64>,
    ) -> Result<()> {
        let expires = match self.keeps_expiry {
            true => keyspace.find(key)?.and_then(|meta| meta.expires),
            false => time,
        };
        replace(keyspace, key, value, expires)
    }
}

impl<'a> SetCondition<'a> {
    fn take(word: &[u8], rest: &mut ArgumentReader<'a>) -> Result<Option<Self>> {
        if is_word(word, "NX") {
            return Ok(Some(Self::Missing));
        }
        if is_word(word, "XX") {
            return Ok(Some(Self::Present));
        }
        Ok(StringComparison::take(word, rest)?.map(Self::Compares))
    }

    pub(super) fn is_met(&self, keyspace: &Keyspace<'_>, key: &[u8]) -> Result<bool> {
        match self {
            Self::Missing => Ok(keyspace.find(key)?.is_none()),
            Self::Present => Ok(keyspace.find(key)?.is_some()),
            Self::Compares(comparison) => {
                comparison.is_met(keyspace, keyspace.string(key)?.as_ref())
            }
        }
    }
}

/// `SET key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET]
/// [EX seconds | PX milliseconds | EXAT second | PXAT millisecond | KEEPTTL]`
pub(super) fn set(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (key, value) = (&arguments[1], &arguments[2]);
    let options = SetOptions::parse(&arguments[3..])?;
    let time = options.time(keyspace.now(), "set")?;
    let before = match options.answers_value {
        true => Some(Reply::bulk_or_nil(keyspace.string_bytes(key)?)),
        false => None,
    };
    if let Some(condition) = &options.condition
        && !condition.is_met(keyspace, key)?
    {
        return Ok(before.unwrap_or(Reply::Nil));
    }
    options.write(keyspace, key, value, time)?;
    Ok(before.unwrap_or(Reply::OK))
}

/// `SETNX key value`
pub(super) fn setnx(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let is_missing = keyspace.find(&arguments[1])?.is_none();
    if is_missing {
        replace(keyspace, &arguments[1], &arguments[2], None)?;
    }
    Ok(Reply::flag(is_missing))
}

/// `SETEX key seconds value`
pub(super) fn setex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let time = Deadline::seconds(&arguments[2]).time(keyspace.now(), "setex")?;
    replace(keyspace, &arguments[1], &arguments[3], Some(time))?;
    Ok(Reply::OK)
}

/// `PSETEX key milliseconds value`
pub(super) fn psetex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let time = Deadline::milliseconds(&arguments[2]).time(keyspace.now(), "psetex")?;
    replace(keyspace, &arguments[1], &arguments[3], Some(time))?;
    Ok(Reply::OK)
}

/// `GETSET key value`
pub(super) fn getset(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let before = keyspace.string_bytes(&arguments[1])?;
    replace(keyspace, &arguments[1], &arguments[2], None)?;
    Ok(Reply::bulk_or_nil(before))
}

/// Gives a key a string, or removes it if it would expire at once.
pub(super) fn replace(
    keyspace: &mut Keyspace<'_>,
    key: &Bytes,
    value: &Bytes,
    expires: Option<u64>,
) -> Result<()> {
    check_name(key)?;
    if expires.is_some_and(|time| time <= keyspace.now()) {
        keyspace.delete(key)?;
        return Ok(());
    }
    keyspace.put_string(key, value, expires)
}
