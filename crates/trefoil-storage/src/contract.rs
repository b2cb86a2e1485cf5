//! The contract between the database and what stores its bytes.
//!
//! Nothing here assumes that a record is a place in a file. One process at a time has a namespace
//! open for writing: a file lock locally, fencing on a shared store. The order of calls is:
//!
//! - `append` has one group at a time: it is not called again before the group before is completed.
//!   After [`Error::DiskFull`](trefoil_core::Error::DiskFull), and after
//!   [`Error::Invalid`](trefoil_core::Error::Invalid) for a group that cannot be taken as it is,
//!   nothing of the group is in the log and the next group may follow. After any other error it is
//!   not called again before the namespace was opened anew;
//!   [`Error::Unknown`](trefoil_core::Error::Unknown) says that the group may be in the log.
//! - Every other call may come from any thread at any time.

use std::fmt::Debug;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trefoil_core::limits::{GROUP_BYTES_MAX, GROUP_COMMITS_MAX};
use trefoil_core::{Direction, Error, Result};

use crate::Completion;
use crate::local::{RecordInfo, SegmentInfo};

/// What the database adds to an item in the clear, to be read without reading the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Label {
    /// Eight bits whose meaning is the database's.
    pub flags: u8,
    /// Sixty-four bits whose meaning is the database's.
    pub word: u64,
}

/// A sequence of opaque items, kept in one buffer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Items {
    bytes: Vec<u8>,
    /// The end of each item in `bytes`, and its label.
    entries: Vec<(usize, Label)>,
    /// The places of those that were dropped, in order: mostly none.
    dropped: Vec<usize>,
}

impl Items {
    /// Appends the item that `encode` writes.
    pub fn push_with(&mut self, label: Label, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.bytes);
        self.entries.push((self.bytes.len(), label));
    }

    /// Makes room for this many more items and bytes of them.
    pub fn reserve(&mut self, n_items: usize, n_bytes: usize) {
        self.entries.reserve(n_items);
        self.bytes.reserve(n_bytes);
    }

    /// Appends an item.
    pub fn push(&mut self, label: Label, item: &[u8]) {
        self.push_with(label, |out| out.extend_from_slice(item));
    }

    /// Appends the place of an item that was dropped.
    pub fn push_dropped(&mut self) {
        self.dropped.push(self.entries.len());
        self.entries.push((self.bytes.len(), Label::default()));
    }

    /// Whether some of the items were dropped.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// How many items there are, dropped ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of all items together.
    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The items in order; `None` for one that was dropped.
    pub fn iter(&self) -> impl Iterator<Item = Option<(Label, &[u8])>> {
        let (mut start, mut dropped) = (0, self.dropped.as_slice());
        self.entries
            .iter()
            .enumerate()
            .map(move |(place, &(end, label))| {
                let item = &self.bytes[start..end];
                start = end;
                match dropped.split_first() {
                    Some((first, rest)) if *first == place => {
                        dropped = rest;
                        None
                    }
                    _ => Some((label, item)),
                }
            })
    }

    /// Forgets all items and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.dropped.clear();
    }
}

/// Consecutive items and the commits they belong to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The number of the record's first commit, from 1.
    pub first_commit: u64,
    /// How many commits the record holds.
    pub n_commits: u32,
    /// The position of the record's first item; the items after it have the positions after it.
    pub first_position: u64,
    /// The items.
    pub items: Items,
    /// What the database says about the commits, for ever. Those of records that follow each other
    /// may be put end to end.
    pub commits: Vec<u8>,
    /// What the commits change of the state, until a snapshot has it.
    pub changes: Vec<u8>,
    /// Whether the storage has dropped the changes, because a snapshot has what they led to. Never
    /// set on a record that is appended.
    pub changes_dropped: bool,
}

impl Record {
    /// The number of the record's last commit.
    pub fn last_commit(&self) -> u64 {
        self.first_commit + u64::from(self.n_commits) - 1
    }

    /// The position after that of the record's last item.
    pub fn end_position(&self) -> u64 {
        self.first_position + self.items.len() as u64
    }

    /// The items that were not dropped, with their positions.
    pub fn items(&self) -> impl Iterator<Item = (u64, Label, &[u8])> {
        let items = (self.first_position..).zip(self.items.iter());
        items.filter_map(|(position, item)| item.map(|(label, bytes)| (position, label, bytes)))
    }

    /// Returns whether the storage has dropped something of it.
    pub fn lacks_something(&self) -> bool {
        self.changes_dropped || self.items.has_dropped()
    }

