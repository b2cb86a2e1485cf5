//! Reading every byte of a log and telling all that is wrong, not only the first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trefoil_core::{Error, Result};

use super::disk::RealDisk;
use super::files;
use super::lock::DirectoryLock;
use super::log::blocks::RecordPlace;
use super::log::compressed::CompressedSegment;
use super::log::index::{GrowingIndex, SegmentIndex};
use super::log::layout::{
    ALIGNMENT, ITEM_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader, items_of,
    short_checksum,
};
use super::log::names::{self, FileKind, Files};
use super::log::plain::read_header;
use super::log::records::SegmentWalk;
use super::log::scan::ExpectedRecord;
use super::log::seal::Seal;
use super::log::sidecar;
use super::log::snapshot::SnapshotFile;
use super::log::summary::Summary;
use super::reading::FileAccess;
use super::reading::file::LogFile;
use super::{LOG_DIR, LocalStorage};
use crate::file_cache::FileCache;
use crate::{LogEnd, Snapshot};

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// The offset in it.
    pub offset: u64,
    /// The position at or after which items are affected.
    pub position: u64,
    /// What is wrong.
    pub what: String,
}

/// What a log holds and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogReport {
    /// How many segments there are, prepared ones included.
    pub segments: u64,
    /// How many valid records there are.
    pub records: u64,
    /// How many commits they hold.
    pub commits: u64,
    /// How many items they hold.
    pub items: u64,
    /// What the snapshot is, if there is one.
    pub snapshot: Option<Snapshot>,
    /// How many bytes of files were read.
    pub bytes: u64,
    /// All that is wrong; empty for a sound log.
    pub findings: Vec<Finding>,
}

/// How far verifying is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// How many segments are done.
    pub segments_done: u64,
    /// How many there are.
    pub segments_total: u64,
}

impl LocalStorage {
    /// Checks every checksum and the order of the log in `dir`. It changes nothing and works on a
    /// directory that cannot be opened.
    pub fn verify_log(
        dir: impl AsRef<Path>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<LogReport> {
        let _lock = DirectoryLock::take(dir.as_ref())?;
        let dir = dir.as_ref().join(LOG_DIR);
        let listed = names::list(&dir)?;
        let first = ExpectedRecord {
            commit: 1,
            position: 1,
        };
        let mut verifier = Verifier {
            access: file_access(),
            report: LogReport::default(),
            expected: first,
            blank: None,
            dropped_commit: 0,
        };
        let segments_total = listed.segments.len() as u64;
        let mut next = 1;
        for (segments_done, (&number, &files)) in (0..).zip(&listed.segments) {
            progress(Progress {
                segments_done,
                segments_total,
            });
            for missing in next..number {
                let path = names::path_of(&dir, missing, FileKind::Plain);
                verifier.find(&path, 0, "this segment is missing");
            }
            next = number + 1;
            verifier.segment(&dir, number, files);
        }
        verifier.snapshot(&dir, listed.snapshots.last().copied());
        if listed.is_sealed {
            verifier.seal(&names::seal_path(&dir));
        }
        progress(Progress {
            segments_done: segments_total,
            segments_total,
        });
        Ok(verifier.report)
    }
}

impl LocalStorage {
    /// Removes the sidecars of the log in `dir` that do not agree with their segments: they are made
    /// again. Reads the whole log.
    pub fn remove_damaged_sidecars(dir: impl AsRef<Path>) -> Result<()> {
        let report = Self::verify_log(dir, &mut |_| {})?;
        let found = report.findings.into_iter().map(|finding| finding.file);
        for file in found.filter(|file| names::is_sidecar(file)) {
            tracing::warn!(file = %file.display(), "removing a damaged sidecar");
            files::remove(&RealDisk, &file)?;
            files::sync_parent(&RealDisk, &file)?;
        }
        Ok(())
    }

