//! Changes of maps that are larger than a batch, and count together all the same.
//!
//! They are written aside first. Then one batch says that they count, and from then on they are made,
//! however often that is begun. Whoever reads maps meanwhile reads them as they were before.

use bytes::Bytes;
use trefoil_core::{Result, put_bytes, put_varint, take_bytes, take_varint};

use super::errors::{damaged, failed};
use super::facts::{GarbageFact, RedoFact};
use super::garbage::GarbageQueue;
use super::keys::Tag;
use super::store::{KeyChange, OpenStore};

/// Makes changes of which each is of another key.
pub(super) fn apply_large(
    store: &OpenStore,
    garbage: &GarbageQueue,
    changes: Vec<KeyChange>,
) -> Result<()> {
    let number = store.new_number();
    let aside = GarbageFact::Redo(number);
    let (declared, declaration) = store.declare(&aside);
    let content = encode(&changes);
    let parts = content.chunks(store.cells.part_bytes());
    let n_parts = parts.len() as u64;
    let part = |(part, bytes)| {
        let key = store.keys.part(Tag::RedoPart, number, part);
        let value = store.cells.short(&key, bytes);
        (key, Some(value))
    };
    let parts: Vec<KeyChange> = (0..).zip(parts).map(part).collect();
    let fact = RedoFact { number, n_parts };
    let counts = vec![
        store.fact(Tag::Redo, &fact.encode()),
        store.retraction(declared),
    ];
    let committed = store
        .commit_together(store.cut(parts, &[declaration]))
        .and_then(|()| store.hide_maps())
        .and_then(|()| store.commit(counts));
    if let Err(error) = committed {
        store.show_maps();
        garbage.push(declared, aside);
        return Err(error);
    }
    let made = make(store, changes, fact, declared);
    if made.is_err() {
        // Some of them are made. Opening makes the others.
        store.give_up();
    }
    store.show_maps();
    made?;
    garbage.push(declared, aside);
    Ok(())
}

/// Makes changes that count but were not all made.
pub(super) fn finish(store: &OpenStore, garbage: &GarbageQueue, fact: RedoFact) -> Result<()> {
    let mut content = Vec::new();
    for part in 0..fact.n_parts {
        let key = store.keys.part(Tag::RedoPart, fact.number, part);
        let found = store.kv.get(&[&key]).map_err(failed("reading changes"))?;
        let missing = || damaged(&key, "a part of changes that count is missing");
        let value = found.into_iter().flatten().next().ok_or_else(missing)?;
        content.extend_from_slice(&store.cells.settled(&*store.kv, &key, &value)?);
    }
    let changes = decode(&content);
    let key = store.keys.only(Tag::Redo);
    let changes = changes.ok_or_else(|| damaged(&key, "changes that count are not whole"))?;
    let declared = store.new_number();
    make(store, changes, fact, declared)?;
    garbage.push(declared, GarbageFact::Redo(fact.number));
    Ok(())
}

fn make(store: &OpenStore, changes: Vec<KeyChange>, fact: RedoFact, declared: u64) -> Result<()> {
    store.commit_together(store.cut(changes, &[]))?;
    let aside = GarbageFact::Redo(fact.number);
    store.commit(vec![
        (store.keys.only(Tag::Redo), None),
        store.declaration(declared, &aside),
    ])
}

fn encode(changes: &[KeyChange]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in changes {
        put_bytes(&mut out, key);
        put_varint(&mut out, u64::from(value.is_some()));
        if let Some(value) = value {
            put_bytes(&mut out, value);
        }
    }
    out
}

fn decode(mut content: &[u8]) -> Option<Vec<KeyChange>> {
    let content = &mut content;
    let mut changes = Vec::new();
    while !content.is_empty() {
        let key = Bytes::copy_from_slice(take_bytes(content)?);
        let value = match take_varint(content)? {
            0 => None,
            _ => Some(Bytes::copy_from_slice(take_bytes(content)?)),
        };
        changes.push((key, value));
    }
    Some(changes)
}
