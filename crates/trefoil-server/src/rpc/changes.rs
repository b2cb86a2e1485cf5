//! Changes of the state as JSON: `{"edit", "entry", …}`, where `edit` says what became of an entry of
//! the state, and `entry` what it is. What else there is depends on the entry.

use bytes::Bytes;
use trefoil::{ChangedEntry, EntryEdit, EntryMeaning, KeyFacts, StateChange};

use super::state::put_bytes;
use crate::json::{ObjectWriter, put_array};

/// Of a longer value only so many bytes are shown.
const VALUE_BYTES_SHOWN: usize = 1000;

/// Appends changes as an array.
pub(super) fn put_changes(out: &mut Vec<u8>, changes: &[StateChange]) {
    put_array(out, changes, put_change);
}

fn put_change(out: &mut Vec<u8>, change: &StateChange) {
    let mut object = ObjectWriter::begin(out);
    object.text("edit", edit_name(&change.edit));
    object.text("entry", entry_name(&change.entry));
    if let Some(key) = &change.key {
        put_bytes(object.field("key"), key);
    }
    match &change.entry {
        ChangedEntry::Keys(meaning) => put_meaning(&mut object, meaning),
        ChangedEntry::Tracking(source, position) => {
            object.text("source", source);
            object.known_number("position", *position);
        }
        ChangedEntry::Replies(id) => put_bytes(object.field("id"), id),
        ChangedEntry::Removal(stream) => {
            if let Some(stream) = stream {
                object.text("stream", stream);
            }
        }
        ChangedEntry::Unknown => {}
    }
    if let EntryEdit::Patch { offset, bytes } = &change.edit {
        object.number("offset", *offset);
        put_value(&mut object, "part", bytes);
    }
    object.end();
}

fn put_meaning(object: &mut ObjectWriter<'_>, meaning: &EntryMeaning) {
    match meaning {
        EntryMeaning::Root(keys) => object.known_number("keys", *keys),
        EntryMeaning::Key(_, Some(facts)) => put_facts(object, facts),
        EntryMeaning::Key(_, None) => {}
        EntryMeaning::Field {
            collection,
            name,
            value,
            expires,
        } => {
            object.number("collection", *collection);
            put_bytes(object.field("name"), name);
            object.known_number("expiresAt", *expires);
            if let Some(value) = value {
                put_value(object, "value", value);
            }
        }
        EntryMeaning::Member {
            collection,
            name,
            score,
        } => {
            object.number("collection", *collection);
            put_bytes(object.field("name"), name);
            if let Some(score) = score {
                // A score may be infinite, which no number of JSON is.
                object.text("score", &score.to_string());
            }
        }
        EntryMeaning::Chunk { collection, number } => {
            object.number("collection", *collection);
            object.number("chunk", *number);
        }
        EntryMeaning::Block(collection) => object.number("collection", *collection),
        EntryMeaning::Expiry(_, time)
        | EntryMeaning::FieldExpiry(_, time)
        | EntryMeaning::Timer(_, time) => object.number("time", *time),
        EntryMeaning::Garbage(collection) => object.known_number("collection", *collection),
    }
}

fn put_facts(object: &mut ObjectWriter<'_>, facts: &KeyFacts) {
    object.text("type", facts.kind.name());
    object.number("length", facts.len);
    object.known_number("collection", facts.collection);
    object.known_number("expiresAt", facts.expires);
    if let Some(value) = &facts.value {
        put_value(object, "value", value);
    }
    if !facts.fields.is_empty() {
        put_array(
            object.field("fields"),
            &facts.fields,
            |out, (name, value)| {
                put_array(out, [name, value], |out, part| put_bytes(out, part));
            },
        );
    }
}

/// Appends a value, or its beginning and how many bytes it has.
fn put_value(object: &mut ObjectWriter<'_>, name: &str, value: &Bytes) {
    let Some(mut shown) = value.get(..VALUE_BYTES_SHOWN) else {
        return put_bytes(object.field(name), value);
    };
    // A text stays a text.
    if let Err(error) = std::str::from_utf8(shown)
        && error.error_len().is_none()
    {
        shown = &shown[..error.valid_up_to()];
    }
    put_bytes(object.field(name), shown);
    object.number("bytes", value.len());
}

fn edit_name(edit: &EntryEdit) -> &'static str {
    match edit {
        EntryEdit::Insert => "insert",
        EntryEdit::Replace => "replace",
        EntryEdit::Delete => "delete",
        EntryEdit::Patch { .. } => "patch",
    }
}

fn entry_name(entry: &ChangedEntry) -> &'static str {
    match entry {
        ChangedEntry::Keys(EntryMeaning::Root(_)) => "root",
        ChangedEntry::Keys(EntryMeaning::Key(..)) => "key",
        ChangedEntry::Keys(EntryMeaning::Field { .. }) => "field",
        ChangedEntry::Keys(EntryMeaning::Member { .. }) => "member",
        ChangedEntry::Keys(EntryMeaning::Chunk { .. }) => "chunk",
        ChangedEntry::Keys(EntryMeaning::Block(_)) => "block",
        ChangedEntry::Keys(EntryMeaning::Expiry(..)) => "expiry",
        ChangedEntry::Keys(EntryMeaning::FieldExpiry(..)) => "fieldExpiry",
        ChangedEntry::Keys(EntryMeaning::Timer(..)) => "timer",
        ChangedEntry::Keys(EntryMeaning::Garbage(_)) => "garbage",
        ChangedEntry::Tracking(..) => "tracking",
        ChangedEntry::Replies(_) => "replies",
        ChangedEntry::Removal(_) => "removal",
        ChangedEntry::Unknown => "unknown",
    }
}
