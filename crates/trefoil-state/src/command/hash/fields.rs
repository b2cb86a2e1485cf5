//! The fields of a hash, to read and to change: those that have expired are not there.

use bytes::Bytes;

use super::field::HashField;
use crate::error::{Result, WRONG_TYPE};
use crate::keyspace::{FoundCollection, Keyspace};
use crate::layout::hash;
use crate::meta::{Collection, Meta, StoredValue, ValueKind};
use crate::named::WalkPart;
use crate::pack::Pack;

/// The fields of a hash: in the entry of its key, or in entries of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hash {
    Small(Pack),
    Large(Collection),
}

impl Hash {
    /// Returns the hash under a key.
    pub(crate) fn find(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Option<Self>> {
        let found = find(keyspace, key)?;
        Ok(found.map(|(hash, _)| hash))
    }

    /// Returns how many fields there are.
    pub(crate) fn len(&self, keyspace: &Keyspace<'_>) -> Result<u64> {
        let collection = match self {
            Self::Small(pack) => return Ok(pack.len()),
            Self::Large(collection) => collection,
        };
        let mut len = collection.len;
        if collection.extra > 0 {
            for expired in keyspace.expired_fields(collection.id) {
                expired?;
                len = len.saturating_sub(1);
            }
        }
        Ok(len)
    }

    /// Returns a field.
    pub(crate) fn get(&self, keyspace: &Keyspace<'_>, field: &[u8]) -> Result<Option<HashField>> {
        let collection = match self {
            Self::Small(pack) => return Ok(pack.get(field)?.map(HashField::plain)),
            Self::Large(collection) => collection,
        };
        let stored = keyspace.named(collection.id, field)?;
        let field = stored.map(HashField::decode).transpose()?;
        Ok(field.filter(|field| !field.is_expired(keyspace.now())))
    }

    /// Returns all fields, by their names.
    pub(crate) fn all<'s>(
        &'s self,
        keyspace: &'s Keyspace<'_>,
    ) -> impl Iterator<Item = Result<(Bytes, HashField)>> + 's {
        let now = keyspace.now();
        let (small, large) = match self {
            Self::Small(pack) => (Some(plain_fields(pack)), None),
            Self::Large(collection) => (None, Some(keyspace.all_named(collection.id))),
        };
        let large = large.into_iter().flatten();
        let large = large.filter_map(move |named| read(named, now).transpose());
        small.into_iter().flatten().chain(large)
    }

    /// Returns about `count` fields from the place on that a cursor says, without those that have
    /// expired.
    pub(crate) fn part(
        &self,
        keyspace: &Keyspace<'_>,
        cursor: u32,
        count: usize,
    ) -> Result<WalkPart<(Bytes, HashField)>> {
        let collection = match self {
            Self::Small(pack) => {
                let walk = plain_fields(pack)
                    .skip_while(|field| matches!(field, Ok((name, _)) if hash(name) < cursor));
                return WalkPart::take(walk, count, |(name, _)| hash(name));
            }
            Self::Large(collection) => collection,
        };
        let WalkPart { found, next } = keyspace.scan_named(collection.id, cursor, count)?;
        let there = |named| read(Ok(named), keyspace.now()).transpose();
        let found = found.into_iter().filter_map(there).collect::<Result<_>>()?;
        Ok(WalkPart { found, next })
    }
}