    /// Drops the changes, if they are of commits up to `commit`.
    pub(crate) fn drop_changes(&mut self, commit: u64) {
        if self.last_commit() <= commit {
            self.changes.clear();
            self.changes_dropped = true;
        }
    }

    /// Whether nothing of the record is left but the numbers of its commits and what is said about
    /// them.
    pub(crate) fn is_husk(&self) -> bool {
        self.changes_dropped && self.items.is_empty()
    }

    /// Takes in the next record, if nothing is left of either but the numbers of their commits and
    /// they can be told as one. Returns whether it did.
    pub(crate) fn absorb(&mut self, next: &Self) -> bool {
        let n_commits = self.n_commits.checked_add(next.n_commits);
        match n_commits.filter(|_| self.is_husk() && next.is_husk()) {
            Some(n_commits) if next.first_position == self.first_position => {
                self.n_commits = n_commits;
                self.commits.extend_from_slice(&next.commits);
                true
            }
            _ => false,
        }
    }
}

/// Returns what says that a record without its changes or its items cannot be appended.
pub fn dropped() -> Error {
    Error::invalid("a record without its changes or some of its items cannot be appended")
}

/// Returns what says that there is nothing to be replaced at `position`.
pub fn no_item(position: u64) -> Error {
    Error::invalid(format!("there is no item at position {position}"))
}

/// Returns what says that there cannot be a snapshot of `commit`, where the last one is of `last` and the
/// log ends at `end`.
pub fn no_such_snapshot(commit: u64, last: u64, end: u64) -> Error {
    Error::invalid(format!(
        "a snapshot of commit {commit}, where commits {last} to {end} are possible"
    ))
}

/// Records that become durable together or not at all. Each continues where the one before ended,
/// except that its first position may be higher.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// The records; at least one.
    pub records: Vec<Record>,
}

/// After how much a group takes no more requests. The last one may bring a commit of any size that the
/// database takes: a storage whose transactions are smaller writes it in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLimits {
    /// The number of commits.
    pub commits: usize,
    /// The bytes of their items, or of their items and changes.
    pub bytes: usize,
}

impl Default for GroupLimits {
    fn default() -> Self {
        Self {
            commits: GROUP_COMMITS_MAX,
            bytes: GROUP_BYTES_MAX,
        }
    }
}

/// Where the log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogEnd {
    /// The number of the last durable commit; 0 if there is none.
    pub commit: u64,
    /// The position of the last durable item; 0 if there is none.
    pub position: u64,
}

/// An item read from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredItem {
    /// Its position.
    pub position: u64,
    /// Its label.
    pub label: Label,
    /// Its bytes.
    pub bytes: Bytes,
}

/// The entries of the state as they were at one commit, kept beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The number of that commit.
    pub commit: u64,
    /// How many entries there are.
    pub entries: u64,
    /// The bytes of their keys and values.
    pub bytes: u64,
}

/// How much room a namespace takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes of the log on disk, preallocated ones and the snapshot included.
    pub log_bytes: u64,
    /// Bytes of the log that hold records, and of the snapshot.
    pub log_used_bytes: u64,
    /// Bytes of the maps on disk.
    pub map_bytes: u64,
    /// Bytes of those of the maps that batches are written to.
    pub written_map_bytes: u64,
    /// Segments (or what stands for them) that are not compressed.
    pub plain_segments: u64,
    /// Segments that are compressed.
    pub compressed_segments: u64,
}

/// What a storage has done since it was opened, as far as it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorageWork {
    /// How long it took to hand groups to the operating system, without the time to make them
    /// durable.
    pub writing: Duration,
    /// How often it compressed a part of the log.
    pub compressions: u64,
    /// The bytes that those parts had before.
    pub compressed_bytes: u64,
}

/// What a step of work that can wait leaves to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upkeep {
    /// Nothing.
    Done,
    /// More, at once.
    More,
    /// Something that should wait until the writer is less busy.
    Waiting,
}

/// The longest key of a map, in bytes. A longer one is in no map, and none can be put there.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Says of a key that it cannot be one of a map's.
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid("the key of a map must not be empty"));
    }
    if key.len() > KEY_BYTES_MAX {
        let what = "length of a map's key";
        return Err(Error::over_limit(what, key.len(), KEY_BYTES_MAX));
    }
    Ok(())
}

/// A key and its value.
pub type Entry = (Bytes, Bytes);

/// An ordered walk over a map.
pub type Scan<'a> = Box<dyn Iterator<Item = Result<Entry>> + 'a>;

/// Takes a key and its value.
pub type Sink<'a> = dyn FnMut(Vec<u8>, Vec<u8>) -> Result<()> + 'a;

