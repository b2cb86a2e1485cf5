//! Keys and what is under them: types, expiry, elements of collections, garbage.
//!
//! A key that has expired is not there for any command; its entries are removed later. Removing or
//! replacing a collection takes one step whatever its size: its entries become garbage.

use std::cell::RefCell;

use bytes::Bytes;
use fastrand::Rng;
use trefoil_core::limits::EVENT_DATA_BYTES_MAX;
use trefoil_core::{Damage, Direction, Error, NewEvent};

use crate::application::Timer;
use crate::command::Commands;
use crate::error::{CommandError, Result, WRONG_TYPE};
use crate::layout::{self, HASH_BYTES, MadeName};
use crate::meta::{Collection, Meta, Root, StoredValue, ValueKind};
use crate::meter::{Meter, Weighed};
use crate::space::Space;

/// When a command runs, and what makes it unforeseeable.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommandMoment {
    /// Milliseconds since 1970.
    pub now: u64,
    /// Where the random numbers begin.
    pub seed: u64,
    /// The global position that the next event gets.
    pub position: u64,
}

/// The keys of a namespace, as a command sees and changes them.
pub struct Keyspace<'a> {
    pub(crate) space: &'a mut dyn Space,
    pub(crate) root: Root,
    /// The root as its entry has it.
    saved: Root,
    now: u64,
    random: Rng,
    /// The global position that the first of the events gets.
    position: u64,
    /// Events that are to be appended by the same commit.
    events: Vec<NewEvent>,
    /// The largest `data` of such an event, in bytes.
    event_data_bytes_max: usize,
    /// The timers that applications have.
    timers: &'a [&'static Timer],
    /// The key that was looked for last, if keys are to be changed: what changes one has looked for it.
    last_sought: RefCell<Option<SoughtKey>>,
    is_to_change: bool,
    /// How many entries were changed and events appended, if each change counts.
    pub(crate) n_changes: usize,
    /// Counts what replies take.
    meter: Option<&'a Meter<'a>>,
}

/// A key that was looked for: the name of its entry, and what is stored of it.
struct SoughtKey {
    name: MadeName,
    /// Where the key begins in the name.
    key_start: usize,
    stored: Option<Meta>,
}

/// An element of a collection: its place and its value.
pub(crate) type Element = (Bytes, Bytes);

impl<'a> Keyspace<'a> {
    /// Returns the keys that these entries hold.
    pub fn new(space: &'a mut dyn Space, moment: CommandMoment) -> trefoil_core::Result<Self> {
        let root = match space.get(layout::ROOT)? {
            Some(bytes) => Root::decode(&bytes).ok_or_else(|| damaged("the root"))?,
            None => Root::default(),
        };
        Ok(Self {
            space,
            root,
            saved: root,
            now: moment.now,
            random: Rng::with_seed(moment.seed),
            position: moment.position,
            events: Vec::new(),
            event_data_bytes_max: EVENT_DATA_BYTES_MAX,
            timers: &[],
            last_sought: RefCell::new(None),
            is_to_change: false,
            n_changes: 0,
            meter: None,
        })
    }

    /// Returns the same keys, to be changed by a commit: timers of these applications are run, and
    /// events have at most this many bytes of `data`.
    #[must_use]
    pub fn to_change(mut self, commands: &'a Commands, event_data_bytes_max: usize) -> Self {
        self.timers = commands.timers();
        self.is_to_change = true;
        self.event_data_bytes_max = event_data_bytes_max;
        self
    }

