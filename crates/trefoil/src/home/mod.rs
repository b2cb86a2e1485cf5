//! Where a server's namespaces live, and what it keeps besides their logs.
//!
//! A [`Home`] keeps the entries of the registry, which are bytes to it, and opens namespaces. A
//! namespace is used through a [`Claim`]: the small facts beside the log (which generation counts,
//! when something is due next) and the [`Storage`] of each generation are reached through it
//! alone. [`LocalHome`] is a directory, [`MemoryHome`] lives and dies with the process. Others can be
//! written in other crates; they pass the checks in `conformance` (feature `testing`).
//!
//! Rules for all of them:
//!
//! - **Any call may wait** for a disk or a network, except where it says otherwise, [`Home::free_bytes`]
//!   and [`Claim::release`]. None is made on a thread that serves connections, nor under a lock that
//!   readers of an open namespace need. The writer of a namespace calls [`Claim::set_due`], at most
//!   once after each opening.
//! - **A change is there as a whole or not at all, and stays** when the call has returned. After an
//!   error nobody knows: the caller asks again what counts ([`Home::entry`], [`Claim::facts`]).
//! - **An id may be used again** after a deletion, for another [`Incarnation`]. What was meant for the
//!   one before gets [`Error::NamespaceNotFound`], and never touches the new one.
//! - **A namespace has one claim at a time**, in one process: [`Error::Locked`]. A claim that was
//!   released, or lost to another process, fails with [`Error::Closed`] from then on. Where processes
//!   share a home, [`Claim::check_held`] says whether what was read may be told.
//! - **What was made is never replaced by something empty.** If it is not there, that is
//!   [`Error::Damaged`].

mod cluster;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod local;
mod memory;
mod whole_log;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use trefoil_core::{Error, NamespaceId, Result};
use trefoil_storage::local::{Finding, LogReport, Progress};
use trefoil_storage::{BlockCache, ReadReach, Storage};

pub use cluster::{Cluster, ClusterMember, ClusterStats, MemberState, RequestCounts};
pub use local::LocalHome;
pub use memory::MemoryHome;

/// The number of a namespace's first generation.
pub const FIRST_GENERATION: u64 = 1;

/// Tells the namespaces apart that had the same id one after the other. A home never gives the same
/// one to two of them while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation(pub u128);

/// Names one state of one entry of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The namespace that the entry is of.
    pub incarnation: Incarnation,
    /// Another one after each change of the entry.
    pub version: u64,
}

/// An entry of the registry.
#[derive(Debug, Clone)]
pub struct StoredEntry {
    /// Which state of it this is.
    pub stamp: Stamp,
    /// What was written.
    pub bytes: Bytes,
    /// Where it is kept, for people.
    pub place: PathBuf,
}

/// The small facts beside the log of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The generation that counts.
    pub generation: u64,
    /// When the namespace must be opened because something of it is due, in milliseconds since 1970.
    pub due: Option<u64>,
}

/// An opened generation.
#[derive(Debug)]
pub struct OpenedGeneration {
    /// Its log and its maps.
    pub storage: Arc<dyn Storage>,
    /// Bytes of an unfinished write that were cut from the end of the log.
    pub cut_bytes: u64,
    /// Where it is kept, for people.
    pub place: PathBuf,
}

/// What verifying found below the [`Storage`] of a namespace.
#[derive(Debug, Clone, Default)]
pub struct VerifiedLog {
    /// What the log holds, and what is wrong with it.
    pub log: LogReport,
    /// What is wrong with the facts beside it.
    pub beside: Vec<Finding>,
}

/// Entries of the registry that may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryChanges {
    /// Those of these namespaces.
    Some(Vec<NamespaceId>),
    /// Any of them.
    All,
}

/// Removes what is left of a deleted namespace, which may take long. If it is not called, or fails,
/// the home does so later.
pub type Erasure = Box<dyn FnOnce() -> Result<()> + Send>;

/// Where the namespaces of a server live.
pub trait Home: Send + Sync + Debug {
    /// Returns all entries of the registry by name. One that cannot be read costs nothing but itself.
    fn entries(&self) -> Result<Vec<(String, Result<StoredEntry>)>>;

    /// Returns the entry of one namespace; `None` if it does not exist.
    fn entry(&self, id: &NamespaceId) -> Result<Option<StoredEntry>>;

    /// Makes a namespace exist, as a new incarnation, with this entry. If there is one of this id,
    /// that is [`Error::NamespaceExists`].
    fn create(&self, id: &NamespaceId, bytes: &[u8]) -> Result<Stamp>;

    /// Replaces an entry if it still is the one of this stamp. Returns the new stamp; `None` if it
    /// was changed or deleted meanwhile.
    fn replace(&self, id: &NamespaceId, old: Stamp, bytes: &[u8]) -> Result<Option<Stamp>>;

