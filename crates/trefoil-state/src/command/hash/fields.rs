//! The fields of a hash, to read and to change: those that have expired are not there.

use bytes::Bytes;

use super::field::Field;
use crate::failure::Result;
use crate::keyspace::{Found, Keyspace};
use crate::meta::{Collection, Kind, Value};

/// A hash that is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hash {
    pub(crate) collection: Collection,
}

impl Hash {
    /// The hash under a key.
    pub(crate) fn find(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Option<Self>> {
        let found = keyspace.collection(key, Kind::Hash)?;
        Ok(found.map(|Found { collection, .. }| Self { collection }))
    }

    /// How many fields there are.
    pub(crate) fn len(&self, keyspace: &Keyspace<'_>) -> Result<u64> {
        let mut len = self.collection.len;
        if self.collection.extra > 0 {
            for expired in keyspace.expired_fields(self.collection.id) {
                expired?;
                len = len.saturating_sub(1);
            }
        }
        Ok(len)
    }

    /// A field.
    pub(crate) fn get(&self, keyspace: &Keyspace<'_>, field: &[u8]) -> Result<Option<Field>> {
        let stored = keyspace.named(self.collection.id, field)?;
        let field = stored.map(Field::decode).transpose()?;
        Ok(field.filter(|field| !field.is_expired(keyspace.now())))
    }

    /// All fields, by their names.
    pub(crate) fn all<'s>(
        &self,
        keyspace: &'s Keyspace<'_>,
    ) -> impl Iterator<Item = Result<(Bytes, Field)>> + 's {
        let now = keyspace.now();
        keyspace
            .all_named(self.collection.id)
            .filter_map(move |named| read(named, now).transpose())
    }
}

/// A field and its name, unless it has expired.
pub(crate) fn read(named: Result<(Bytes, Bytes)>, now: u64) -> Result<Option<(Bytes, Field)>> {
    let (name, stored) = named?;
    let field = Field::decode(stored)?;
    Ok((!field.is_expired(now)).then_some((name, field)))
}

/// A hash that is changed; the change is complete with [`Self::save`].
#[derive(Debug)]
pub(crate) struct Change<'k, 'a> {
    keyspace: &'k mut Keyspace<'a>,
    key: &'k Bytes,
    hash: Hash,
    expires: Option<u64>,
    before: Collection,
    /// When the first field was to expire before the change; known once that may change.
    first_expiry: Option<Option<u64>>,
    is_changed: bool,
}

impl<'k, 'a> Change<'k, 'a> {
    /// Begins to change the hash under a key, if there is one.
    pub(crate) fn existing(keyspace: &'k mut Keyspace<'a>, key: &'k Bytes) -> Result<Option<Self>> {
        let found = keyspace.collection(key, Kind::Hash)?;
        Ok(found.map(|found| Self::begin(keyspace, key, found)))
    }

    /// Begins to change the hash under a key, or a new one.
    pub(crate) fn existing_or_new(keyspace: &'k mut Keyspace<'a>, key: &'k Bytes) -> Result<Self> {
        let found = keyspace.collection_or_new(key, Kind::Hash)?;
        Ok(Self::begin(keyspace, key, found))
    }

    fn begin(keyspace: &'k mut Keyspace<'a>, key: &'k Bytes, found: Found) -> Self {
        let collection = found.collection;
        Self {
            keyspace,
            key,
            hash: Hash { collection },
            expires: found.expires,
            before: collection,
            first_expiry: None,
            is_changed: false,
        }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.keyspace.now()
    }

    /// A field.
    pub(crate) fn get(&self, name: &[u8]) -> Result<Option<Field>> {
        self.hash.get(self.keyspace, name)
    }

    /// Replaces a field, which is as [`Self::get`] said.
    pub(crate) fn replace(
        &mut self,
        name: &[u8],
        before: Option<&Field>,
        after: &Field,
    ) -> Result<()> {
        self.is_changed = true;
        if before == Some(after) {
            return Ok(());
        }
        let expires = match before {
            Some(before) => before.expires,
            None => self.expired(name)?,
        };
        if before.is_none() && expires.is_none() {
            self.count(1);
        }
        self.set(name, expires, Some(after))
    }

    /// When a field has expired that is not there, but still to be removed.
    fn expired(&self, name: &[u8]) -> Result<Option<u64>> {
        let Collection { id, extra, .. } = self.hash.collection;
        if extra == 0 {
            return Ok(None);
        }
        let stored = self.keyspace.named(id, name)?;
        Ok(stored
            .map(Field::decode)
            .transpose()?
            .and_then(|field| field.expires))
    }

    /// Removes a field, which is as [`Self::get`] said.
    pub(crate) fn remove(&mut self, name: &[u8], before: &Field) -> Result<()> {
        self.count(-1);
        self.set(name, before.expires, None)
    }

    fn count(&mut self, difference: i64) {
        let len = &mut self.hash.collection.len;
        *len = len.saturating_add_signed(difference);
    }

    fn set(&mut self, name: &[u8], expires: Option<u64>, after: Option<&Field>) -> Result<()> {
        self.is_changed = true;
        let will_expire = after.and_then(|after| after.expires);
        if expires != will_expire && self.first_expiry.is_none() {
            let value = Value::Collection(self.hash.collection);
            self.first_expiry = Some(self.keyspace.first_field_expiry(&value)?);
        }
        let collection = &mut self.hash.collection;
        collection.extra += i64::from(will_expire.is_some()) - i64::from(expires.is_some());
        let id = collection.id;
        self.keyspace
            .set_field_time(id, name, expires, will_expire)?;
        self.keyspace.set_named(id, name, after.map(Field::encode))
    }

    /// Completes the change. If nothing was changed, nothing is.
    pub(crate) fn save(self) -> Result<()> {
        let collection = self.hash.collection;
        if !self.is_changed {
            return Ok(());
        }
        if let Some(before) = self.first_expiry {
            let value = Value::Collection(collection);
            let first = self.keyspace.first_field_expiry(&value)?;
            self.keyspace.set_field_expiry(self.key, before, first)?;
        }
        if collection == self.before {
            self.keyspace.touch(self.key);
            return Ok(());
        }
        let expires = self.expires;
        let found = Found {
            collection,
            expires,
        };
        self.keyspace.put_collection(self.key, &found)
    }
}
