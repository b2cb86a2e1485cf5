//! Opening a log: which files there are, where the last one ends, and what a crash left behind.
//!
//! Every instant at which the power can fail leaves one of these, and each is legal or repaired:
//! an unfinished file (removed), a prepared segment without records (kept), a torn group at the end
//! of the last segment with records (cut off and saved aside), a sidecar that is missing (made
//! again), a compressed segment beside its plain one (the plain one is removed), a sidecar without
//! its segment (removed), an older snapshot beside the newest (removed). Everything else is damage
//! and refused.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use trefoil_core::{Error, Result};

use crate::LogEnd;
use crate::local::disk::Disk;
use crate::local::files;
use crate::local::options::LocalOptions;
use crate::local::reading::FileAccess;
use crate::local::reading::file::LogFile;

use super::Log;
use super::compressed::CompressedSegment;
use super::create::{NewSegment, Room};
use super::layout::{SEGMENT_HEADER_BYTES, SegmentHeader, damaged};
use super::mark;
use super::names::{self, FileKind, Files, Listed};
use super::plain::{PlainSegment, read_header};
use super::records::SegmentWalk;
use super::scan::{ExpectedRecord, KnownEnd, ScanStart, SegmentScan, Tail, scan};
use super::seal::{self, Seal};
use super::segments::{Segment, SegmentEntry, Segments};
use super::settle::{self, Cut};
use super::sidecar;
use super::snapshot::SnapshotFile;
use super::summary::Summary;
use super::writer::{LogWriter, SEGMENT_BYTES_LIMIT};

/// What opening found and did.
#[derive(Debug, Clone, Default)]
pub struct LogRecovery {
    /// The torn tail that was cut off.
    pub cut: Option<Cut>,
    /// How many segments had to be read.
    pub scanned_segments: u64,
}

/// A segment as it was found.
#[derive(Debug)]
struct FoundSegment {
    segment: Segment,
    tail: Tail,
    /// Where the last whole group is; empty if it is known to be durable.
    last_group: Range<usize>,
    /// What it holds before that group.
    before_last: Summary,
}

impl FoundSegment {
    /// A segment with nothing that a crash could still take.
    fn durable(segment: Segment) -> Self {
        Self {
            before_last: segment.summary(),
            segment,
            tail: Tail::Clean,
            last_group: 0..0,
        }
    }

    fn is_blank(&self) -> bool {
        self.tail == Tail::Clean && self.segment.summary().n_records == 0
    }

    /// Whether the segment may be written again.
    fn is_open(&self) -> bool {
        matches!(&self.segment, Segment::Plain(segment) if !segment.has_sidecar())
    }
}

struct Opening<'a> {
    dir: &'a Path,
    disk: &'a dyn Disk,
    access: &'a FileAccess,
    expected: ExpectedRecord,
    /// Where the log was closed, if a seal says that.
    sealed: Option<Seal>,
    recovery: LogRecovery,
}

/// Opens the log in `dir`, which exists. It is refused if it ends before `known_commit`.
pub(crate) fn open(
    dir: &Path,
    (options, access): (LocalOptions, FileAccess),
    known_commit: u64,
) -> Result<(Log, LogRecovery)> {
    let disk = Arc::clone(&options.disk);
    let first = ExpectedRecord {
        commit: 1,
        position: 1,
    };
    let mut opening = Opening {
        dir,
        disk: &*disk,
        access: &access,
        expected: first,
        sealed: None,
        recovery: LogRecovery::default(),
    };
    // Before anything is built on the names: a process that was killed may have left renames that
    // are not durable.
    files::sync_dir(&*disk, dir)?;
    let listed = names::list(dir)?;
    let seal = listed.is_sealed.then(|| Seal::open(&names::seal_path(dir)));
    opening.sealed = seal.as_ref().and_then(|seal| seal.as_ref().ok().copied());
    let mut found = opening.find_all(&listed)?;
    let end = end_of(&found);
    let snapshot = opening.find_snapshot(&listed, &found, end)?;
    let seal = check_seal(seal.transpose(), &found)?;
    opening.check_end(&found, (seal, end), known_commit)?;
    opening.cut_tail(&mut found)?;
    let is_sealed = seal.is_some_and(|seal| is_of(&seal, &found, end));
    if listed.is_sealed && !is_sealed {
        seal::remove(&*disk, dir)?;
    }
    let n_used = found.iter().take_while(|found| !found.is_blank()).count();
    let n_listed = match n_used.checked_sub(1) {
        Some(last) if found[last].is_open() => n_used,
        _ => n_used + 1,
    };
    let spare = opening.spare(&mut found, n_listed)?;
    if found.is_empty() {
        let new = opening.first_segment(&options)?;
        found.push(FoundSegment::durable(Segment::Plain(Arc::new(new.segment))));
    }
    let expected = opening.expected;
    let recovery = opening.recovery;
    let log = assemble(
        dir,
        (options, access),
        found,
        (expected, end),
        (spare, snapshot),
    )?;
    log.writer.lock().is_sealed = is_sealed;
    Ok((log, recovery))
}

