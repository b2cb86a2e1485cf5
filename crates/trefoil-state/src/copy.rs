//! Copies of values.

use bytes::Bytes;
use trefoil_core::Direction;

use crate::error::Result;
use crate::keyspace::{Element, Keyspace};
use crate::meta::{Meta, StoredValue};

/// How many elements are copied at a time.
const STEP: usize = 256;

impl Keyspace<'_> {
    /// Gives a key a copy of a value, and its time of expiry, whatever it had before.
    pub(crate) fn copy(&mut self, to: &Bytes, meta: &Meta) -> Result<()> {
        let mut copy = meta.clone();
        if let StoredValue::LongString { id, .. } = &mut copy.value {
            *id = self.copy_elements(*id)?;
        }
        if let StoredValue::Collection(collection) = &mut copy.value {
            collection.id = self.copy_elements(collection.id)?;
        }
        self.put(to, &copy)
    }

    /// Copies the elements of a collection. Returns the id of the copy.
    fn copy_elements(&mut self, from: u64) -> Result<u64> {
        let to = self.new_id();
        let mut place = Vec::new();
        loop {
            let elements = self.elements(from, &place, None, Direction::Forwards);
            let step: Vec<Element> = elements.take(STEP).collect::<Result<_>>()?;
            let Some((last, _)) = step.last() else {
                return Ok(to);
            };
            // The first place after the last one.
            place = [last, &[0][..]].concat();
            for (place, value) in step {
                self.set_element(to, &place, Some(value))?;
            }
        }
    }
}
