//! A few names and values in one entry: the fields of a small hash.
//!
//! ```text
//! number of fields, then for each: length of name, name, length of value, value    (varints)
//! ```
//!
//! They lie in the order in which larger hashes keep their fields, so that nobody can tell which of
//! the two a hash is.

use bytes::Bytes;
use trefoil_core::{put_bytes, put_varint, take_bytes, take_varint};

use crate::error::Result;
use crate::keyspace::damaged;
use crate::layout::hash;

/// A hash of more fields, or of more bytes, has an entry for each of its fields. Up to here, writing
/// the whole hash costs less than finding one field of it.
const FIELDS_MAX: u64 = 32;
const BYTES_MAX: usize = 512;

/// Names and values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pack {
    len: u64,
    body: Bytes,
}

/// A field in the body: where it begins and ends, its name and its value.
struct PackedField<'p> {
    begin: usize,
    end: usize,
    name: &'p [u8],
    value: &'p [u8],
}

impl Pack {
    /// Returns how many fields there are.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether it is small enough to stay one entry.
    pub(crate) fn is_small(&self) -> bool {
        self.len <= FIELDS_MAX && self.body.len() <= BYTES_MAX
    }

    /// Returns the value of a field.
    pub(crate) fn get(&self, name: &[u8]) -> Result<Option<Bytes>> {
        let found = self.find(name)?;
        Ok(found.map(|field| self.body.slice_ref(field.value)))
    }

    /// Returns all names and values.
    pub(crate) fn all(&self) -> impl Iterator<Item = Result<(Bytes, Bytes)>> + use<'_> {
        self.fields().map(|field| {
            let PackedField { name, value, .. } = field?;
            Ok((self.body.slice_ref(name), self.body.slice_ref(value)))
        })
    }

    /// Returns the same names and values, but for this one, which has another value or is not
    /// there.
    pub(crate) fn with(&self, name: &[u8], value: Option<&[u8]>) -> Result<Self> {
        let (begin, end, was_there) = match self.find(name)? {
            Some(field) => (field.begin, field.end, true),
            None => {
                let place = self.place(name)?;
                (place, place, false)
            }
        };
        let room = name.len() + value.map_or(0, <[u8]>::len) + 20;
        let mut body = Vec::with_capacity(self.body.len() + room);
        body.extend_from_slice(&self.body[..begin]);
        if let Some(value) = value {
            put_bytes(&mut body, name);
            put_bytes(&mut body, value);
        }
        body.extend_from_slice(&self.body[end..]);
        let difference = i64::from(value.is_some()) - i64::from(was_there);
        Ok(Self {
            len: self.len.saturating_add_signed(difference),
            body: body.into(),
        })
    }

    fn find(&self, name: &[u8]) -> Result<Option<PackedField<'_>>> {
        let is_sought = |field: &Result<PackedField<'_>>| match field {
            Ok(field) => field.name == name,
            Err(_) => true,
        };
        self.fields().find(is_sought).transpose()
    }

    /// Returns where a field begins that is not there.
    fn place(&self, name: &[u8]) -> Result<usize> {
        let order = (hash(name), name);
        for field in self.fields() {
            let field = field?;
            if (hash(field.name), field.name) > order {
                return Ok(field.begin);
            }
        }
        Ok(self.body.len())
    }

    fn fields(&self) -> impl Iterator<Item = Result<PackedField<'_>>> {
        let body = self.body.as_ref();
        let mut rest = body;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let begin = body.len() - rest.len();
            let (Some(name), Some(value)) = (take_bytes(&mut rest), take_bytes(&mut rest)) else {
                rest = &[];
                return Some(Err(damaged("the fields of a hash").into()));
            };
            let end = body.len() - rest.len();
            Some(Ok(PackedField {
                begin,
                end,
                name,
                value,
            }))
        })
    }

    /// Returns how many bytes [`Self::encode`] appends, at most.
    pub(crate) fn bytes_max(&self) -> usize {
        self.body.len() + 10
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len);
        out.extend_from_slice(&self.body);
    }

    /// Reads back what ends some bytes; `None` if it is none.
    pub(crate) fn decode(bytes: &Bytes, mut rest: &[u8]) -> Option<Self> {
        Some(Self {
            len: take_varint(&mut rest)?,
            body: bytes.slice_ref(rest),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn encoded(pack: &Pack) -> Bytes {
        let mut out = Vec::new();
        pack.encode(&mut out);
        assert!(out.len() <= pack.bytes_max());
        out.into()
    }

    proptest! {
        #[test]
        fn a_pack_is_a_map_in_the_order_of_hashes(
            changes in proptest::collection::vec(("[a-d]{0,2}", "[xy]{0,3}", any::<bool>()), 0..40)
        ) {
            let (mut pack, mut model) = (Pack::default(), BTreeMap::new());
            for (name, value, is_removed) in changes {
                let name = Bytes::from(name.into_bytes());
                let order = (hash(&name), name.clone());
                if is_removed {
                    pack = pack.with(&name, None).unwrap();
                    model.remove(&order);
                } else {
                    pack = pack.with(&name, Some(value.as_bytes())).unwrap();
                    model.insert(order.clone(), Bytes::from(value.into_bytes()));
                }
                prop_assert_eq!(pack.get(&name).unwrap(), model.get(&order).cloned());
                prop_assert_eq!(pack.len(), model.len() as u64);
                let all: Vec<_> = pack.all().collect::<Result<_>>().unwrap();
                let expected: Vec<_> = model
                    .iter()
                    .map(|((_, name), value)| (name.clone(), value.clone()))
                    .collect();
                prop_assert_eq!(all, expected);
                let bytes = encoded(&pack);
                prop_assert_eq!(Pack::decode(&bytes, &bytes).unwrap(), pack.clone());
            }
        }
    }

    #[test]
    fn what_is_cut_is_damaged() {
        let pack = Pack::default().with(b"name", Some(b"value")).unwrap();
        let bytes = encoded(&pack);
        for end in 2..bytes.len() {
            let cut = bytes.slice(..end);
            let pack = Pack::decode(&cut, &cut).unwrap();
            assert!(pack.get(b"name").is_err(), "{end}");
            assert!(pack.with(b"other", Some(b"")).is_err(), "{end}");
        }
        assert_eq!(Pack::decode(&Bytes::new(), &[]), None);
    }
}
