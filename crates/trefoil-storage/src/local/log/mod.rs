//! The log of a namespace in segment files.
//!
//! - [`layout`] is the format of a plain segment, [`records`] walks over one, [`scan`] reads one from its
//!   beginning.
//! - [`plain`] and [`compressed`] are the two kinds of segment; [`sidecar`] and [`index`] say where their
//!   items are, [`lookup`] finds many of them and [`items`] reads them.
//! - [`snapshot`] is what stands for changes that were dropped.
//! - [`writer`] appends, [`upkeep`] works behind it, [`edit`] replaces and drops items, [`seal`] says where the log ended when it was
//!   closed, [`mark`] from where on it must be read, [`recovery`] opens and [`settle`] makes the end durable.

pub(crate) mod blocks;
mod codec;
mod compress;
pub(crate) mod compressed;
pub(crate) mod create;
mod edit;
mod growing;
pub(crate) mod index;
mod items;
pub(crate) mod layout;
mod lookup;
mod mark;
pub(crate) mod names;
pub(crate) mod plain;
pub(crate) mod records;
pub(crate) mod recovery;
mod same;
pub(crate) mod scan;
pub(crate) mod seal;
pub(crate) mod segments;
pub(crate) mod settle;
pub(crate) mod sidecar;
pub(crate) mod snapshot;
pub(crate) mod summary;
mod upkeep;
pub(crate) mod writer;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};
use trefoil_core::{Error, Result};

use crate::{LogEnd, Record, StorageWork, Usage, VisitItem, VisitLabel};

use super::options::LocalOptions;
use super::reading::FileAccess;
use super::reading::file::ReadPatience;
use create::NewSegment;
use items::ReadProgress;
use segments::{Segment, Segments};
use snapshot::SnapshotFile;
use writer::LogWriter;

/// The log.
///
/// Locks are taken in the order `rewriting`, `writer`, `is_abandoned`, `prepared`, `segments`, `end`.
#[derive(Debug)]
pub(crate) struct Log {
    dir: PathBuf,
    options: LocalOptions,
    access: FileAccess,
    /// Replaced as a whole: a reader keeps the list it began with, and the files in it alive.
    segments: RwLock<Arc<Segments>>,
    /// The end of what is durable.
    end: RwLock<LogEnd>,
    writer: Mutex<LogWriter>,
    /// The snapshot, if there is one.
    snapshot: RwLock<Option<Arc<SnapshotFile>>>,
    /// The segment after the active one, if it is ready.
    prepared: Mutex<Option<NewSegment>>,
    /// Held while a segment is written again.
    rewriting: Mutex<()>,
    /// Whether no segment may be replaced any more. Held while one is.
    is_abandoned: Mutex<bool>,
    /// The numbers of segments that cannot be compressed.
    skipped: Mutex<BTreeSet<u64>>,
    /// The average size of a group, which decides how room is made.
    demand: AtomicU64,
    done: WorkDone,
}

/// What the log has done since it was opened.
#[derive(Debug, Default)]
struct WorkDone {
    writing_nanos: AtomicU64,
    compressions: AtomicU64,
    compressed_bytes: AtomicU64,
}

/// How many items are looked up together.
const LOOKED_UP_TOGETHER: usize = 1024;

impl Log {
    fn new(
        dir: PathBuf,
        (options, access): (LocalOptions, FileAccess),
        segments: Segments,
        writer: LogWriter,
        end: LogEnd,
        prepared: Option<NewSegment>,
        snapshot: Option<Arc<SnapshotFile>>,
    ) -> Self {
        Self {
            dir,
            options,
            access,
            segments: RwLock::new(Arc::new(segments)),
            end: RwLock::new(end),
            writer: Mutex::new(writer),
            snapshot: RwLock::new(snapshot),
            prepared: Mutex::new(prepared),
            rewriting: Mutex::default(),
            is_abandoned: Mutex::default(),
            skipped: Mutex::default(),
            demand: AtomicU64::new(0),
            done: WorkDone::default(),
        }
    }