    /// Reads the snapshot of the namespace in `dir`, if there is one, and checks every checksum.
    pub fn verify_snapshot(dir: impl AsRef<Path>) -> Result<()> {
        let _lock = DirectoryLock::take(dir.as_ref())?;
        let dir = dir.as_ref().join(LOG_DIR);
        match names::list(&dir)?.snapshots.last() {
            Some(&commit) => {
                SnapshotFile::open(&dir, commit, &file_access())?.read(&mut |_, _| Ok(()))
            }
            None => Ok(()),
        }
    }
}

/// Files are read in order, for which no cache is needed.
fn file_access() -> FileAccess {
    FileAccess {
        disk: Arc::new(RealDisk),
        cache: Arc::new(FileCache::new(0)),
    }
}

struct Verifier {
    access: FileAccess,
    report: LogReport,
    expected: ExpectedRecord,
    /// A segment without records: no records may follow.
    blank: Option<PathBuf>,
    /// The changes of commits up to this one were dropped.
    dropped_commit: u64,
}

impl Verifier {
    fn find(&mut self, file: &Path, offset: u64, what: impl Into<String>) {
        let (file, position) = (file.to_owned(), self.expected.position);
        self.report.findings.push(Finding {
            file,
            offset,
            position,
            what: what.into(),
        });
    }

    fn find_error(&mut self, file: &Path, error: Error) {
        match error {
            Error::Damaged(damage) => self.report.findings.push(Finding {
                file: damage.file,
                offset: damage.offset,
                position: damage.position,
                what: damage.what,
            }),
            other => self.find(file, 0, other.to_string()),
        }
    }

    fn segment(&mut self, dir: &Path, number: u64, files: Files) {
        self.report.segments += 1;
        let before = self.expected;
        if files.compressed {
            let path = names::path_of(dir, number, FileKind::Compressed);
            if let Err(error) = self.compressed(&path, number) {
                self.find_error(&path, error);
            }
        }
        if files.plain {
            if files.compressed {
                // Both are there after a crash; each must continue the log.
                self.expected = before;
            }
            let path = names::path_of(dir, number, FileKind::Plain);
            let offsets = names::path_of(dir, number, FileKind::Offsets);
            let offsets = files.offsets.then_some(offsets);
            if let Err(error) = self.plain(&path, number, offsets.as_deref()) {
                self.find_error(&path, error);
            }
        }
    }

    /// Checks the newest snapshot and that it has what the log has dropped.
    fn snapshot(&mut self, dir: &Path, commit: Option<u64>) {
        let (path, last) = (
            names::path_of(dir, commit.unwrap_or(0), FileKind::Snapshot),
            self.expected.commit - 1,
        );
        if self.dropped_commit > commit.unwrap_or(0) {
            let dropped = self.dropped_commit;
            self.find(
                &path,
                0,
                format!("the snapshot that has the changes up to commit {dropped} is missing"),
            );
        }
        let Some(commit) = commit else {
            return;
        };
        if commit > last {
            self.find(
                &path,
                0,
                format!("the log ends at commit {last}, before the snapshot"),
            );
        }
        let read = SnapshotFile::open(dir, commit, &self.access).and_then(|snapshot| {
            self.report.bytes += snapshot.file_bytes();
            self.report.snapshot = Some(snapshot.info());
            snapshot.read(&mut |_, _| Ok(()))
        });
        if let Err(error) = read {
            self.find_error(&path, error);
        }
    }

    /// Checks that the log has all that it had when it was closed.
    fn seal(&mut self, path: &Path) {
        let end = LogEnd {
            commit: self.expected.commit - 1,
            position: self.expected.position - 1,
        };
        match Seal::open(path) {
            Ok(seal) => {
                if let Some(what) = seal.loss(end) {
                    self.find(path, 0, what);
                }
            }
            Err(error) => self.find_error(path, error),
        }
    }

    fn plain(&mut self, path: &Path, number: u64, offsets: Option<&Path>) -> Result<()> {
        let file = LogFile::open(path, &self.access)?;
        self.report.bytes += file.length();
        let header = read_header(path, &file, number)?;
        let mut summary = Summary {
            used_bytes: SEGMENT_HEADER_BYTES as u64,
            ..Summary::default()
        };
        let index = GrowingIndex::default();
        let mut walk = SegmentWalk::new(&file, header.salt)?;
        let mut offset = SEGMENT_HEADER_BYTES;
        let end = walk.end_of_data(SEGMENT_HEADER_BYTES, walk.end())?;
        let mut continues = None;
        while offset < end {
            let Some(record) = walk.record(offset)? else {
                self.find(path, offset as u64, "bytes that are not a valid record");
                let Some((next, record)) = walk.find(offset + ALIGNMENT, end, |_| true)? else {
                    break;
                };
                // What was lost is reported once; the order is checked from here on.
                self.expected = ExpectedRecord {
                    commit: record.first_commit,
                    position: record.first_position,
                };
                continues = Some(record.group_start);
                offset = next;
                continue;
            };
            let group_start = continues.unwrap_or(offset as u64);
            if record.group_start != group_start {
                self.find(path, offset as u64, "the record belongs to another group");
            }
            continues = record.continues.then_some(record.group_start);
            self.record(path, &mut walk, header, offset, &record, &index)?;
            offset = record.end(offset);
            summary.add(&record, offset as u64);
        }
        if continues.is_some() {
            self.find(path, offset as u64, "the last group is not complete");
        }
        self.note_blank(path, summary.n_records == 0);
        match offsets {
            Some(offsets) => self.sidecar(offsets, header, &summary, index),
            None => Ok(()),
        }
    }

