//! Keeps keys of different kinds apart in a SlateDB.
//!
//! The first byte of a key is its kind. Some keys are replaced with every write and others are written
//! once; merged together, the first would have the second rewritten over and over. What is chosen here
//! is fixed when a SlateDB is made.

use slatedb::{PrefixExtractor, PrefixTarget};

/// See the module.
#[derive(Debug)]
pub(crate) struct FirstByte;

impl PrefixExtractor for FirstByte {
    fn name(&self) -> &str {
        "trefoil-first-byte"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (!bytes.is_empty()).then_some(1)
    }
}