    /// What it has done.
    pub(crate) fn work(&self) -> StorageWork {
        let done = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StorageWork {
            writing: Duration::from_nanos(done(&self.done.writing_nanos)),
            compressions: done(&self.done.compressions),
            compressed_bytes: done(&self.done.compressed_bytes),
        }
    }

    /// Lets no segment be replaced any more.
    pub(crate) fn abandon(&self) {
        *self.is_abandoned.lock() = true;
    }

    /// Keeps the log from being abandoned, unless it is.
    fn hold(&self) -> Result<MutexGuard<'_, bool>> {
        let is_abandoned = self.is_abandoned.lock();
        match *is_abandoned {
            true => Err(Error::Closed("the log is being closed".into())),
            false => Ok(is_abandoned),
        }
    }

    /// The segments as they are now.
    pub(crate) fn segments(&self) -> Arc<Segments> {
        Arc::clone(&self.segments.read())
    }

    fn change_segments(&self, change: impl FnOnce(&mut Segments)) {
        let mut segments = self.segments.write();
        let mut changed = Segments::clone(&segments);
        change(&mut changed);
        *segments = Arc::new(changed);
    }

    /// Where the durable log ends.
    pub(crate) fn end(&self) -> LogEnd {
        *self.end.read()
    }

    /// Hands the items at these positions to `visit`. Returns whether it did not have to wait for more
    /// of them than there was patience for.
    pub(crate) fn read(
        &self,
        positions: &[u64],
        patience: ReadPatience,
        visit: &mut VisitItem<'_>,
    ) -> Result<bool> {
        let segments = self.segments();
        for some in positions.chunks(LOOKED_UP_TOGETHER) {
            let Some(found) = segments.find(some, &self.access, patience)? else {
                return Ok(false);
            };
            let mut rest = found.as_slice();
            while !rest.is_empty() {
                let (batch, others) = items::split_batch(rest);
                match items::read(batch, patience, visit)? {
                    ReadProgress::All => rest = others,
                    ReadProgress::Enough => return Ok(true),
                    ReadProgress::NotAtHand => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// Hands the labels of the items at these positions to `visit`.
    pub(crate) fn read_labels(&self, positions: &[u64], visit: &mut VisitLabel<'_>) -> Result<()> {
        let segments = self.segments();
        for some in positions.chunks(LOOKED_UP_TOGETHER) {
            let found = segments.find(some, &self.access, ReadPatience::Waits)?;
            items::read_labels(&found.unwrap_or_default(), visit)?;
        }
        Ok(())
    }

    /// Hands every record with a commit after `after_commit` to `visit`.
    pub(crate) fn replay(
        &self,
        after_commit: u64,
        visit: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        let segments = self.segments();
        let mut entries = segments.after_commit(after_commit).iter();
        entries.try_for_each(|entry| entry.segment.replay(after_commit, visit))
    }

    /// Adds the log's part to `usage`.
    pub(crate) fn add_usage(&self, usage: &mut Usage) {
        for entry in &self.segments().entries {
            let segment = &entry.segment;
            usage.log_bytes += segment.file_bytes();
            match segment {
                Segment::Plain(_) => {
                    usage.plain_segments += 1;
                    usage.log_used_bytes += segment.summary().used_bytes;
                }
                Segment::Compressed(_) => {
                    usage.compressed_segments += 1;
                    usage.log_used_bytes += segment.file_bytes();
                }
            }
        }
        let snapshot = self.snapshot().map_or(0, |snapshot| snapshot.file_bytes());
        usage.log_bytes += snapshot;
        usage.log_used_bytes += snapshot;
        let prepared = self.prepared.lock();
        usage.log_bytes += prepared.as_ref().map_or(0, |new| new.segment.capacity());
    }
}