/// Looks at an item. It breaks off when it has seen enough.
pub type VisitItem<'a> = dyn FnMut(StoredItem) -> ControlFlow<()> + 'a;

/// Looks at the position of an item and its label.
pub type VisitLabel<'a> = dyn FnMut(u64, Label) + 'a;

/// Looks at a key and its value.
pub type VisitEntry<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// Hands entries to a sink.
pub type Fill<'a> = dyn FnMut(&mut Sink<'_>) -> Result<()> + 'a;

/// An ordered map of bytes to bytes. It can be asked for any bytes: what cannot be a key, see
/// [`KEY_BYTES_MAX`], is not there.
pub trait Map: Send + Sync + Debug {
    /// The value under `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// The entries with `from <= key < to`, in either direction; an empty `to` is the end of the
    /// map. Both may be longer than any key. They are those of this moment: a batch that is written later changes nothing about
    /// them.
    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_>;

    /// The map as it is at this moment: batches that are written later change nothing about it. It
    /// may take room on disk for as long as it is held. (After a batch that failed it may be what the
    /// map is.)
    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>>;
}

/// Finds the map of a name, if it exists.
pub type FindMap<'a> = dyn Fn(&str) -> Result<Option<Arc<dyn Map>>> + 'a;

/// Reads from maps the number of the last commit that they know of; 0 if they know of none.
pub type ReadReach<'a> = dyn Fn(&FindMap<'_>) -> Result<u64> + 'a;

/// Changes to maps that are applied together. A map that does not exist is created.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Map, key and the new value, or `None` to remove the key.
    pub changes: Vec<(String, Vec<u8>, Option<Vec<u8>>)>,
}

impl Batch {
    /// Returns the bytes of the keys and values.
    pub fn n_bytes(&self) -> u64 {
        let bytes = |(_, key, value): &(String, Vec<u8>, Option<Vec<u8>>)| {
            key.len() + value.as_ref().map_or(0, Vec::len)
        };
        self.changes.iter().map(bytes).sum::<usize>() as u64
    }

    /// Sets `key` of `map`.
    pub fn put(&mut self, map: &str, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.changes
            .push((map.to_owned(), key.into(), Some(value.into())));
    }

    /// Removes `key` of `map`.
    pub fn remove(&mut self, map: &str, key: impl Into<Vec<u8>>) {
        self.changes.push((map.to_owned(), key.into(), None));
    }
}

/// One namespace's log and maps.
pub trait Storage: Send + Sync + Debug {
    /// Whether reading the log, a map or the snapshot may have to wait for a network.
    ///
    /// Then the database reads on threads for that alone: never on one that serves connections. What
    /// the writer needs for a commit is read before the commit is queued. The writer reads it again,
    /// so such a storage keeps what it read and appended last in memory.
    fn may_wait(&self) -> bool {
        false
    }

    /// How large a group should become.
    fn group_limits(&self) -> GroupLimits {
        GroupLimits::default()
    }

    /// Appends a group. The completion says when it is durable, which readers see from then on.
    ///
    /// The call itself takes what it needs of the group and does not wait for a network: a storage
    /// that has to wait completes the group later, from a thread of its own. One that writes to a
    /// local disk may complete it at once.
    fn append(&self, group: &Group) -> Completion;

    /// Where the durable log ends.
    fn end(&self) -> LogEnd;

