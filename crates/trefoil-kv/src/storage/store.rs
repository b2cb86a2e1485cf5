//! The store that everything of a generation is kept in: committing and waiting, and what to do once it
//! is lost.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use parking_lot::{RwLock, RwLockReadGuard};
use trefoil_core::{Direction, Error, Result};

use crate::contract::{Kv, KvBatch, KvEngine, KvError, KvLimits, KvRead, KvResult};

use super::cell::{Cells, Puts};
use super::errors::{failed, lost};
use super::facts::GarbageFact;
use super::keys::{GenerationKeys, Tag};

/// How much a scan brings at a time.
pub(super) const PAGE_BYTES: usize = 1024 * 1024;

/// A new value of a key, or `None` to remove it.
pub(super) type KeyChange = (Bytes, Option<Bytes>);

/// An open store, as one generation uses it.
#[derive(Debug)]
pub(super) struct OpenStore {
    pub(super) kv: Arc<dyn Kv>,
    pub(super) engine: Arc<dyn KvEngine>,
    pub(super) keys: GenerationKeys,
    pub(super) cells: Cells,
    pub(super) limits: KvLimits,
    /// The epoch with which the store was opened.
    pub(super) epoch: u64,
    /// What the names of the objects of this generation begin with.
    pub(super) objects: String,
    /// What maps are read from: the store, or how it was before a large batch that is being applied.
    maps_view: RwLock<Arc<dyn KvRead>>,
    next_number: AtomicU64,
    is_lost: Arc<AtomicBool>,
}

