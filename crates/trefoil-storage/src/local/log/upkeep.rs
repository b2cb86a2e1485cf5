//! The work that can wait: room ahead, sidecars of full segments, compression of old ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trefoil_core::{Error, Result};

use crate::Upkeep;

use super::Log;
use super::compress::compress;
use super::compressed::CompressedSegment;
use super::create::{Room, remove_file, sync_parent, write_file};
use super::names::{self, FileKind};
use super::plain::PlainSegment;
use super::segments::{Segment, Segments};
use super::sidecar;

/// Groups of more bytes than this on average are a bulk load: zeroing ahead would write everything
/// twice.
const BULK_GROUP_BYTES: u64 = 64 * 1024;
/// How many segments may wait to be compressed until the writer is less busy.
const WAITING_SEGMENTS_MAX: usize = 16;
/// The average takes one part in this many from the newest group.
const DEMAND_WEIGHT: u64 = 8;

impl Log {
    /// Does one step of work. See [`Storage::maintain`](crate::Storage::maintain).
    pub(crate) fn maintain(&self, is_busy: bool) -> Result<Upkeep> {
        match self.prepare_or_back() {
            Ok(true) => return Ok(Upkeep::More),
            Ok(false) => {}
            // Compressing a segment makes room.
            Err(Error::DiskFull(what)) if self.to_compress(false).1.is_none() => {
                return Err(Error::DiskFull(what));
            }
            Err(Error::DiskFull(_)) => {}
            Err(error) => return Err(error),
        }
        let (state, segment) = self.to_compress(is_busy);
        let Some(segment) = segment else {
            return Ok(state);
        };
        self.compress_or_skip(&segment)?;
        Ok(self.to_compress(is_busy).0)
    }

    /// Prepares the next segment, or writes the sidecar of a full one. Answers whether it did.
    fn prepare_or_back(&self) -> Result<bool> {
        if self.prepare_next()? {
            return Ok(true);
        }
        match without_sidecar(&self.segments()) {
            Some(segment) => self.write_sidecar(&segment).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether there is something to compress, and the oldest segment if it is due.
    fn to_compress(&self, is_busy: bool) -> (Upkeep, Option<Arc<PlainSegment>>) {
        let mut plain = compressible(&self.segments(), &self.skipped.lock());
        let n_kept = self.options.plain_segments;
        if plain.len() <= n_kept {
            (Upkeep::Done, None)
        } else if is_busy && plain.len() <= n_kept.saturating_add(WAITING_SEGMENTS_MAX) {
            (Upkeep::Waiting, None)
        } else {
            (Upkeep::More, Some(plain.swap_remove(0)))
        }
    }

    /// A damaged segment stays as it is until the log is opened again: the ones after it must not
    /// wait for it.
    fn compress_or_skip(&self, segment: &PlainSegment) -> Result<()> {
        match self.compress_segment(segment) {
            Err(Error::Damaged(damage)) => {
                tracing::warn!(%damage, "a segment is not compressed");
                self.skipped.lock().insert(segment.header.number);
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
        *prepared = Some(room.into_segment(disk, &self.dir, last + 1)?);
        Ok(true)
    }

    fn write_sidecar(&self, segment: &PlainSegment) -> Result<()> {
        let path = names::path_of(&self.dir, segment.header.number, FileKind::Offsets);
        let bytes = sidecar::encode(segment.header, &segment.summary(), segment.index()?);
        write_file(&*self.options.disk, &path, &bytes)?;
        let backed = Arc::new(segment.backed_by(path));
        self.change_segments(|segments| segments.replace(Segment::Plain(backed)));
        Ok(())
    }

    /// Replaces a plain segment by its compressed form, once that is known to hold the same.
    fn compress_segment(&self, segment: &PlainSegment) -> Result<()> {
        let disk = &*self.options.disk;
        let number = segment.header.number;
        let path = names::path_of(&self.dir, number, FileKind::Compressed);
        write_file(
            disk,
            &path,
            &compress(segment, self.options.compression_level)?,
        )?;
        let opened = CompressedSegment::open(&path, number).and_then(|compressed| {
            holds_the_same(segment, &compressed)?;
            Ok(compressed)
        });
        let compressed = match opened {
            Ok(compressed) => compressed,
            Err(error) => {
                remove_file(disk, &path)?;
                return Err(error);
            }
        };
        let compressed = Segment::Compressed(Arc::new(compressed));
        self.change_segments(|segments| segments.replace(compressed));
        remove_file(disk, &segment.path)?;
        remove_file(disk, &names::path_of(&self.dir, number, FileKind::Offsets))?;
        sync_parent(disk, &path)
    }
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

/// The full plain segments without those to skip, oldest first.
fn compressible(segments: &Segments, skipped: &BTreeSet<u64>) -> Vec<Arc<PlainSegment>> {
    let plain = segments
        .full()
        .iter()
        .filter_map(|entry| match &entry.segment {
            Segment::Plain(segment) => Some(segment),
            Segment::Compressed(_) => None,
        });
    let plain = plain.filter(|segment| !skipped.contains(&segment.header.number));
    plain.cloned().collect()
}

/// Reads both and compares every record.
fn holds_the_same(plain: &PlainSegment, compressed: &CompressedSegment) -> Result<()> {
    let mut n_same = 0;
    let mut headers = plain.headers();
    let mut expected = crate::Record::default();
    let wrong = || {
        let what = "the compressed segment does not hold the same";
        super::layout::damaged(&plain.path, 0, plain.summary().first_position, what)
    };
    compressed.replay(0, &mut |record| {
        let (offset, header) = headers.next().ok_or_else(wrong)??;
        let body = plain.body(offset, &header)?;
        super::layout::decode_record(&header, body, plain.header.salt, &mut expected)
            .filter(|()| *record == expected)
            .ok_or_else(wrong)?;
        n_same += 1;
        Ok(())
    })?;
    if n_same == plain.summary().n_records {
        Ok(())
    } else {
        Err(wrong())
    }
}