    /// Hands the items at these positions to `visit` in order, until it has seen enough. A position
    /// without a durable item is passed over: there never was one, or it was dropped.
    ///
    /// What is needed at once is asked for together, so that a storage that has to fetch its items
    /// can fetch them together.
    fn read(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<()>;

    /// Reads as [`Self::read`] does, unless something has to be waited for that is not in memory. Then it
    /// returns `false`, and what `visit` has seen so far is to be forgotten.
    fn read_at_hand(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<bool> {
        self.read(positions, visit).map(|()| true)
    }

    /// Hands the labels of the items at these positions to `visit` as [`Self::read`] does, without
    /// reading the items if it can.
    fn read_labels(&self, positions: &[u64], visit: &mut VisitLabel<'_>) -> Result<()> {
        self.read(positions, &mut |item| {
            visit(item.position, item.label);
            ControlFlow::Continue(())
        })
    }

    /// Puts stubs in the place of the items at their positions, for good, and returns when that is
    /// durable and the storage has nothing left of the old bytes. If one of them has no item to
    /// replace, nothing is replaced.
    ///
    /// If this fails or the process dies, some items may be replaced and others not, and the call may
    /// be repeated.
    fn replace_items(&self, stubs: &[StoredItem]) -> Result<()>;

    /// Drops the items at these positions for good, and returns when that is durable and the storage
    /// has nothing left of them. The end of the log stays where it is, and so do the commits that
    /// the items belonged to: [`Items::iter`] tells which items a record lacks. Positions without an
    /// item are passed over.
    ///
    /// If this fails or the process dies, some items may be dropped and others not, and the call may
    /// be repeated. What is damaged should not keep it from the rest.
    fn drop_items(&self, positions: &[Range<u64>]) -> Result<()>;

    /// Hands every durable record with a commit after `after_commit` to `visit`, in order, until
    /// it fails. A record that straddles `after_commit` is handed over whole.
    ///
    /// Up to the commit of the snapshot a record may come without its changes, which it says, and
    /// those that then have neither items nor changes may come as one.
    fn replay(&self, after_commit: u64, visit: &mut dyn FnMut(&Record) -> Result<()>)
    -> Result<()>;

    /// What the snapshot is, if there is one.
    fn snapshot(&self) -> Option<Snapshot>;

    /// Replaces the snapshot by one of the entries that `fill` hands over in ascending order of
    /// their keys, which are those as of `commit`, and returns when it is durable. The commit is
    /// durable and not before that of the last snapshot. If this fails or the process dies, there
    /// is either the old snapshot or the new one.
    ///
    /// From then on the storage may drop the changes of records up to `commit`. Called by one
    /// thread at a time.
    fn write_snapshot(&self, commit: u64, fill: &mut Fill<'_>) -> Result<()>;

    /// Hands the entries of the snapshot, if there is one, to `visit` in order, until it fails.
    fn read_snapshot(&self, visit: &mut VisitEntry<'_>) -> Result<()>;

    /// The map of this name, if it exists.
    fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>>;

    /// The names of all maps, in order.
    fn map_names(&self) -> Result<Vec<String>>;

    /// Applies a batch atomically and returns when it is durable. One with a key that is empty or
    /// too long is refused whole.
    fn write(&self, batch: &Batch) -> Result<()>;

    /// Creates the map `name` from the entries that `fill` hands over in ascending order of their
    /// keys, and returns when it is durable. A map of this name must not exist, and no key may be
    /// empty or too long. If the process dies meanwhile, the map may or may not exist, with any part of its entries: a batch that names the map makes it count.
    fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()>;

    /// Removes a map. Handles to it that are still held keep answering.
    fn drop_map(&self, name: &str) -> Result<()>;

    /// Does one step of work that can wait: prepares room ahead, compresses one old segment, drops
    /// changes that the snapshot has.
    /// Called by one thread at a time.
    ///
    /// While `is_busy` returns true, work that would take processor time and bandwidth from a busy writer
    /// is left alone, and [`Upkeep::Waiting`] says that there is some, unless too much of it has piled
    /// up. Long work asks again now and then, and is given up when the writer has become busy.
    /// What the writer itself needs is always done.
    fn maintain(&self, is_busy: &dyn Fn() -> bool) -> Result<Upkeep> {
        let _ = is_busy;
        Ok(Upkeep::Done)
    }

    /// Gives up replacing, dropping and upkeep that is under way and begins no more, to be called when the
    /// log is closed and before somebody else may open it: from then on none of that changes a file.
    fn abandon(&self) {}

    /// Leaves durable proof of where the log ends, to be called when the log is closed: what is
    /// missing or not valid there when it is opened again is damage then, and no write that was cut
    /// short. The next `append` removes the proof first. Does nothing if the end is not known.
    fn seal(&self) -> Result<()> {
        Ok(())
    }

    /// Notes what it knows of the log so far, so that opening it again need not read that; to be
    /// called when the maps have been brought up to the end of the log or near to it. Nothing is lost
    /// if what is noted is.
    fn mark(&self) -> Result<()> {
        Ok(())
    }

    /// How much room the namespace takes.
    fn usage(&self) -> Result<Usage> {
        Ok(Usage::default())
    }

    /// Returns what it has done.
    fn work(&self) -> StorageWork {
        StorageWork::default()
    }

    /// Returns how many bytes of memory it holds that are not in the cache it was opened with.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// Returns the segments of the log, in order, for people to look at. A storage that has none
    /// shows none.
    fn segments(&self) -> Vec<SegmentInfo> {
        Vec::new()
    }

    /// Hands what is known of the records of a segment to `visit`, in order.
    fn records(&self, segment: u64, visit: &mut dyn FnMut(RecordInfo)) -> Result<()> {
        let _ = visit;
        Err(Error::invalid(format!("there is no segment {segment}")))
    }
}
