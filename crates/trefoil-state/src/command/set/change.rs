//! A set that is changed. Its members have no values.

use bytes::Bytes;

use crate::command::arguments::check_name;
use crate::error::Result;
use crate::keyspace::{FoundCollection, Keyspace};
use crate::meta::ValueKind;

/// A set that is changed; the change is complete with [`Self::save`].
#[derive(Debug)]
pub(super) struct SetChange<'k, 'a> {
    keyspace: &'k mut Keyspace<'a>,
    key: &'k Bytes,
    found: FoundCollection,
    is_changed: bool,
}

impl<'k, 'a> SetChange<'k, 'a> {
    /// Begins to change the set under a key, if there is one.
    pub(super) fn existing(keyspace: &'k mut Keyspace<'a>, key: &'k Bytes) -> Result<Option<Self>> {
        let found = keyspace.collection(key, ValueKind::Set)?;
        Ok(found.map(|found| Self::begin(keyspace, key, found)))
    }

    /// Begins to change the set under a key, or a new one.
    pub(super) fn existing_or_new(keyspace: &'k mut Keyspace<'a>, key: &'k Bytes) -> Result<Self> {
        check_name(key)?;
        let found = keyspace.collection_or_new(key, ValueKind::Set)?;
        Ok(Self::begin(keyspace, key, found))
    }

    /// Begins a new set that will replace whatever is under a key.
    pub(super) fn new(keyspace: &'k mut Keyspace<'a>, key: &'k Bytes) -> Result<Self> {
        check_name(key)?;
        let found = keyspace.new_collection(ValueKind::Set);
        let mut change = Self::begin(keyspace, key, found);
        change.is_changed = true;
        Ok(change)
    }

    fn begin(keyspace: &'k mut Keyspace<'a>, key: &'k Bytes, found: FoundCollection) -> Self {
        Self {
            keyspace,
            key,
            found,
            is_changed: false,
        }
    }

    /// Adds a member. Returns whether it is new.
    pub(super) fn add(&mut self, member: &Bytes) -> Result<bool> {
        check_name(member)?;
        let id = self.found.collection.id;
        if self.keyspace.named(id, member)?.is_some() {
            return Ok(false);
        }
        self.keyspace.set_named(id, member, Some(Bytes::new()))?;
        self.found.collection.len += 1;
        self.is_changed = true;
        Ok(true)
    }

    /// Removes a member. Returns whether it was there.
    pub(super) fn remove(&mut self, member: &Bytes) -> Result<bool> {
        let id = self.found.collection.id;
        if self.keyspace.named(id, member)?.is_none() {
            return Ok(false);
        }
        self.keyspace.set_named(id, member, None)?;
        self.found.collection.len -= 1;
        self.is_changed = true;
        Ok(true)
    }

    /// Returns how many members there are.
    pub(super) fn len(&self) -> u64 {
        self.found.collection.len
    }

    /// Completes the change. If nothing was changed, nothing is.
    pub(super) fn save(self) -> Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        self.keyspace.put_collection(self.key, &self.found)
    }
}
