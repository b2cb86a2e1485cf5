//! An account of what a commit changed of the state, entry by entry, for people.

use bytes::Bytes;
use hashbrown::HashMap;
use trefoil_state::{EntryMeaning, ValueKind};

use super::change::{Changes, EntryChange};
use super::{stored_replies, tracking};
use crate::removal;

/// What a commit changed of one entry.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StateChange {
    /// What became of the entry.
    pub edit: EntryEdit,
    /// What the entry is.
    pub entry: ChangedEntry,
    /// The key that the entry belongs to, if the commit changed the key as well or the entry names
    /// it.
    pub key: Option<Bytes>,
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryEdit {
    /// It is new.
    Insert,
    /// It got another value.
    Replace,
    /// It is gone.
    Delete,
    /// A part of what is stored was overwritten.
    Patch {
        /// Where it begins, in bytes.
        offset: usize,
        /// The new bytes.
        bytes: Bytes,
    },
}

/// What an entry of the state is.
#[derive(Debug, Clone, PartialEq)]
pub enum ChangedEntry {
    /// It belongs to the keys.
    Keys(EntryMeaning),
    /// The tracked position of a source, and what it is now if that is known.
    Tracking(String, Option<u64>),
    /// The replies to the commit of this id, kept for when it is sent again.
    Replies(Bytes),
    /// What was removed, of which stream if it is about one.
    Removal(Option<String>),
    /// Something that this version does not know.
    Unknown,
}

/// A page of what a commit changed.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ChangePage {
    /// How many changes the commit made.
    pub total: u64,
    /// Some of them, in order.
    pub changes: Vec<StateChange>,
}

/// About how many bytes of names and values a page has at most.
const PAGE_BYTES: usize = 1024 * 1024;

/// Returns a page of encoded changes: those from the index `from` on, at most `limit`; `None` if the
/// bytes are none.
pub(crate) fn page(bytes: &[u8], from: u64, limit: usize) -> Option<ChangePage> {
    let mut page = ChangePage::default();
    let (mut found, mut n_bytes) = (Vec::new(), 0);
    Changes::read(bytes, &mut |name, change| {
        let is_wanted = page.total >= from && found.len() < limit && n_bytes < PAGE_BYTES;
        page.total += 1;
        if is_wanted {
            n_bytes += name.len() + change.bytes().len();
            found.push((name, change));
        }
        Some(())
    })?;
    let owners = owners(bytes, &found)?;
    let tell = |(name, change)| tell(name, change, &owners);
    page.changes = found.into_iter().map(tell).collect();
    Some(page)
}

/// Whose elements a collection has, and which type of value it is.
type Owners = HashMap<u64, Option<(Bytes, ValueKind)>>;

/// Returns the owners of the collections of these entries, as far as the commit changed their keys.
fn owners(bytes: &[u8], entries: &[(&[u8], EntryChange<'_>)]) -> Option<Owners> {
    let collections = entries.iter().filter_map(|(name, _)| {
        let meaning = EntryMeaning::of(name, None, |_| None)?;
        Some((collection_of(&meaning)?, None))
    });
    let mut owners: Owners = collections.collect();
    if owners.is_empty() {
        return Some(owners);
    }
    Changes::read(bytes, &mut |name, change| {
        let value = change.whole_value();
        let meaning = value.and_then(|value| EntryMeaning::of(name, Some(&value), |_| None));
        if let Some(EntryMeaning::Key(key, Some(facts))) = meaning
            && let Some(owner) = facts.collection.and_then(|id| owners.get_mut(&id))
        {
            *owner = Some((key, facts.kind));
        }
        Some(())
    })?;
    Some(owners)
}

/// Returns the collection that an entry is a part of.
fn collection_of(meaning: &EntryMeaning) -> Option<u64> {
    match meaning {
        EntryMeaning::Field { collection, .. }
        | EntryMeaning::Member { collection, .. }
        | EntryMeaning::Chunk { collection, .. }
        | EntryMeaning::Block(collection) => Some(*collection),
        EntryMeaning::Garbage(collection) => *collection,
        _ => None,
    }
}

fn tell(name: &[u8], change: EntryChange<'_>, owners: &Owners) -> StateChange {
    let value = change.whole_value();
    let owner = |id: u64| owners.get(&id).and_then(Option::as_ref);
    let meaning = EntryMeaning::of(name, value.as_ref(), |id| owner(id).map(|(_, kind)| *kind));
    let key = match &meaning {
        Some(
            EntryMeaning::Key(key, _)
            | EntryMeaning::Expiry(key, _)
            | EntryMeaning::FieldExpiry(key, _)
            | EntryMeaning::Timer(key, _),
        ) => Some(key.clone()),
        Some(meaning) => { collection_of(meaning).and_then(owner) }.map(|(key, _)| key.clone()),
        None => None,
    };
    let entry = meaning.map(ChangedEntry::Keys);
    let entry = entry
        .or_else(|| {
            let (source, position) = tracking::read_entry(name, value.as_deref())?;
            Some(ChangedEntry::Tracking(source, position))
        })
        .or_else(|| stored_replies::id_of_entry(name).map(ChangedEntry::Replies))
        .or_else(|| removal::subject_of_entry(name).map(ChangedEntry::Removal))
        .unwrap_or(ChangedEntry::Unknown);
    StateChange {
        edit: change.edit(),
        entry,
        key,
    }
}

impl<'a> EntryChange<'a> {
    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Insert(bytes) | Self::Replace(bytes) | Self::Patch(_, bytes) => bytes,
            Self::Delete => &[],
        }
    }

    /// Returns the value that the entry has now, if the change says all of it.
    fn whole_value(&self) -> Option<Bytes> {
        match self {
            Self::Insert(value) | Self::Replace(value) => Some(Bytes::copy_from_slice(value)),
            Self::Delete | Self::Patch(..) => None,
        }
    }

    fn edit(&self) -> EntryEdit {
        match *self {
            Self::Insert(_) => EntryEdit::Insert,
            Self::Replace(_) => EntryEdit::Replace,
            Self::Delete => EntryEdit::Delete,
            Self::Patch(offset, bytes) => EntryEdit::Patch {
                offset,
                bytes: Bytes::copy_from_slice(bytes),
            },
        }
    }
}
