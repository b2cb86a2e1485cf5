//! What stands in the clear beside each event in the log: three flags, and the hash that decides
//! which member of a consumer group the event's stream belongs to.

use trefoil_core::{ConsumerGroup, in_group};
use trefoil_storage::Label;

/// The event brought its positions and its time along.
const IMPORTED: u8 = 1;
/// The event's stream has an id, and the word is the hash of its cardinal part.
const HAS_GROUP_HASH: u8 = 2;
/// The event is the first of its stream.
const NEW_STREAM: u8 = 4;

pub(crate) fn make(is_imported: bool, is_new_stream: bool, group_hash: Option<i64>) -> Label {
    let mut flags = 0;
    if is_imported {
        flags |= IMPORTED;
    }
    if is_new_stream {
        flags |= NEW_STREAM;
    }
    if group_hash.is_some() {
        flags |= HAS_GROUP_HASH;
    }
    Label {
        flags,
        word: group_hash.unwrap_or(0) as u64,
    }
}

/// Returns the hash that decides which member of a consumer group the event belongs to.
pub(crate) fn group_hash(label: Label) -> Option<i64> {
    (label.flags & HAS_GROUP_HASH != 0).then_some(label.word as i64)
}

pub(crate) fn is_imported(label: Label) -> bool {
    label.flags & IMPORTED != 0
}

pub(crate) fn is_new_stream(label: Label) -> bool {
    label.flags & NEW_STREAM != 0
}

/// Returns whether the event belongs to this member of a consumer group.
pub(crate) fn belongs_to(label: Label, group: ConsumerGroup) -> bool {
    group_hash(label).is_some_and(|hash| in_group(hash, group.member, group.size))
}