/// Whether the seal is that of this log as it is. It is not if a program that knows no seals has
/// written to the log since.
fn is_of(seal: &Seal, found: &[FoundSegment], end: LogEnd) -> bool {
    let mut segments = found.iter().map(|found| &found.segment);
    let is_there = segments.any(|segment| match segment {
        Segment::Plain(plain) => {
            let place = (plain.header.number, plain.header.salt);
            place == (seal.segment, seal.salt) && plain.summary().used_bytes == seal.offset
        }
        Segment::Compressed(_) => false,
    });
    is_there && seal.end == end
}

/// Passes over a seal that is not valid if the log ends as one that was closed does; it is damage too if
/// there is more.
fn check_seal(opened: Result<Option<Seal>>, found: &[FoundSegment]) -> Result<Option<Seal>> {
    match opened {
        Err(Error::Damaged(damage)) if found.iter().all(|found| found.tail == Tail::Clean) => {
            tracing::warn!(%damage, "opening the log as after a crash");
            Ok(None)
        }
        other => other,
    }
}

fn end_of(found: &[FoundSegment]) -> LogEnd {
    let mut end = LogEnd::default();
    for summary in found.iter().map(|found| found.segment.summary()) {
        end.commit = end.commit.max(summary.last_commit);
        end.position = end.position.max(summary.last_position);
    }
    end
}

fn assemble(
    dir: &Path,
    (options, access): (LocalOptions, FileAccess),
    found: Vec<FoundSegment>,
    (expected, end): (ExpectedRecord, LogEnd),
    (spare, snapshot): (Option<NewSegment>, Option<Arc<SnapshotFile>>),
) -> Result<Log> {
    let last_group = found.last().map_or(0..0, |found| found.last_group.clone());
    let before_last = found.last().map(|found| found.before_last);
    let entries = found.into_iter().map(|FoundSegment { segment, .. }| {
        let summary = segment.summary();
        let is_used = summary.n_records > 0;
        SegmentEntry {
            first_commit: if is_used {
                summary.first_commit
            } else {
                expected.commit
            },
            first_position: if is_used {
                summary.first_position
            } else {
                expected.position
            },
            segment,
        }
    });
    let segments = Segments {
        entries: entries.collect(),
    };
    let Some(Segment::Plain(active)) = segments.entries.last().map(|entry| &entry.segment) else {
        return Err(damaged(
            dir,
            0,
            expected.position,
            "the last segment is missing",
        ));
    };
    let file = options
        .disk
        .open(&active.path)
        .map_err(|error| Error::io(format!("opening {}", active.path.display()), &error))?;
    settle::make_durable(&*options.disk, &file, active, last_group)?;
    let before_last = before_last.unwrap_or_default();
    let writer = LogWriter::new(Arc::clone(active), before_last, file, expected);
    Ok(Log::new(
        dir.to_owned(),
        (options, access),
        segments,
        writer,
        end,
        spare,
        snapshot,
    ))
}