impl OpenStore {
    pub(super) fn new(
        engine: Arc<dyn KvEngine>,
        kv: Arc<dyn Kv>,
        epoch: u64,
        generation: u64,
        objects: String,
    ) -> Result<Self> {
        let (keys, limits) = (GenerationKeys::of(generation), kv.limits());
        let cells = Cells::new(keys, limits);
        let too_small = || Error::invalid(format!("the engine takes too little: {limits:?}"));
        let is_lost = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_lost);
        kv.on_lost(Box::new(move || told.store(true, Ordering::SeqCst)));
        Ok(Self {
            maps_view: RwLock::new(Arc::clone(&kv) as Arc<dyn KvRead>),
            kv,
            engine,
            keys,
            cells: cells.ok_or_else(too_small)?,
            limits,
            epoch,
            objects,
            next_number: AtomicU64::new(1),
            is_lost,
        })
    }

    /// Fails once the store is of no more use.
    pub(super) fn check(&self) -> Result<()> {
        match self.is_lost.load(Ordering::SeqCst) {
            true => Err(lost()),
            false => Ok(()),
        }
    }

    /// Uses the store no more: what is in it is not what this process believes.
    pub(super) fn give_up(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }

    /// Gives the store up if a batch ended in a way after which it is of no more use.
    pub(super) fn note(&self, committed: &KvResult<()>) {
        if let Err(KvError::Fenced | KvError::Unknown(_)) = committed {
            self.give_up();
        }
    }

    /// Returns a number that nothing in the store has.
    pub(super) fn new_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns numbers that nothing in the store has, up to `most` of them, one after the other.
    pub(super) fn numbers(&self, most: usize) -> Numbers<'_> {
        Numbers {
            store: self,
            most: most as u64,
            reserved: None,
        }
    }

    /// Notes that something has this number.
    pub(super) fn note_number(&self, number: u64) {
        let next = number.saturating_add(1);
        self.next_number.fetch_max(next, Ordering::SeqCst);
    }

    /// Commits changes that fit into one batch, and waits.
    pub(super) fn commit(&self, changes: Vec<KeyChange>) -> Result<()> {
        self.commit_together(vec![changes])
    }

    /// Commits batches, each by itself, and waits for all of them.
    pub(super) fn commit_together(&self, batches: Vec<Vec<KeyChange>>) -> Result<()> {
        self.check()?;
        let (sender, answers) = mpsc::channel();
        for changes in batches {
            let sender = sender.clone();
            let done = move |committed| {
                // If nobody waits any more, another one of them has failed.
                let _ = sender.send(committed);
            };
            self.kv.commit(KvBatch { changes }, Box::new(done));
        }
        drop(sender);
        let mut outcome = Ok(());
        for committed in answers {
            self.note(&committed);
            outcome = outcome.and(committed);
        }
        outcome.map_err(failed("writing to the store"))
    }

    /// Returns how much of a batch changes may take, if it must have room for small things, too.
    fn batch_room(&self) -> usize {
        self.limits.batch_bytes.saturating_sub(SMALL_BYTES).max(1)
    }

    /// Returns whether changes fit into one batch, together with a few small ones.
    pub(super) fn fits(&self, changes: &[KeyChange]) -> bool {
        changes.iter().map(change_bytes).sum::<usize>() <= self.batch_room()
    }

    /// Cuts changes into batches, each with these small ones in it.
    pub(super) fn cut(&self, changes: Vec<KeyChange>, each: &[KeyChange]) -> Vec<Vec<KeyChange>> {
        let room = self.batch_room();
        let mut batches: Vec<Vec<KeyChange>> = Vec::new();
        let mut n_bytes = room;
        for change in changes {
            let bytes = change_bytes(&change);
            if n_bytes + bytes > room {
                batches.push(each.to_vec());
                n_bytes = 0;
            }
            n_bytes += bytes;
            if let Some(batch) = batches.last_mut() {
                batch.push(change);
            }
        }
        batches
    }

    /// Reads all entries of a range, a page at a time.
    pub(super) fn walk(
        &self,
        read: &dyn KvRead,
        (mut from, to): (Bytes, Bytes),
        visit: &mut dyn FnMut(Bytes, Bytes) -> Result<()>,
    ) -> Result<()> {
        loop {
            let page = read.scan(&from, &to, Direction::Forwards, PAGE_BYTES, false);
            let page = page.map_err(failed("reading the store"))?;
            if let Some((last, _)) = page.entries.last() {
                from = next_key(last);
            }
            for (key, value) in page.entries {
                visit(key, value)?;
            }
            if !page.has_more {
                return Ok(());
            }
        }
    }

    /// Returns what maps are read from. Nothing is changed about it as long as it is held.
    pub(super) fn maps_view(&self) -> RwLockReadGuard<'_, Arc<dyn KvRead>> {
        self.maps_view.read()
    }

    /// Returns the maps as they are now.
    pub(super) fn maps_moment(&self) -> Result<Arc<dyn KvRead>> {
        let view = self.maps_view.read();
        match Arc::ptr_eq(&view, &(Arc::clone(&self.kv) as Arc<dyn KvRead>)) {
            true => self.moment(),
            false => Ok(Arc::clone(&view)),
        }
    }

    /// Lets maps be read as they are now until [`Self::show_maps`] is called.
    pub(super) fn hide_maps(&self) -> Result<()> {
        let mut view = self.maps_view.write();
        *view = self.moment()?;
        Ok(())
    }

    /// Lets maps be read as they are.
    pub(super) fn show_maps(&self) {
        *self.maps_view.write() = Arc::clone(&self.kv) as Arc<dyn KvRead>;
    }

    /// Returns the store as it is now.
    pub(super) fn moment(&self) -> Result<Arc<dyn KvRead>> {
        self.kv.moment().map_err(failed("reading the store"))
    }

    /// Declares something garbage. Returns the change that does so, and the number under which it is
    /// known.
    pub(super) fn declare(&self, garbage: &GarbageFact) -> (u64, KeyChange) {
        let number = self.new_number();
        (number, self.declaration(number, garbage))
    }

    /// Returns the change that declares something garbage under this number.
    pub(super) fn declaration(&self, number: u64, garbage: &GarbageFact) -> KeyChange {
        let key = self.keys.numbered(Tag::Garbage, number);
        let value = self.cells.short(&key, &garbage.encode());
        (key, Some(value))
    }

    /// Returns the change that takes a declaration back.
    pub(super) fn retraction(&self, number: u64) -> KeyChange {
        (self.keys.numbered(Tag::Garbage, number), None)
    }

    /// Returns the change of a small fact.
    pub(super) fn fact(&self, tag: Tag, content: &[u8]) -> KeyChange {
        let key = self.keys.only(tag);
        let value = self.cells.short(&key, content);
        (key, Some(value))
    }
}

/// Numbers that follow each other. They are taken when the first is asked for: most values are short
/// and need none.
#[derive(Debug)]
pub(super) struct Numbers<'a> {
    store: &'a OpenStore,
    most: u64,
    /// The first of them, and how many were handed out.
    reserved: Option<(u64, u64)>,
}

impl Numbers<'_> {
    pub(super) fn next(&mut self) -> u64 {
        let (store, most) = (self.store, self.most);
        let take = || store.next_number.fetch_add(most, Ordering::SeqCst);
        let (first, n) = self.reserved.get_or_insert_with(|| (take(), 0));
        *n += 1;
        *first + *n - 1
    }

    /// Returns those that were handed out.
    pub(super) fn used(&self) -> Range<u64> {
        self.reserved.map_or(0..0, |(first, n)| first..first + n)
    }
}

/// Room in each batch for facts that come with it.
const SMALL_BYTES: usize = 192;

pub(super) fn change_bytes((key, value): &KeyChange) -> usize {
    key.len() + value.as_ref().map_or(0, Bytes::len)
}

pub(super) fn puts_to_changes(puts: Puts) -> impl Iterator<Item = KeyChange> {
    puts.into_iter().map(|(key, value)| (key, Some(value)))
}

/// Returns the first key after this one.
pub(super) fn next_key(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}
