//! The work that can wait: room ahead, sidecars of full segments, compression of old ones, and
//! dropping the changes that the snapshot has.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trefoil_core::{Error, Result};

use crate::Upkeep;
use crate::local::files;

use super::Log;
use super::compress::{compress, shrink};
use super::compressed::CompressedSegment;
use super::create::Room;
use super::names::{self, FileKind};
use super::plain::PlainSegment;
use super::same::{RecordChange, holds_the_same};
use super::segments::{Segment, Segments};
use super::sidecar;

/// Groups of more bytes than this on average are a bulk load: zeroing ahead would write everything
/// twice.
const BULK_GROUP_BYTES: u64 = 64 * 1024;
/// A segment of which dropping changes saves at least one part in this many is written again.
const DROPPED_SHARE_MIN: u64 = 8;
/// If dropping changes saves one part in this many, a segment need not be old, and is not written again
/// before it can be done.
const DROPPED_SHARE_YOUNG: u64 = 2;
/// How many segments may wait to be compressed until the writer is less busy.
const WAITING_SEGMENTS_MAX: usize = 16;
/// The average takes one part in this many from the newest group.
const DEMAND_WEIGHT: u64 = 8;

impl Log {
    /// Does one step of work. See [`Storage::maintain`](crate::Storage::maintain).
    pub(crate) fn maintain(&self, is_busy: &dyn Fn() -> bool) -> Result<Upkeep> {
        match self.prepare_or_back() {
            Ok(true) => return Ok(Upkeep::More),
            Ok(false) => {}
            // Compressing a segment makes room.
            Err(Error::DiskFull(what)) if self.to_rewrite(false).1.is_none() => {
                return Err(Error::DiskFull(what));
            }
            Err(Error::DiskFull(_)) => {}
            Err(error) => return Err(error),
        }
        let _rewriting = self.rewriting.lock();
        let (state, segment) = self.to_rewrite(is_busy());
        let Some(segment) = segment else {
            return Ok(state);
        };
        self.rewrite_or_skip(&segment, &|| self.goes_on(&segment, is_busy))?;
        Ok(self.to_rewrite(is_busy()).0)
    }

    /// Does what the writer needs while a segment is being written again. Returns whether that goes on:
    /// the writer may have become busy, so that it should wait.
    fn goes_on(&self, segment: &Segment, is_busy: &dyn Fn() -> bool) -> bool {
        // If it fails, it is found again when this is done.
        let _ = self.prepare_next();
        let is_next = |next: Segment| next.number() == segment.number();
        !is_busy() || self.to_rewrite(true).1.is_some_and(is_next)
    }