/// Returns the hash under a key, and when the key expires.
fn find(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Option<(Hash, Option<u64>)>> {
    let Some(Meta { expires, value }) = keyspace.find(key)? else {
        return Ok(None);
    };
    let hash = match value {
        StoredValue::SmallHash(pack) => Hash::Small(pack),
        StoredValue::Collection(hash) if hash.kind == ValueKind::Hash => Hash::Large(hash),
        _ => return Err(WRONG_TYPE),
    };
    Ok(Some((hash, expires)))
}

/// Returns the fields of a small hash, none of which expires.
fn plain_fields(pack: &Pack) -> impl Iterator<Item = Result<(Bytes, HashField)>> {
    let plain = |(name, value)| (name, HashField::plain(value));
    pack.all().map(move |named| named.map(plain))
}

/// Returns a field and its name, unless it has expired.
fn read(named: Result<(Bytes, Bytes)>, now: u64) -> Result<Option<(Bytes, HashField)>> {
    let (name, stored) = named?;
    let field = HashField::decode(stored)?;
    Ok((!field.is_expired(now)).then_some((name, field)))
}

/// A hash that is changed; the change is complete with [`Self::save`].
#[derive(Debug)]
pub(crate) struct HashChange<'k, 'a> {
    keyspace: &'k mut Keyspace<'a>,
    key: &'k Bytes,
    hash: Hash,
    expires: Option<u64>,
    before: Hash,
    /// When the first field was to expire before the change; known once that may change.
    first_expiry: Option<Option<u64>>,
    is_changed: bool,
}

impl<'k, 'a> HashChange<'k, 'a> {
    /// Begins to change the hash under a key, if there is one.
    pub(crate) fn existing(keyspace: &'k mut Keyspace<'a>, key: &'k Bytes) -> Result<Option<Self>> {
        let found = find(keyspace, key)?;
        Ok(found.map(|(hash, expires)| Self::begin(keyspace, key, hash, expires)))
    }

    /// Begins to change the hash under a key, or a new one.
    pub(crate) fn existing_or_new(keyspace: &'k mut Keyspace<'a>, key: &'k Bytes) -> Result<Self> {
        let found = find(keyspace, key)?;
        let (hash, expires) = found.unwrap_or((Hash::Small(Pack::default()), None));
        Ok(Self::begin(keyspace, key, hash, expires))
    }

    fn begin(
        keyspace: &'k mut Keyspace<'a>,
        key: &'k Bytes,
        hash: Hash,
        expires: Option<u64>,
    ) -> Self {
        Self {
            keyspace,
            key,
            before: hash.clone(),
            hash,
            expires,
            first_expiry: None,
            is_changed: false,
        }
    }

    /// Returns milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.keyspace.now()
    }

    /// Returns a field.
    pub(crate) fn get(&self, name: &[u8]) -> Result<Option<HashField>> {
        self.hash.get(self.keyspace, name)
    }

    /// Replaces a field, which is as [`Self::get`] said.
    pub(crate) fn replace(
        &mut self,
        name: &[u8],
        before: Option<&HashField>,
        after: &HashField,
    ) -> Result<()> {
        self.is_changed = true;
        if before == Some(after) {
            return Ok(());
        }
        if let Hash::Small(pack) = &self.hash
            && after.expires.is_none()
        {
            let pack = pack.with(name, Some(&after.value))?;
            if pack.is_small() {
                self.hash = Hash::Small(pack);
                return Ok(());
            }
        }
        let mut collection = self.grow()?;
        let expires = match before {
            Some(before) => before.expires,
            None => self.expired(&collection, name)?,
        };
        if before.is_none() && expires.is_none() {
            collection.len += 1;
        }
        self.set(collection, name, expires, Some(after))
    }

    /// Returns when a field has expired that is not there, but still to be removed.
    fn expired(&self, collection: &Collection, name: &[u8]) -> Result<Option<u64>> {
        if collection.extra == 0 {
            return Ok(None);
        }
        let stored = self.keyspace.named(collection.id, name)?;
        Ok(stored
            .map(HashField::decode)
            .transpose()?
            .and_then(|field| field.expires))
    }

    /// Removes a field, which is as [`Self::get`] said.
    pub(crate) fn remove(&mut self, name: &[u8], before: &HashField) -> Result<()> {
        self.is_changed = true;
        match &self.hash {
            Hash::Small(pack) => {
                self.hash = Hash::Small(pack.with(name, None)?);
                Ok(())
            }
            Hash::Large(collection) => {
                let mut collection = *collection;
                collection.len = collection.len.saturating_sub(1);
                self.set(collection, name, before.expires, None)
            }
        }
    }

    /// Gives the fields of a small hash entries of their own.
    fn grow(&mut self) -> Result<Collection> {
        let pack = match &self.hash {
            Hash::Large(collection) => return Ok(*collection),
            Hash::Small(pack) => pack,
        };
        let mut collection = self.keyspace.new_collection(ValueKind::Hash).collection;
        for field in plain_fields(pack) {
            let (name, field) = field?;
            let stored = Some(field.encode());
            self.keyspace.set_named(collection.id, &name, stored)?;
            collection.len += 1;
        }
        Ok(collection)
    }

    fn set(
        &mut self,
        mut collection: Collection,
        name: &[u8],
        expires: Option<u64>,
        after: Option<&HashField>,
    ) -> Result<()> {
        let will_expire = after.and_then(|after| after.expires);
        if expires != will_expire && self.first_expiry.is_none() {
            let value = StoredValue::Collection(collection);
            self.first_expiry = Some(self.keyspace.first_field_expiry(&value)?);
        }
        collection.extra += i64::from(will_expire.is_some()) - i64::from(expires.is_some());
        self.hash = Hash::Large(collection);
        let id = collection.id;
        self.keyspace
            .set_field_time(id, name, expires, will_expire)?;
        self.keyspace
            .set_named(id, name, after.map(HashField::encode))
    }

    /// Completes the change. If nothing was changed, nothing is.
    pub(crate) fn save(self) -> Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        if let (Some(before), Hash::Large(collection)) = (self.first_expiry, &self.hash) {
            let value = StoredValue::Collection(*collection);
            let first = self.keyspace.first_field_expiry(&value)?;
            self.keyspace.set_field_expiry(self.key, before, first)?;
        }
        if self.hash == self.before {
            self.keyspace.touch(self.key);
            return Ok(());
        }
        let expires = self.expires;
        match self.hash {
            Hash::Small(pack) if pack.len() == 0 => self.keyspace.delete(self.key).map(drop),
            Hash::Small(pack) => {
                let value = StoredValue::SmallHash(pack);
                self.keyspace.put(self.key, &Meta { expires, value })
            }
            Hash::Large(collection) => {
                let found = FoundCollection {
                    collection,
                    expires,
                };
                self.keyspace.put_collection(self.key, &found)
            }
        }
    }
}
