//! When fields of hashes expire.
//!
//! Behind its fields, a hash keeps the times at which some of them expire, in order. The first of
//! them says when something is to be removed, and the last, if all fields expire, when the hash is
//! gone. The first one of each hash is also among the expiries of the keyspace.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use trefoil_core::Direction;

use crate::error::Result;
use crate::keyspace::{Keyspace, damaged};
use crate::meta::{Collection, StoredValue, ValueKind};
use crate::named::AFTER_NAMED;

/// A time and the field that expires then.
pub(crate) type FieldTime = (u64, Bytes);

/// Returns the place of the entry that says that this field expires at this time.
fn place(time: u64, field: &[u8]) -> Bytes {
    let mut place = BytesMut::with_capacity(AFTER_NAMED.len() + 8 + field.len());
    place.put_slice(AFTER_NAMED);
    place.put_u64(time);
    place.put_slice(field);
    place.freeze()
}

impl Keyspace<'_> {
    /// Notes when a field expires: when it was to expire until now, and when it is from now on.
    pub(crate) fn set_field_time(
        &mut self,
        id: u64,
        field: &[u8],
        before: Option<u64>,
        after: Option<u64>,
    ) -> Result<()> {
        if before == after {
            return Ok(());
        }
        if let Some(time) = before {
            self.set_element(id, &place(time, field), None)?;
        }
        if let Some(time) = after {
            self.set_element(id, &place(time, field), Some(Bytes::new()))?;
        }
        Ok(())
    }

    /// Returns when fields expire, from a time on.
    fn field_times(
        &self,
        id: u64,
        from: u64,
        direction: Direction,
    ) -> impl Iterator<Item = Result<FieldTime>> + '_ {
        let elements = self.elements(id, &place(from, b""), None, direction);
        elements.map(|element| {
            let (mut place, _) = element?;
            place.advance(AFTER_NAMED.len());
            let time = place
                .try_get_u64()
                .map_err(|_| damaged("the expiry of a field"))?;
            Ok((time, place))
        })
    }

    /// Returns the fields of a collection that have expired but are still to be removed.
    pub(crate) fn expired_fields(&self, id: u64) -> impl Iterator<Item = Result<FieldTime>> + '_ {
        let now = self.now();
        self.field_times(id, 0, Direction::Forwards)
            .take_while(move |field| !matches!(field, Ok((time, _)) if *time > now))
    }

    /// Returns when the first field of a value expires, or has expired if it is still to be
    /// removed.
    pub(crate) fn first_field_expiry(&self, value: &StoredValue) -> Result<Option<u64>> {
        self.field_expiry_from(value, 0)
    }

    /// Returns when the first field of a value expires that is still there.
    pub(crate) fn next_field_expiry(&self, value: &StoredValue) -> Result<Option<u64>> {
        self.field_expiry_from(value, self.now() + 1)
    }

    fn field_expiry_from(&self, value: &StoredValue, from: u64) -> Result<Option<u64>> {
        let id = match value {
            StoredValue::Collection(hash) if hash.kind == ValueKind::Hash && hash.extra > 0 => {
                hash.id
            }
            _ => return Ok(None),
        };
        let first = self.field_times(id, from, Direction::Forwards).next();
        Ok(first.transpose()?.map(|(time, _)| time))
    }

    /// Returns whether a collection is a hash all of whose fields have expired.
    pub(crate) fn fields_are_gone(&self, collection: &Collection) -> Result<bool> {
        let all_expire = i64::try_from(collection.len) == Ok(collection.extra);
        if collection.kind != ValueKind::Hash || !all_expire {
            return Ok(false);
        }
        let mut times = self.field_times(collection.id, 0, Direction::Backwards);
        let last = times.next().transpose()?;
        Ok(last.is_some_and(|(time, _)| time <= self.now()))
    }

    /// Removes at most `n_max` expired fields of the hash under a key, or the whole hash if they
    /// are all: for a watch of it, nothing changes. Returns how many entries were removed.
    pub(crate) fn purge_fields(&mut self, key: &Bytes, n_max: usize) -> Result<usize> {
        let Some(mut meta) = self.find(key)? else {
            return self.remove_expired(key);
        };
        let first = self.first_field_expiry(&meta.value)?;
        let StoredValue::Collection(hash) = &mut meta.value else {
            return Ok(0);
        };
        if first.is_none() {
            return Ok(0);
        }
        let expired = self.expired_fields(hash.id).take(n_max);
        let expired = expired.collect::<Result<Vec<_>>>()?;
        for (time, field) in &expired {
            self.set_named(hash.id, field, None)?;
            self.set_field_time(hash.id, field, Some(*time), None)?;
            hash.len = hash.len.saturating_sub(1);
            hash.extra -= 1;
        }
        let next = self.first_field_expiry(&meta.value)?;
        self.set_field_expiry(key, first, next)?;
        self.put_untouched(key, &meta)?;
        Ok(expired.len())
    }
}