    /// Prepares the next segment, or writes the sidecar of a full one. Returns whether it did.
    fn prepare_or_back(&self) -> Result<bool> {
        if self.prepare_next()? {
            return Ok(true);
        }
        // A segment that is being written again must not come back as it was.
        let _rewriting = self.rewriting.lock();
        match without_sidecar(&self.segments()) {
            Some(segment) => self.write_sidecar(&segment).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether there is something to compress or to drop, and what to begin with.
    fn to_rewrite(&self, is_busy: bool) -> (Upkeep, Option<Segment>) {
        let segments = self.segments();
        let skipped = self.skipped.lock();
        let full = segments.full().iter().map(|entry| &entry.segment);
        let snapshot = self.snapshot_commit();
        let full: Vec<&Segment> = full
            .filter(|segment| !skipped.contains(&segment.number()))
            .filter(|segment| !awaits_snapshot(segment, snapshot))
            .collect();
        let n_plain = full.iter().filter(|segment| segment.is_plain()).count();
        let mut n_old = n_plain.saturating_sub(self.options.plain_segments);
        let is_dropping = |segment: &&Segment| is_worth_dropping(segment, snapshot);
        let due = full.into_iter().filter(|segment| {
            let is_old = segment.is_plain() && n_old > 0;
            n_old -= usize::from(is_old);
            is_old || is_dropping(segment)
        });
        let due: Vec<&Segment> = due.collect();
        // Dropping is little work and makes much room, so it does not wait.
        match (due.first(), due.iter().copied().find(is_dropping)) {
            (_, Some(segment)) => (Upkeep::More, Some(segment.clone())),
            (None, None) => (Upkeep::Done, None),
            (Some(_), None) if is_busy && due.len() <= WAITING_SEGMENTS_MAX => {
                (Upkeep::Waiting, None)
            }
            (Some(&segment), None) => (Upkeep::More, Some(segment.clone())),
        }
    }

    /// The commit up to which the snapshot has all changes.
    fn snapshot_commit(&self) -> u64 {
        self.snapshot().map_or(0, |snapshot| snapshot.info().commit)
    }

    /// A damaged segment stays as it is until the log is opened again: the ones after it must not
    /// wait for it.
    fn rewrite_or_skip(&self, segment: &Segment, goes_on: &dyn Fn() -> bool) -> Result<()> {
        match self.rewrite_segment(segment, goes_on) {
            Err(Error::Damaged(damage)) => {
                tracing::warn!(%damage, "a segment is not compressed");
                self.skipped.lock().insert(segment.number());
                Ok(())
            }
            other => other,
        }
    }

    /// Takes a group's size into the average.
    pub(crate) fn note_demand(&self, bytes: u64) {
        let average = self.demand.load(Ordering::Relaxed);
        let average = average - average / DEMAND_WEIGHT + bytes / DEMAND_WEIGHT;
        self.demand.store(average, Ordering::Relaxed);
    }

    /// Prepares the next segment once the active one is half full.
    fn prepare_next(&self) -> Result<bool> {
        let segments = self.segments();
        let Some(Segment::Plain(active)) = segments.entries.last().map(|entry| &entry.segment)
        else {
            return Ok(false);
        };
        if active.summary().used_bytes * 2 < active.capacity() || self.prepared.lock().is_some() {
            return Ok(false);
        }
        let disk = &*self.options.disk;
        let zeroed = self.demand.load(Ordering::Relaxed) <= BULK_GROUP_BYTES;
        let path = names::path_of(&self.dir, 0, FileKind::Unfinished);
        let capacity = self.next_capacity(active.capacity());
        let room = Room::reserve(disk, &path, capacity, zeroed)?;
        // The writer may have rotated meanwhile, so the number is settled under the lock that it
        // rotates under; what remains to be done takes two syncs.
        let mut prepared = self.prepared.lock();
        let Some(last) = self
            .segments()
            .entries
            .last()
            .map(|entry| entry.segment.number())
        else {
            return Ok(false);
        };
        *prepared = Some(room.into_segment(&self.access, &self.dir, last + 1)?);
        Ok(true)
    }

    fn write_sidecar(&self, segment: &PlainSegment) -> Result<()> {
        let path = names::path_of(&self.dir, segment.header.number, FileKind::Offsets);
        let bytes = sidecar::encode(
            segment.header,
            &segment.summary(),
            segment.index(&self.access)?,
        )?;
        files::replace(&*self.options.disk, &path, &bytes)?;
        let backed = Arc::new(segment.backed_by(path));
        self.change_segments(|segments| segments.replace(Segment::Plain(backed)));
        Ok(())
    }

    /// Replaces a segment by its compressed form without the changes that the snapshot has, once
    /// that is known to hold the same otherwise. Leaves it as it is if compressing does not go on.
    fn rewrite_segment(&self, segment: &Segment, goes_on: &dyn Fn() -> bool) -> Result<()> {
        let level = self.options.compression_level;
        let snapshot = self.snapshot_commit();
        let bytes = match segment {
            Segment::Plain(segment) => compress(segment, &self.access, level, snapshot, goes_on)?,
            Segment::Compressed(segment) => Some(shrink(segment, level)?),
        };
        let Some(bytes) = bytes else {
            return Ok(());
        };
        self.put_compressed(segment, &bytes, &|record| record.drop_changes(snapshot))?;
        let before = match segment {
            Segment::Plain(plain) => plain.summary().used_bytes,
            Segment::Compressed(_) => segment.file_bytes(),
        };
        let done = &self.done;
        done.compressions.fetch_add(1, Ordering::Relaxed);
        done.compressed_bytes.fetch_add(before, Ordering::Relaxed);
        Ok(())
    }

    /// Puts a compressed segment in the place of one that held the same but for `change`.
    pub(super) fn put_compressed(
        &self,
        segment: &Segment,
        bytes: &[u8],
        change: &RecordChange<'_>,
    ) -> Result<()> {
        let (disk, number) = (&*self.options.disk, segment.number());
        let path = names::path_of(&self.dir, number, FileKind::Compressed);
        let unfinished = files::unfinished(&path);
        drop(self.hold()?);
        files::write_unfinished(disk, &unfinished, bytes)?;
        let same =
            CompressedSegment::open(&unfinished, number, &self.access).and_then(|compressed| {
                let compressed = Segment::Compressed(Arc::new(compressed));
                holds_the_same(segment, &compressed, change)
            });
        if !matches!(same, Ok(true)) {
            files::remove(disk, &unfinished)?;
            same?;
            let what = "the compressed segment does not hold the same";
            let position = segment.summary().first_position;
            return Err(super::layout::damaged(&path, 0, position, what));
        }
        // Somebody else may open the log as soon as it is abandoned.
        let _held = self.hold()?;
        // Whoever found the segment before goes on reading it.
        segment.keep()?;
        files::finish(disk, &unfinished, &path)?;
        let compressed = CompressedSegment::open(&path, number, &self.access)?;
        let compressed = Segment::Compressed(Arc::new(compressed));
        self.change_segments(|segments| segments.replace(compressed));
        if let Segment::Plain(segment) = segment {
            files::remove(disk, &segment.path)?;
            files::remove(disk, &names::path_of(&self.dir, number, FileKind::Offsets))?;
            files::sync_parent(disk, &path)?;
        }
        Ok(())
    }
}

/// Whether dropping the changes of a segment, once the snapshot has all of them, saves enough.
fn is_droppable(segment: &Segment) -> bool {
    let summary = segment.summary();
    let share = match segment {
        Segment::Plain(_) => summary.used_bytes / DROPPED_SHARE_YOUNG,
        Segment::Compressed(_) => segment.file_bytes() / DROPPED_SHARE_MIN,
    };
    summary.droppable_bytes > share
}

/// Whether the snapshot has all changes of a segment and dropping them saves enough.
fn is_worth_dropping(segment: &Segment, snapshot: u64) -> bool {
    segment.summary().last_commit <= snapshot && is_droppable(segment)
}

/// Whether most of a plain segment goes with the next snapshot: compressing it would be for nothing.
fn awaits_snapshot(segment: &Segment, snapshot: u64) -> bool {
    segment.is_plain() && segment.summary().last_commit > snapshot && is_droppable(segment)
}

/// The oldest full segment without a sidecar.
fn without_sidecar(segments: &Segments) -> Option<Arc<PlainSegment>> {
    segments
        .full()
        .iter()
        .find_map(|entry| match &entry.segment {
            Segment::Plain(segment) if !segment.has_sidecar() => Some(Arc::clone(segment)),
            _ => None,
        })
}