    /// Makes a namespace exist no more, which frees its id. Nobody may hold a claim to it.
    fn delete(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<Erasure>;

    /// Claims a namespace. With `must_exist` it is known that it has been used; otherwise its first
    /// generation is made when it is opened, if nothing is there.
    fn claim(
        &self,
        id: &NamespaceId,
        incarnation: Incarnation,
        must_exist: bool,
    ) -> Result<Arc<dyn Claim>>;

    /// Returns whether anything is stored of a namespace besides its entry.
    fn has_storage(&self, id: &NamespaceId) -> Result<bool>;

    /// Returns when namespaces must be opened because something of them is due; those that are not
    /// among them need not.
    fn due_times(&self) -> Result<Vec<(NamespaceId, u64)>>;

    /// Returns those of [`Self::due_times`] that are not later than this.
    fn due_until(&self, until: u64) -> Result<Vec<(NamespaceId, u64)>> {
        let mut times = self.due_times()?;
        times.retain(|(_, due)| *due <= until);
        Ok(times)
    }

    /// Returns whether other processes may have the home at the same time.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the cluster that the processes are that share the home, if they do.
    fn cluster(&self) -> Option<Arc<dyn Cluster>> {
        None
    }

    /// Returns [`Error::NotOwner`], with its address, if another process
    /// has the namespace or should be the next to have it. This is a hint, and [`Self::claim`] decides.
    fn check_here(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<()> {
        let _ = (id, incarnation);
        Ok(())
    }

    /// Returns an error if this process may answer for no namespace at present, as when it cannot reach
    /// what it shares with others. Does not wait.
    fn check_ready(&self) -> Result<()> {
        Ok(())
    }

    /// Returns which entries others have changed since the last call, or since the home was opened.
    fn changed_entries(&self) -> Result<EntryChanges> {
        Ok(EntryChanges::Some(Vec::new()))
    }

    /// Appends a record, one line of text, to the audit log of the server, which belongs to no namespace.
    /// Returns its number, one more than that of the record before. It is there for good when this
    /// returns; of very many records, the oldest go.
    fn append_audit(&self, record: &str) -> Result<u64>;

    /// Returns records of the audit log with lower numbers than `before`, the newest first, at most
    /// `limit`, with their numbers.
    fn read_audit(&self, before: u64, limit: usize) -> Result<Vec<(u64, String)>>;

    /// Returns how many bytes may still be written; `None` if there is no limit.
    fn free_bytes(&self) -> Result<Option<u64>>;

    /// Lets other processes have the home. No other call comes after it.
    fn close(&self) -> Result<()>;
}

/// A namespace that is in the hands of one process, and of one database in it.
pub trait Claim: Send + Sync + Debug {
    /// Returns the facts beside the log.
    fn facts(&self) -> Result<Facts>;

    /// Opens a generation: the one that counts, or the one after it, which is made if it is not there
    /// and does not count yet. A log that ends before a commit that its maps know of, as `reach`
    /// reads from them, is [`Error::Damaged`], and nothing is changed.
    /// What is read is kept in `cache`.
    fn open(
        &self,
        generation: u64,
        cache: &Arc<BlockCache>,
        reach: &ReadReach<'_>,
    ) -> Result<OpenedGeneration>;

    /// Makes the next generation the one that counts.
    fn switch(&self, generation: u64) -> Result<()>;

    /// Removes every generation but the one that counts: they were replaced, or never counted.
    fn remove_others(&self) -> Result<()>;

    /// Sets when the namespace must be opened because something of it is due.
    fn set_due(&self, due: Option<u64>) -> Result<()>;

    /// Checks what is stored of the generation that counts, which is not open, and finds all that is
    /// wrong. Changes nothing.
    fn verify(&self, progress: &mut dyn FnMut(Progress)) -> Result<VerifiedLog> {
        let _ = progress;
        whole_log::verify(self)
    }

    /// Removes everything of the generation that counts, which is not open, that can be made again
    /// from its log and the snapshot of the state. If those cannot be read, or end before a commit
    /// that the maps know of, nothing is removed.
    fn remove_derived(&self, reach: &ReadReach<'_>) -> Result<()> {
        whole_log::remove_maps(self, reach)
    }

    /// Returns [`Error::NotOwner`] if another process may have the
    /// namespace by now. What was read, or decided without writing, counts only if this is asked
    /// afterwards and all is well. Does not wait.
    fn check_held(&self) -> Result<()> {
        Ok(())
    }

    /// Returns whether another process has the namespace for good: this claim can only be released.
    /// Does not wait.
    fn is_lost(&self) -> bool {
        false
    }

    /// Tells `notify`, which does not wait, when the claim is lost, if that happens.
    fn on_lost(&self, notify: Box<dyn FnOnce() + Send>) {
        drop(notify);
    }

    /// Chooses which process should have the namespace next, if there is another one. Returns the
    /// [`Error::NotOwner`] that says so. Does not wait.
    fn choose_successor(&self) -> Option<Error> {
        None
    }

    /// Lets others claim the namespace. Dropping the claim does the same.
    fn release(&self);

    /// Lets others claim the namespace, the chosen one first, and returns when they may.
    fn hand_over(&self) {
        self.release();
    }
}
