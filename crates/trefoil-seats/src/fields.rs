//! Fields of hashes, read by name and type.

use std::collections::BTreeMap;

use bytes::Bytes;
use trefoil_state::{CommandError, HashReader, Keyspace, parse_integer};

use super::refusal;
use crate::Result;

/// The fields of the hash under a key; there are none if it is not there.
#[derive(Debug)]
pub(super) struct HashFields<'k, 'a> {
    key: Bytes,
    hash: Option<HashReader<'k, 'a>>,
}

impl<'k, 'a> HashFields<'k, 'a> {
    pub(super) fn of(keyspace: &'k Keyspace<'a>, key: Bytes) -> Result<Self> {
        let hash = keyspace.hash(&key)?;
        Ok(Self { key, hash })
    }

    /// Returns whether there are fields.
    pub(super) fn exist(&self) -> bool {
        self.hash.is_some()
    }

    /// Returns a field's value.
    pub(super) fn get(&self, name: &str) -> Result<Option<Bytes>> {
        let Some(hash) = &self.hash else {
            return Ok(None);
        };
        hash.get(name.as_bytes())
    }

    /// Returns a field's value, which must be an integer.
    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        let number = parse_integer(&value);
        number.map(Some).ok_or_else(|| self.wrong(name))
    }

    /// Returns a field's value, which must be a number of things.
    pub(super) fn count(&self, name: &str) -> Result<Option<u64>> {
        let number = self.integer(name)?;
        let number = number.map(|number| u64::try_from(number).map_err(|_| self.wrong(name)));
        number.transpose()
    }

    /// Returns a field's value, which must be there and text.
    pub(super) fn text(&self, name: &str) -> Result<String> {
        let value = self.get(name)?.unwrap_or_default();
        let text = String::from_utf8(value.into()).map_err(|_| self.wrong(name));
        text.and_then(|text| match text.is_empty() {
            true => Err(self.wrong(name)),
            false => Ok(text),
        })
    }

    /// Returns what says that a field is not as it should be.
    pub(super) fn wrong(&self, name: &str) -> CommandError {
        refusal::not_ours(&self.key, &format!("field {name}"))
    }
}

/// Returns all fields of the hash under a key that are integers.
pub(super) fn all_integers(keyspace: &Keyspace<'_>, key: &Bytes) -> Result<BTreeMap<String, i64>> {
    let Some(hash) = keyspace.hash(key)? else {
        return Ok(BTreeMap::new());
    };
    let integers = hash.all().filter_map(|field| {
        let read = |(name, value): (Bytes, Bytes)| {
            let name = String::from_utf8_lossy(&name).into_owned();
            Some((name, parse_integer(&value)?))
        };
        field.map(read).transpose()
    });
    integers.collect()
}

/// A field and the value that it gets.
pub(super) type Setting<'s> = (&'s str, Bytes);

/// Returns a field and the number that it gets.
pub(super) fn number(name: &str, number: impl TryInto<i64>) -> Setting<'_> {
    let number: i64 = number.try_into().unwrap_or(i64::MAX);
    (name, number.to_string().into())
}

/// Returns a field and the text that it gets.
pub(super) fn text<'s>(name: &'s str, text: &str) -> Setting<'s> {
    (name, Bytes::copy_from_slice(text.as_bytes()))
}
