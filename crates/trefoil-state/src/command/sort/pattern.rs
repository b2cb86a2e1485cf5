//! Patterns of `SORT`: which value of another key belongs to an element.
//!
//! `weight_*` is the string under the key that has the element in the place of the `*`,
//! `object_*->field` a field of the hash under it, and `#` the element itself.

use bytes::Bytes;

use crate::command::hash;
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::meta::ValueKind;

#[derive(Debug)]
pub(super) struct Pattern {
    text: Bytes,
    /// The index of the first `*`.
    place: Option<usize>,
    /// What is after the first `->` behind it.
    field: Option<Bytes>,
}

impl Pattern {
    pub(super) fn new(text: &Bytes) -> Self {
        let place = text.iter().position(|byte| *byte == b'*');
        let arrow = place.and_then(|place| {
            let arrow = text[place..].windows(2).position(|pair| pair == b"->");
            arrow.map(|arrow| place + arrow)
        });
        // An arrow with nothing behind it is a part of the key.
        match arrow.filter(|arrow| arrow + 2 < text.len()) {
            Some(arrow) => Self {
                text: text.slice(..arrow),
                place,
                field: Some(text.slice(arrow + 2..)),
            },
            None => Self {
                text: text.clone(),
                place,
                field: None,
            },
        }
    }

    /// Returns whether elements have a place in it.
    pub(super) fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Returns the value that belongs to an element, if it is there and of the right type.
    pub(super) fn value(&self, keyspace: &Keyspace<'_>, element: &Bytes) -> Result<Option<Bytes>> {
        if self.text.as_ref() == b"#" {
            return Ok(Some(element.clone()));
        }
        let Some(place) = self.place else {
            return Ok(None);
        };
        let key = Bytes::from([&self.text[..place], element, &self.text[place + 1..]].concat());
        let kind = keyspace.find(&key)?.map(|meta| meta.kind());
        match (&self.field, kind) {
            (Some(field), Some(ValueKind::Hash)) => hash::value(keyspace, &key, field),
            (None, Some(ValueKind::String)) => keyspace.string_bytes(&key),
            _ => Ok(None),
        }
    }
}