    /// Returns the timer of this kind, if an application has it.
    pub(crate) fn timer(&self, kind: u8) -> Option<&'static Timer> {
        let timers = self.timers.iter().copied();
        timers.into_iter().find(|timer| timer.kind() == kind)
    }

    /// Returns the same keys, where replies are counted.
    #[must_use]
    pub fn metered(mut self, meter: &'a Meter<'a>) -> Self {
        self.meter = Some(meter);
        self
    }

    pub(crate) fn meter(&self) -> Option<&'a Meter<'a>> {
        self.meter
    }

    /// Counts bytes that are about to be held for a reply, or refuses.
    pub(crate) fn hold(&self, bytes: usize) -> Result<()> {
        Ok(self.meter.map_or(Ok(()), |meter| meter.hold(bytes))?)
    }

    /// Collects what a reply is made of, and counts it meanwhile.
    pub(crate) fn collect_counted<T: Weighed>(
        &self,
        all: impl Iterator<Item = Result<T>>,
    ) -> Result<Vec<T>> {
        let counted = all.map(|one| {
            let one = one?;
            self.hold(one.weight())?;
            Ok(one)
        });
        counted.collect()
    }

    /// Returns the time of the commit, in milliseconds since 1970.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Appends an event with the same commit. Returns the global position that it gets. An event
    /// that breaks a limit fails the whole transaction. Its id is made by the database.
    pub fn append_event(&mut self, mut event: NewEvent) -> Result<u64> {
        event.id = None;
        event.settle();
        event.validate(self.event_data_bytes_max)?;
        self.n_changes += 1;
        self.events.push(event);
        Ok(self.position + self.events.len() as u64 - 1)
    }

    /// Returns the events that are to be appended by the same commit.
    pub fn take_events(&mut self) -> Vec<NewEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns how many keys there are, expired ones that are still to be cleaned included.
    pub(crate) fn n_keys(&self) -> u64 {
        self.root.keys
    }

    /// Returns sixty-four random bits.
    pub(crate) fn random(&mut self) -> u64 {
        self.random.u64(..)
    }

    /// Returns what is remembered of a key; `None` if it is not there or has expired.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<Meta>> {
        match self.stored(key)? {
            Some(meta) if !self.is_gone(&meta)? => Ok(Some(meta)),
            _ => Ok(None),
        }
    }

    /// Returns whether a key has expired, or all that is under it.
    fn is_gone(&self, meta: &Meta) -> Result<bool> {
        match &meta.value {
            _ if meta.is_expired(self.now) => Ok(true),
            StoredValue::Collection(collection) => self.fields_are_gone(collection),
            _ => Ok(false),
        }
    }

    /// Returns when a key, or the first field under it that is still there, expires, if anything
    /// does; `None` if the key is not there.
    pub fn expiry_of(&self, key: &[u8]) -> trefoil_core::Result<Option<Option<u64>>> {
        let expiry = || {
            let Some(meta) = self.find(key)? else {
                return Ok(None);
            };
            let first = self.next_field_expiry(&meta.value)?;
            Ok(Some(meta.expires.into_iter().chain(first).min()))
        };
        expiry().map_err(CommandError::into_error)
    }

    /// Returns the collection under a key, which must be of this type if it is there.
    pub(crate) fn collection(
        &self,
        key: &[u8],
        kind: ValueKind,
    ) -> Result<Option<FoundCollection>> {
        let Some(meta) = self.find(key)? else {
            return Ok(None);
        };
        match meta.value {
            StoredValue::Collection(collection) if collection.kind == kind => {
                Ok(Some(FoundCollection {
                    collection,
                    expires: meta.expires,
                }))
            }
            _ => Err(WRONG_TYPE),
        }
    }

    /// Returns the collection under a key, or a new one, which becomes one with
    /// [`Self::put_collection`].
    pub(crate) fn collection_or_new(
        &mut self,
        key: &[u8],
        kind: ValueKind,
    ) -> Result<FoundCollection> {
        if let Some(found) = self.collection(key, kind)? {
            return Ok(found);
        }
        Ok(self.new_collection(kind))
    }

    /// Returns a new collection, which becomes one with [`Self::put_collection`].
    pub(crate) fn new_collection(&mut self, kind: ValueKind) -> FoundCollection {
        FoundCollection {
            collection: Collection::new(kind, self.new_id()),
            expires: None,
        }
    }

    /// Remembers how many elements a collection has now, and that it was changed. One without
    /// elements is removed.
    pub(crate) fn put_collection(&mut self, key: &Bytes, found: &FoundCollection) -> Result<()> {
        if found.collection.len == 0 {
            self.delete(key)?;
            return Ok(());
        }
        let meta = Meta {
            expires: found.expires,
            value: StoredValue::Collection(found.collection),
        };
        self.put(key, &meta)
    }

    /// Remembers that the elements of a collection lie elsewhere: for a watch of the key, nothing
    /// changes.
    pub(crate) fn put_same(&mut self, key: &Bytes, found: &FoundCollection) -> Result<()> {
        let meta = Meta {
            expires: found.expires,
            value: StoredValue::Collection(found.collection),
        };
        self.put_untouched(key, &meta)
    }

    /// Returns the id for a new collection.
    pub(crate) fn new_id(&mut self) -> u64 {
        self.root.last_id += 1;
        self.root.last_id
    }

    /// Gives a key its value and its time of expiry, whatever it had before.
    pub(crate) fn put(&mut self, key: &Bytes, meta: &Meta) -> Result<()> {
        self.touch(key);
        self.put_untouched(key, meta)
    }

    /// The same, but for a watch of the key, nothing changes.
    pub(crate) fn put_untouched(&mut self, key: &Bytes, meta: &Meta) -> Result<()> {
        let SoughtKey {
            name,
            stored: before,
            ..
        } = self.seek(key)?;
        if before.as_ref() == Some(meta) {
            return Ok(());
        }
        match &before {
            Some(before) => self.discard(key, before, meta.id())?,
            None => self.root.keys += 1,
        }
        if before.as_ref().and_then(Meta::id) != meta.id() {
            let first = self.first_field_expiry(&meta.value)?;
            self.set_field_expiry(key, None, first)?;
        }
        let expired = before.as_ref().and_then(|before| before.expires);
        self.set_expiry(layout::KEY_EXPIRES, key, expired, meta.expires)?;
        self.set_entry(layout::kept(&name), Some(meta.encode()))?;
        self.save_root()
    }

    /// Gives a key its value and its time of expiry, or removes it if that time has come.
    pub(crate) fn put_or_expire(&mut self, key: &Bytes, meta: &Meta) -> Result<()> {
        match meta.is_expired(self.now) {
            true => self.delete(key).map(drop),
            false => self.put(key, meta),
        }
    }

    /// Removes a key. Returns whether it was there and had not expired.
    pub(crate) fn delete(&mut self, key: &Bytes) -> Result<bool> {
        let Some(before) = self.stored(key)? else {
            return Ok(false);
        };
        let was_there = !self.is_gone(&before)?;
        self.touch(key);
        self.remove(key, &before)?;
        Ok(was_there)
    }

    /// Removes the entries of a key that has expired, or all that is under it: for a watch of
    /// it, nothing changes. Returns how many keys were removed.
    pub(crate) fn remove_expired(&mut self, key: &Bytes) -> Result<usize> {
        match self.stored(key)? {
            Some(before) if self.is_gone(&before)? => {
                self.remove(key, &before)?;
                Ok(1)
            }
            _ => Ok(0),
        }
    }

    /// Gives the value of a key, and its time of expiry, to another one, in one step.
    pub(crate) fn rename(&mut self, from: &Bytes, to: &Bytes, meta: &Meta) -> Result<()> {
        let first = self.first_field_expiry(&meta.value)?;
        self.set_field_expiry(from, first, None)?;
        self.touch(from);
        self.forget(from, meta)?;
        self.put(to, meta)
    }

    fn remove(&mut self, key: &Bytes, before: &Meta) -> Result<()> {
        self.discard(key, before, None)?;
        self.forget(key, before)
    }

    /// Removes a key, but not what is under it.
    fn forget(&mut self, key: &Bytes, before: &Meta) -> Result<()> {
        self.set_expiry(layout::KEY_EXPIRES, key, before.expires, None)?;
        self.last_sought.take();
        self.set_entry(layout::key(self.root.epoch, key), None)?;
        self.root.keys = self.root.keys.saturating_sub(1);
        self.save_root()
    }

    /// Notes that something under a key was changed; what puts or deletes a key does so itself.
    pub(crate) fn touch(&mut self, key: &Bytes) {
        self.space.touch(key);
    }

    /// Removes all keys, in one step.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.root.keys == 0 {
            return Ok(());
        }
        self.space.touch_all();
        let prefix = layout::epoch_prefix(self.root.epoch);
        self.note_garbage(&prefix)?;
        self.last_sought.take();
        self.root.epoch += 1;
        self.root.keys = 0;
        self.root.next_timer = None;
        self.save_root()
    }

    /// Returns the value of an element.
    pub(crate) fn element(&self, id: u64, place: &[u8]) -> Result<Option<Bytes>> {
        let name = layout::sought_element(self.root.epoch, id, place);
        Ok(self.space.get(&name)?)
    }

    /// Gives an element a value, or removes it. Does not count it.
    pub(crate) fn set_element(
        &mut self,
        id: u64,
        place: &[u8],
        value: Option<Bytes>,
    ) -> Result<()> {
        let name = layout::element(self.root.epoch, id, place);
        self.set_entry(name, value)
    }

    /// Gives an entry a value, or removes it.
    pub(crate) fn set_entry(&mut self, name: Bytes, value: Option<Bytes>) -> Result<()> {
        self.n_changes += 1;
        Ok(self.space.set(name, value)?)
    }

    /// Returns the elements whose place is at or after `from` and before `to` (`None`: to the end),
    /// in either direction.
    pub(crate) fn elements<'s>(
        &'s self,
        id: u64,
        from: &[u8],
        to: Option<&[u8]>,
        direction: Direction,
    ) -> impl Iterator<Item = Result<Element>> + use<'s, 'a> {
        let epoch = self.root.epoch;
        let prefix = layout::collection(epoch, id);
        let from = layout::element(epoch, id, from);
        let end = match to {
            Some(to) => layout::element(epoch, id, to).to_vec(),
            None => layout::after_prefix(&prefix),
        };
        let n_prefix = prefix.len();
        let entries = self.space.scan(&from, &end, direction);
        entries.map(move |entry| {
            let (name, value) = entry?;
            Ok((name.slice(n_prefix..), value))
        })
    }

    /// Returns the keys from the one with this hash on that have not expired.
    pub(crate) fn keys_from(&self, hash: u32) -> impl Iterator<Item = Result<(Bytes, Meta)>> + '_ {
        let prefix = layout::key_prefix(self.root.epoch);
        let from = layout::key_place(self.root.epoch, hash);
        let end = layout::after_prefix(&prefix);
        let n_prefix = prefix.len() + HASH_BYTES;
        let entries = self.space.scan(&from, &end, Direction::Forwards);
        let read = move |entry: trefoil_core::Result<(Bytes, Bytes)>| {
            let (name, value) = entry?;
            let meta = Meta::decode(value).ok_or_else(|| damaged("a key"))?;
            let is_there = !self.is_gone(&meta)?;
            Ok(is_there.then(|| (name.slice(n_prefix..), meta)))
        };
        entries.filter_map(move |entry| read(entry).transpose())
    }

    /// Remembers when fields of a hash expire: what was the earliest time, and what it is now.
    pub(crate) fn set_field_expiry(
        &mut self,
        key: &[u8],
        before: Option<u64>,
        after: Option<u64>,
    ) -> Result<()> {
        self.set_expiry(layout::FIELDS_EXPIRE, key, before, after)
    }

    /// Remembers when something expires: what was the time, and what it is now.
    pub(crate) fn set_expiry(
        &mut self,
        what: u8,
        key: &[u8],
        before: Option<u64>,
        after: Option<u64>,
    ) -> Result<()> {
        if before == after {
            return Ok(());
        }
        let epoch = self.root.epoch;
        if let Some(time) = before {
            let name = layout::expiry(epoch, time, what, key);
            self.set_entry(name, None)?;
        }
        if let Some(time) = after {
            self.space.due(time);
            let name = layout::expiry(epoch, time, what, key);
            self.set_entry(name, Some(Bytes::new()))?;
        }
        Ok(())
    }

    /// Returns what is stored of a key, expired or not.
    pub(crate) fn stored(&self, key: &[u8]) -> Result<Option<Meta>> {
        let sought = self.seek(key)?;
        if !self.is_to_change {
            return Ok(sought.stored);
        }
        let stored = sought.stored.clone();
        self.last_sought.replace(Some(sought));
        Ok(stored)
    }

    /// Looks for a key, unless that was the last one that was looked for. It has to be looked for again
    /// after that, because the caller may change it.
    fn seek(&self, key: &[u8]) -> Result<SoughtKey> {
        if let Some(last) = self.last_sought.take()
            && last.name[last.key_start..] == *key
        {
            return Ok(last);
        }
        let name = layout::sought_key(self.root.epoch, key);
        let bytes = self.space.get(&name)?;
        let decode = |bytes: Bytes| Meta::decode(bytes).ok_or_else(|| damaged("a key"));
        Ok(SoughtKey {
            key_start: name.len() - key.len(),
            name,
            stored: bytes.map(decode).transpose()?,
        })
    }

    /// Makes garbage of the elements of a value, unless they are those of the next one.
    fn discard(&mut self, key: &[u8], before: &Meta, next: Option<u64>) -> Result<()> {
        if let Some(id) = before.id().filter(|id| Some(*id) != next) {
            let first = self.first_field_expiry(&before.value)?;
            self.set_field_expiry(key, first, None)?;
            let prefix = layout::collection(self.root.epoch, id);
            self.note_garbage(&prefix)?;
        }
        Ok(())
    }

    fn note_garbage(&mut self, prefix: &[u8]) -> Result<()> {
        let name = layout::garbage(prefix);
        self.space.garbage(&name);
        self.set_entry(name, Some(Bytes::new()))
    }

    /// Writes what is remembered of the state as a whole, if that changed.
    pub(crate) fn save_root(&mut self) -> Result<()> {
        if self.root == self.saved {
            return Ok(());
        }
        self.saved = self.root;
        let bytes = self.root.encode();
        self.set_entry(Bytes::from_static(layout::ROOT), Some(bytes))
    }
}

/// A collection under a key, and when the key expires.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundCollection {
    pub(crate) collection: Collection,
    pub(crate) expires: Option<u64>,
}

impl std::fmt::Debug for Keyspace<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyspace")
            .field("root", &self.root)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Returns what says that an entry is not what it should be.
pub fn damaged(what: &str) -> Error {
    Error::Damaged(Box::new(Damage {
        file: "maps".into(),
        offset: 0,
        position: 0,
        what: format!("unreadable entry of the state: {what}"),
        help: "run `trefoil repair`, which rebuilds the maps from the log".to_owned(),
    }))
}
