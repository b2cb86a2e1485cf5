//! What an engine must do that Trefoil keeps its data in.
//!
//! A [`KvEngine`] has two things: *objects*, which are written whole and of which any node may write any,
//! on a condition; and *stores*, ordered maps of which each has one writer at a time. A namespace is a
//! store. The entries of the registry, who owns what, and the runs of an index are objects.
//!
//! Every call may wait for a network, except where it says otherwise, and none waits for ever: an
//! engine bounds its own retries. Calls may come from any thread that may wait, at any time.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
pub use trefoil::home::RequestCounts;
use trefoil_core::{Direction, Timestamp};

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvError {
    /// Another writer has the store. The handle is of no more use. Of a batch that was on its way
    /// it is not known whether it is there.
    Fenced,
    /// The batch may be there or not. The handle is of no more use: open the store again, and look.
    Unknown(String),
    /// The batch was refused, and nothing of it is there.
    TooLarge {
        /// What it may be at most, in bytes.
        limit: usize,
    },
    /// The engine cannot be reached. Nothing was changed.
    Unavailable(String),
    /// What is there cannot be read, or something is missing.
    Damaged(String),
}

/// What a call returns.
pub type KvResult<T> = Result<T, KvError>;

/// What a store takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvLimits {
    /// The longest key, in bytes.
    pub key_bytes: usize,
    /// The longest value, in bytes.
    pub value_bytes: usize,
    /// The keys and values of one batch, in bytes.
    pub batch_bytes: usize,
}

/// Changes that are applied together or not at all. The last change of a key counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KvBatch {
    /// Keys and their new values; `None` removes a key.
    pub changes: Vec<(Bytes, Option<Bytes>)>,
}

/// Part of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KvPage {
    /// Keys and values, in the order of the scan.
    pub entries: Vec<(Bytes, Bytes)>,
    /// Whether there may be more after the last of them.
    pub has_more: bool,
}

/// Is told how a batch ended, once.
pub type KvDone = Box<dyn FnOnce(KvResult<()>) + Send>;

/// Reads keys and values.
pub trait KvRead: Send + Sync + Debug {
    /// Returns the value of each key. They are fetched together.
    fn get(&self, keys: &[&[u8]]) -> KvResult<Vec<Option<Bytes>>>;

    /// Returns for each range the entry with the greatest key of it, bounds included. They are
    /// fetched together.
    fn floor(&self, ranges: &[(&[u8], &[u8])]) -> KvResult<Vec<Option<(Bytes, Bytes)>>>;

    /// Returns entries with `from <= key < to`, from either end on: at least one, if there is one, and
    /// not many more than this many bytes. With `is_kept` what is read may be read again soon.
    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        max_bytes: usize,
        is_kept: bool,
    ) -> KvResult<KvPage>;
}

/// A store that is open, for one writer. What was committed is read from then on.
pub trait Kv: KvRead {
    /// Returns what it takes. Does not wait.
    fn limits(&self) -> KvLimits;

    /// Applies a batch, and tells `done` when it is durable and not before. Does not wait. Batches are
    /// applied in the order of the calls; one that comes while another is on its way may share its
    /// trip. No key is empty. `done` is called on a thread of the engine: it must not wait.
    fn commit(&self, batch: KvBatch, done: KvDone);

    /// Returns the store as it is now: batches that come later change nothing about it.
    fn moment(&self) -> KvResult<Arc<dyn KvRead>>;

    /// Tells `notify` when the handle is of no more use, once, if that happens. Does not wait.
    fn on_lost(&self, notify: Box<dyn FnOnce() + Send>);

    /// Ends the handle, in bounded time, whatever the engine does. What was durable stays.
    fn close(&self) -> KvResult<()>;
}

/// Names one state of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectVersion(pub String);

/// Whole pieces of data under names. A name is made of parts of ASCII letters, digits, `-`, `_`, `.`
/// and `=`, with `/` between them; no part is `.` or `..`.
pub trait KvObjects: Send + Sync + Debug {
    /// Returns an object; `None` if it does not exist.
    fn get(&self, name: &str) -> KvResult<Option<(Bytes, ObjectVersion)>>;

    /// Creates an object. Returns `None` if there is one. (After [`KvError::Unknown`] it may exist.)
    fn create(&self, name: &str, bytes: Bytes) -> KvResult<Option<ObjectVersion>>;

    /// Replaces an object in this state. Returns `None` if it is in another one or does not exist.
    fn replace(
        &self,
        name: &str,
        old: &ObjectVersion,
        bytes: Bytes,
    ) -> KvResult<Option<ObjectVersion>>;

    /// Removes an object. One that does not exist is removed, too.
    fn delete(&self, name: &str) -> KvResult<()>;

    /// Returns names that begin with `prefix` and come after `after`, in order, at most `max`.
    fn list(&self, prefix: &str, after: &str, max: usize) -> KvResult<Vec<String>>;

    /// Returns when an object was written last, by the clock of the engine, to a second at least. Returns
    /// `None` if the object does not exist, or the engine does not say.
    fn written(&self, name: &str) -> KvResult<Option<Timestamp>> {
        let _ = name;
        Ok(None)
    }

    /// Stores a file as an object, which is there as a whole or not at all. Whatever is there is
    /// replaced.
    fn upload(&self, name: &str, file: &Path) -> KvResult<()>;

    /// Fetches an object into a new file, which is whole when this returns. Returns `false` if the
    /// object does not exist.
    fn download(&self, name: &str, file: &Path) -> KvResult<bool>;
}

/// Where stores and objects are.
pub trait KvEngine: Send + Sync + Debug {
    /// Returns the objects. Does not wait.
    fn objects(&self) -> &dyn KvObjects;

    /// Opens a store, which is made if it is not there. From then on every handle with a lower epoch is
    /// fenced: it commits nothing more, and may go on answering reads with what was there before. If
    /// there was one with this epoch or a higher one, that is [`KvError::Fenced`], and that one is
    /// not disturbed. An attempt that failed has used its epoch: the next one takes a higher one.
    fn open(&self, name: &str, epoch: u64) -> KvResult<Arc<dyn Kv>>;

    /// Removes a store that nobody has open, as far as it is there.
    fn erase(&self, name: &str) -> KvResult<()>;

    /// Returns what was asked of it since the start, if it counts that. Does not wait.
    fn request_counts(&self) -> RequestCounts {
        RequestCounts::default()
    }
}