impl Opening<'_> {
    /// Opens all segments in order and checks that each continues the one before.
    fn find_all(&mut self, listed: &Listed) -> Result<Vec<FoundSegment>> {
        for path in &listed.unfinished {
            files::remove(self.disk, path)?;
        }
        let mut all: Vec<FoundSegment> = Vec::new();
        for (&number, &files) in &listed.segments {
            if !files.plain && !files.compressed {
                files::remove(
                    self.disk,
                    &names::path_of(self.dir, number, FileKind::Offsets),
                )?;
                continue;
            }
            if number != all.len() as u64 + 1 {
                let missing = names::path_of(self.dir, all.len() as u64 + 1, FileKind::Plain);
                let what = "this segment is missing, but later ones are not";
                return Err(damaged(&missing, 0, self.expected.position, what));
            }
            if let Some(before) = all.last() {
                self.check_before(before, number, files)?;
            }
            all.push(self.find(number, files)?);
        }
        Ok(all)
    }

    /// Nothing was written to a segment before all of the one before it was durable.
    fn check_before(&self, before: &FoundSegment, number: u64, files: Files) -> Result<()> {
        let (offset, what) = match before.tail {
            Tail::Torn { start, .. } => (start, "a record is not valid, but later segments exist"),
            Tail::Clean if before.is_blank() => (0, "no records, but the next segment has some"),
            Tail::Clean => return Ok(()),
        };
        let path = names::path_of(self.dir, number, FileKind::Plain);
        let is_blank = files.plain && !files.offsets && !files.compressed && {
            let file = LogFile::open(&path, self.access)?;
            let mut walk = SegmentWalk::new(&file, 0)?;
            let end = walk.end();
            walk.end_of_data(SEGMENT_HEADER_BYTES, end)? == SEGMENT_HEADER_BYTES
        };
        match &before.segment {
            Segment::Plain(segment) if !is_blank => Err(damaged(
                &segment.path,
                offset as u64,
                self.expected.position,
                what,
            )),
            _ => Ok(()),
        }
    }

    fn find(&mut self, number: u64, files: Files) -> Result<FoundSegment> {
        let found = self.find_compressed(number, files)?;
        let found = match found {
            Some(found) => found,
            None => self.find_plain(number, files)?,
        };
        let summary = found.segment.summary();
        if summary.n_records > 0 {
            self.expected = ExpectedRecord {
                commit: summary.last_commit + 1,
                position: summary.next_position,
            };
        }
        Ok(found)
    }

    /// The compressed segment. If its plain one is still there it wins if all of it is valid.
    fn find_compressed(&mut self, number: u64, files: Files) -> Result<Option<FoundSegment>> {
        if !files.compressed {
            return Ok(None);
        }
        let path = names::path_of(self.dir, number, FileKind::Compressed);
        let plain = names::path_of(self.dir, number, FileKind::Plain);
        let offsets = names::path_of(self.dir, number, FileKind::Offsets);
        let opened = CompressedSegment::open(&path, number, self.access).and_then(|segment| {
            if files.plain {
                segment.replay(0, &mut |_| Ok(()))?;
            }
            Ok(segment)
        });
        let segment = match opened {
            Ok(segment) => segment,
            Err(_) if files.plain => {
                files::remove(self.disk, &path)?;
                files::sync_parent(self.disk, &path)?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.check_order(&path, &segment.header.summary)?;
        files::remove(self.disk, &plain)?;
        files::remove(self.disk, &offsets)?;
        let segment = Segment::Compressed(Arc::new(segment));
        Ok(Some(FoundSegment::durable(segment)))
    }

    /// The newest snapshot. Older ones, which it has replaced, are removed.
    fn find_snapshot(
        &self,
        listed: &Listed,
        found: &[FoundSegment],
        end: LogEnd,
    ) -> Result<Option<Arc<SnapshotFile>>> {
        let commit = listed.snapshots.last().copied().unwrap_or(0);
        let path = names::path_of(self.dir, commit, FileKind::Snapshot);
        let dropped = found
            .iter()
            .map(|found| found.segment.dropped_commit())
            .max();
        if let Some(dropped) = dropped.filter(|&dropped| dropped > commit) {
            let what =
                format!("the snapshot that has the changes up to commit {dropped} is missing");
            return Err(damaged(self.dir, 0, 0, what));
        }
        if commit > end.commit {
            let what = format!("the log ends at commit {}, before the snapshot", end.commit);
            return Err(damaged(&path, 0, end.position, what));
        }
        if listed.snapshots.is_empty() {
            return Ok(None);
        }
        let newest = SnapshotFile::open(self.dir, commit, self.access)?;
        for &older in listed.snapshots.range(..commit) {
            files::remove(
                self.disk,
                &names::path_of(self.dir, older, FileKind::Snapshot),
            )?;
        }
        Ok(Some(Arc::new(newest)))
    }

    /// Refuses a log that ends before a commit that it is known to have had.
    fn check_end(
        &self,
        found: &[FoundSegment],
        (seal, end): (Option<Seal>, LogEnd),
        known: u64,
    ) -> Result<()> {
        let unknown = (known > end.commit).then(|| {
            let last = end.commit;
            format!("the index knows of commit {known}, but the log ends at commit {last}")
        });
        let Some(what) = seal.and_then(|seal| seal.loss(end)).or(unknown) else {
            return Ok(());
        };
        let last = found.iter().rfind(|found| !found.is_blank());
        let (path, offset) = match last.map(|found| &found.segment) {
            Some(Segment::Plain(plain)) => (plain.path.clone(), plain.summary().used_bytes),
            _ => (self.dir.to_owned(), 0),
        };
        Err(damaged(&path, offset, self.expected.position, what))
    }

    fn check_order(&self, path: &Path, summary: &Summary) -> Result<()> {
        let ExpectedRecord { commit, position } = self.expected;
        if summary.first_commit == commit && summary.first_position >= position {
            return Ok(());
        }
        let what = format!(
            "the segment begins with commit {} at position {} where commit {commit} at position \
             {position} should follow",
            summary.first_commit, summary.first_position
        );
        Err(damaged(path, 0, position, what))
    }

    fn find_plain(&mut self, number: u64, files: Files) -> Result<FoundSegment> {
        let path = names::path_of(self.dir, number, FileKind::Plain);
        let file = LogFile::open(&path, self.access)?;
        let header = read_header(&path, &file, number)?;
        if files.offsets {
            let offsets = names::path_of(self.dir, number, FileKind::Offsets);
            if let Ok(sidecar) = sidecar::open(&offsets, header, self.access) {
                let summary = sidecar.summary;
                self.check_order(&path, &summary)?;
                let segment = PlainSegment::with_sidecar(path, header, file, summary, offsets);
                return Ok(FoundSegment::durable(Segment::Plain(Arc::new(segment))));
            }
        }
        self.recovery.scanned_segments += 1;
        let scanned = self.scan(&path, &file, header)?;
        let file = file.growing_from(scanned.summary.used_bytes, &path)?;
        let segment = PlainSegment::new(path, header, file, scanned.summary, scanned.index);
        let segment = Segment::Plain(Arc::new(segment));
        Ok(FoundSegment {
            segment,
            tail: scanned.tail,
            last_group: scanned.last_group,
            before_last: scanned.before_last,
        })
    }

    /// Reads a segment: from its mark on, if it has one that can be trusted.
    fn scan(&self, path: &Path, segment: &LogFile, header: SegmentHeader) -> Result<SegmentScan> {
        let known_end = KnownEnd {
            sealed: self.sealed.and_then(|seal| seal.end_in(header)),
            written: files::written_end(path)? as usize,
        };
        let read = |start| {
            let mut walk = SegmentWalk::new(segment, header.salt)?;
            scan(path, &mut walk, start, known_end)
        };
        let marked = mark::find(self.dir, header)
            .filter(|start| self.check_order(path, &start.summary).is_ok())
            .and_then(|start| read(start).ok())
            .filter(|scanned| !scanned.last_group.is_empty());
        match marked {
            Some(scanned) => Ok(scanned),
            None => read(ScanStart::beginning(self.expected)),
        }
    }

    /// Cuts a torn group off the end of the log.
    fn cut_tail(&mut self, found: &mut [FoundSegment]) -> Result<()> {
        for found in found {
            if let (Tail::Torn { start, end }, Segment::Plain(segment)) =
                (found.tail, &found.segment)
            {
                self.recovery.cut = Some(settle::cut(self.disk, self.dir, segment, start..end)?);
                found.tail = Tail::Clean;
            }
        }
        Ok(())
    }

    /// Takes the segments after the first `n_listed` away: the first of them is kept ready, others
    /// are removed.
    fn spare(&self, found: &mut Vec<FoundSegment>, n_listed: usize) -> Result<Option<NewSegment>> {
        let mut others = found.split_off(n_listed.min(found.len()));
        while others.len() > 1 {
            if let Some(FoundSegment {
                segment: Segment::Plain(segment),
                ..
            }) = others.pop()
            {
                files::remove(self.disk, &segment.path)?;
                files::sync_parent(self.disk, &segment.path)?;
            }
        }
        let Some(FoundSegment {
            segment: Segment::Plain(segment),
            ..
        }) = others.pop()
        else {
            return Ok(None);
        };
        let Some(segment) = Arc::into_inner(segment) else {
            return Ok(None);
        };
        let file = self
            .disk
            .open(&segment.path)
            .map_err(|error| Error::io(format!("opening {}", segment.path.display()), &error))?;
        Ok(Some(NewSegment { file, segment }))
    }

    fn first_segment(&self, options: &LocalOptions) -> Result<NewSegment> {
        let path = files::unfinished(&names::path_of(self.dir, 1, FileKind::Plain));
        let capacity = options.segment_bytes_min.min(SEGMENT_BYTES_LIMIT);
        let room = Room::reserve(self.disk, &path, capacity, true)?;
        room.into_segment(self.access, self.dir, 1)
    }
}
