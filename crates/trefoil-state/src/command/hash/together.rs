//! A field's value and when it expires, at once.

use bytes::Bytes;

use super::expiry::{expire_field, keep_field};
use super::field::HashField;
use super::fields::HashChange;
use super::options::{NOT_POSITIVE, field_names, field_time};
use crate::command::arguments::{ArgumentReader, check_name, is_word};
use crate::command::clock::TimeUnit;
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::number::parse_integer;
use crate::reply::Reply;

/// What is to become of a field's expiry.
#[derive(Debug, Clone, Copy)]
enum FieldExpiry {
    /// It expires at this time.
    At(u64),
    /// As before.
    Keep,
    /// It does not expire.
    Never,
}

/// `HGETDEL key FIELDS numfields field [field …]`
pub(super) fn hgetdel(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let change = HashChange::existing(keyspace, &arguments[1])?;
    let names = field_names(ArgumentReader::new(&arguments[2..]), NOT_POSITIVE)?;
    take_each(change, names, |change, name, field| {
        change.remove(name, field)
    })
}

/// `HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds |
/// PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field …]`
pub(super) fn hgetex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let now = keyspace.now();
    let change = HashChange::existing(keyspace, &arguments[1])?;
    let mut rest = ArgumentReader::new(&arguments[2..]);
    let expiry = match TimeUnit::of(&arguments[2]) {
        Some(clock) => {
            rest = ArgumentReader::new(&arguments[4..]);
            FieldExpiry::At(field_time(clock, &arguments[3], now, "hgetex")?)
        }
        None if rest.take("PERSIST") => FieldExpiry::Never,
        None => FieldExpiry::Keep,
    };
    let names = field_names(rest, NOT_POSITIVE)?;
    take_each(change, names, |change, name, field| match expiry {
        FieldExpiry::At(time) => expire_field(change, name, field, time).map(drop),
        FieldExpiry::Never => keep_field(change, name, field).map(drop),
        FieldExpiry::Keep => Ok(()),
    })
}

/// Returns the values of fields, and does something to each that is there.
fn take_each(
    change: Option<HashChange<'_, '_>>,
    names: &[Bytes],
    each: impl Fn(&mut HashChange<'_, '_>, &Bytes, &HashField) -> Result<()>,
) -> Result<Reply> {
    let Some(mut change) = change else {
        return Ok(Reply::Array(vec![Reply::Nil; names.len()]));
    };
    let mut values = Vec::with_capacity(names.len());
    for name in names {
        let field = change.get(name)?;
        if let Some(field) = &field {
            each(&mut change, name, field)?;
        }
        values.push(Reply::bulk_or_nil(field.map(|field| field.value)));
    }
    change.save()?;
    Ok(Reply::Array(values))
}

/// `HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds |
/// PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value …]`
pub(super) fn hsetex(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let options = SetFieldOptions::parse(&arguments[2..], keyspace.now())?;
    check_name(&arguments[1])?;
    let mut change = HashChange::existing_or_new(keyspace, &arguments[1])?;
    let is_met = options.is_met(&change)?;
    if is_met {
        for [name, value] in options.fields {
            check_name(name)?;
            set(&mut change, name, value, options.expiry)?;
        }
    }
    change.save()?;
    Ok(Reply::flag(is_met))
}

/// Sets a field; if it is to expire at a time that has passed, it is not there afterwards.
fn set(
    change: &mut HashChange<'_, '_>,
    name: &Bytes,
    value: &Bytes,
    expiry: FieldExpiry,
) -> Result<()> {
    let before = change.get(name)?;
    let after = HashField {
        value: value.clone(),
        expires: match expiry {
            FieldExpiry::At(time) => Some(time),
            FieldExpiry::Keep => before.as_ref().and_then(|before| before.expires),
            FieldExpiry::Never => None,
        },
    };
    match before {
        Some(before) if after.is_expired(change.now()) => change.remove(name, &before),
        None if after.is_expired(change.now()) => Ok(()),
        before => change.replace(name, before.as_ref(), &after),
    }
}

/// What `HSETEX` is to do.
struct SetFieldOptions<'a> {
    /// Whether all fields must be there (`FXX`), or none of them (`FNX`).
    must_exist: Option<bool>,
    expiry: FieldExpiry,
    fields: &'a [[Bytes; 2]],
}

impl<'a> SetFieldOptions<'a> {
    fn parse(arguments: &'a [Bytes], now: u64) -> Result<Self> {
        let mut rest = ArgumentReader::new(arguments);
        let mut must_exist = None;
        let mut expiry = None;
        while let Some(word) = rest.word() {
            if is_word(word, "FIELDS") {
                return Ok(Self {
                    must_exist,
                    expiry: expiry.unwrap_or(FieldExpiry::Never),
                    fields: pairs(rest)?,
                });
            }
            let clock = TimeUnit::of(word);
            if clock.is_some() || is_word(word, "KEEPTTL") {
                if expiry.is_some() {
                    let text = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be \
                                specified";
                    return Err(CommandError::refused(text));
                }
                expiry = Some(match clock {
                    Some(clock) => FieldExpiry::At(take_time(&mut rest, clock, now)?),
                    None => FieldExpiry::Keep,
                });
            } else if is_word(word, "FXX") || is_word(word, "FNX") {
                let before = must_exist.replace(is_word(word, "FXX"));
                if before.is_some() {
                    let text = "ERR Only one of FXX or FNX arguments can be specified";
                    return Err(CommandError::refused(text));
                }
            } else {
                let word = String::from_utf8_lossy(word);
                return Err(CommandError::because(format!(
                    "ERR unknown argument: {word}"
                )));
            }
        }
        Err(WRONG_NUMBER)
    }

    fn is_met(&self, change: &HashChange<'_, '_>) -> Result<bool> {
        let Some(must_exist) = self.must_exist else {
            return Ok(true);
        };
        for [name, _] in self.fields {
            if change.get(name)?.is_some() != must_exist {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

const WRONG_NUMBER: CommandError =
    CommandError::refused("ERR wrong number of arguments for 'hsetex' command");

fn take_time(rest: &mut ArgumentReader<'_>, clock: TimeUnit, now: u64) -> Result<u64> {
    let missing = CommandError::refused("ERR missing expire time");
    field_time(clock, rest.word().ok_or(missing)?, now, "hsetex")
}

/// `numfields field value [field value …]`, to the end of the arguments.
fn pairs<'a>(mut rest: ArgumentReader<'a>) -> Result<&'a [[Bytes; 2]]> {
    if rest.all().len() < 3 {
        return Err(WRONG_NUMBER);
    }
    let count = rest.word().and_then(|count| parse_integer(count));
    let count = count.filter(|count| *count > 0);
    let count = count.ok_or(CommandError::refused("ERR invalid number of fields"))?;
    let (pairs, odd) = rest.all().as_chunks::<2>();
    if !odd.is_empty() || usize::try_from(count) != Ok(pairs.len()) {
        return Err(WRONG_NUMBER);
    }
    Ok(pairs)
}