    fn note_blank(&mut self, path: &Path, is_blank: bool) {
        match (self.blank.take(), is_blank) {
            (None, true) => self.blank = Some(path.to_owned()),
            (Some(blank), true) => self.blank = Some(blank),
            (Some(blank), false) => self.find(&blank, 0, "no records, but later segments have"),
            (None, false) => {}
        }
    }

    fn record(
        &mut self,
        path: &Path,
        walk: &mut SegmentWalk<'_>,
        header: SegmentHeader,
        offset: usize,
        record: &RecordHeader,
        index: &GrowingIndex,
    ) -> Result<()> {
        if let Some(what) = self.expected.follow(record) {
            self.find(path, offset as u64, what);
        }
        self.report.records += 1;
        self.report.commits += u64::from(record.n_commits);
        let Some(body) = walk.body(offset, record)? else {
            return Ok(());
        };
        let start = record.end(offset) - body.len();
        let (mut offsets, mut length) = (Vec::new(), 0);
        for (position, (at, item, bytes)) in
            (record.first_position..).zip(items_of(record, body, header.salt))
        {
            if short_checksum(bytes, header.salt.wrapping_add(position)) != item.check {
                self.find(path, (start + at) as u64, "an item's bytes are not valid");
            }
            offsets.push((start + at) as u64);
            length = at + ITEM_HEADER_BYTES + bytes.len();
        }
        self.report.items += offsets.len() as u64;
        let length = (length + record.end_bytes()).next_multiple_of(ALIGNMENT);
        if offsets.len() != record.n_items as usize || length != body.len() {
            self.find(
                path,
                offset as u64,
                "the record does not hold what its header says",
            );
        }
        index.push(record.first_position, offsets.into_iter());
        Ok(())
    }

    fn sidecar(
        &mut self,
        path: &Path,
        header: SegmentHeader,
        summary: &Summary,
        index: GrowingIndex,
    ) -> Result<()> {
        let sidecar = sidecar::open(path, header, &self.access)?;
        let (table, _) = SegmentIndex::Growing(Box::new(index)).encode()?;
        self.report.bytes += table.len() as u64;
        if sidecar.summary != *summary || sidecar.table()?.as_ref() != Some(&table) {
            self.find(path, 0, "the sidecar does not agree with its segment");
        }
        Ok(())
    }

    fn compressed(&mut self, path: &Path, number: u64) -> Result<()> {
        let segment = CompressedSegment::open(path, number, &self.access)?;
        let summary = segment.header.summary;
        self.report.bytes += segment.file.length();
        self.dropped_commit = self.dropped_commit.max(segment.header.dropped_commit);
        self.note_blank(path, false);
        let items = segment.check_items(&mut |error| self.find_error(path, error));
        self.report.items += items.as_ref().copied().unwrap_or(0);
        let (mut n_records, mut n_items) = (0, 0);
        let walked = segment.walk(0, &mut |place| {
            let RecordPlace {
                first_commit,
                first_position,
                ..
            } = place;
            let ExpectedRecord { commit, position } = self.expected;
            if first_commit != commit || first_position < position {
                self.find(path, 0, format!("commit {first_commit} is out of order"));
            }
            self.expected = ExpectedRecord {
                commit: first_commit + u64::from(place.n_commits),
                position: first_position + place.n_items as u64,
            };
            self.report.commits += u64::from(place.n_commits);
            n_records += 1;
            n_items += place.n_items;
            Ok(())
        });
        self.report.records += u64::from(n_records);
        let held = (n_records, n_items) == (summary.n_records, summary.n_items as usize);
        if walked.is_ok() && !held {
            self.find(path, 0, "the segment does not hold what its header says");
        }
        self.expected = ExpectedRecord {
            commit: summary.last_commit + 1,
            position: summary.next_position,
        };
        walked.and(items.map(|_| ()))
    }
}
