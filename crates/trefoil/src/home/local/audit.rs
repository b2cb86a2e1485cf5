//! The audit log in a directory: lines of text in files of bounded size.
//!
//! ```text
//! _meta/audit-<number of the first record>.log
//!   <number> <checksum> <record>
//! ```
//!
//! A line is on disk before it counts. What a crash leaves of an unfinished line is cut off; any other line
//! that is not what its checksum says is damage.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use trefoil_core::{Damage, Error, Result};
use trefoil_storage::local::disk::RealDisk;
use trefoil_storage::local::{files, private};
use xxhash_rust::xxh3::xxh3_64;

use super::{entries, failed, read_if_there};

const PREFIX: &str = "audit-";
const SUFFIX: &str = ".log";

/// A file takes no more lines when it has this many bytes.
const FILE_BYTES: u64 = 1024 * 1024;
/// So many files are kept, the newest ones.
const FILES_KEPT: usize = 16;

/// The files of the audit log.
#[derive(Debug)]
pub(super) struct AuditFiles {
    directory: PathBuf,
    file_bytes: u64,
    /// Where the next line goes; `None` if that is not known.
    end: Mutex<Option<AuditEnd>>,
}

#[derive(Debug)]
struct AuditEnd {
    /// The last file; `None` if there is none.
    file: Option<PathBuf>,
    bytes: u64,
    /// The number of the next record.
    next: u64,
}

/// A record, and its number.
type NumberedRecord = (u64, String);

impl AuditFiles {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            file_bytes: FILE_BYTES,
            end: Mutex::default(),
        }
    }

    /// Appends a record. Returns its number.
    pub(super) fn append(&self, record: &str) -> Result<u64> {
        let mut end = self.end.lock();
        // After an error it is looked for again: nobody knows what of the line is there.
        let found = match end.take() {
            Some(found) => found,
            None => self.find_end()?,
        };
        let number = found.next;
        *end = Some(self.write(found, record)?);
        Ok(number)
    }

    fn write(&self, mut end: AuditEnd, record: &str) -> Result<AuditEnd> {
        let line = line(end.next, record);
        let path = match end.file.take().filter(|_| end.bytes < self.file_bytes) {
            Some(path) => path,
            None => {
                end.bytes = 0;
                self.directory.join(name(end.next))
            }
        };
        let is_new = end.bytes == 0;
        let opened = private::file_options()
            .append(true)
            .create(true)
            .open(&path);
        let mut file = opened.map_err(|error| failed("opening", &path, &error))?;
        let written = file
            .write_all(line.as_bytes())
            .and_then(|()| file.sync_data());
        written.map_err(|error| failed("writing", &path, &error))?;
        if is_new {
            files::sync_dir(&RealDisk, &self.directory)?;
            self.remove_old()?;
        }
        Ok(AuditEnd {
            file: Some(path),
            bytes: end.bytes + line.len() as u64,
            next: end.next + 1,
        })
    }

    /// Removes the oldest files if there are too many.
    fn remove_old(&self) -> Result<()> {
        let files = self.files()?;
        let n_old = files.len().saturating_sub(FILES_KEPT);
        { files.iter().take(n_old) }.try_for_each(|(_, path)| files::remove(&RealDisk, path))
    }

    /// Finds where the log ends, and cuts off a line that was not finished.
    fn find_end(&self) -> Result<AuditEnd> {
        let Some((first, path)) = self.files()?.pop() else {
            return Ok(AuditEnd {
                file: None,
                bytes: 0,
                next: 1,
            });
        };
        let text = read_if_there(&path)?.unwrap_or_default();
        let whole = whole_lines(&text);
        if whole.len() < text.len() {
            tracing::warn!(path = %path.display(), "cutting off an unfinished line");
            let cut = private::file_options().write(true).open(&path);
            let cut = cut.and_then(|file| {
                file.set_len(whole.len() as u64)?;
                file.sync_all()
            });
            cut.map_err(|error| failed("cutting", &path, &error))?;
        }
        let last = parse(&path, whole)?.pop();
        Ok(AuditEnd {
            bytes: whole.len() as u64,
            file: Some(path),
            next: last.map_or(first, |(number, _)| number + 1),
        })
    }

    /// Returns the numbers of their first records and the paths of all files, the oldest first.
    fn files(&self) -> Result<Vec<(u64, PathBuf)>> {
        let file = |name: String| {
            let number = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
            Some((number.parse().ok()?, self.directory.join(&name)))
        };
        let names = entries::names_in(&self.directory)?.into_iter();
        let mut files: Vec<(u64, PathBuf)> = names.filter_map(file).collect();
        files.sort();
        Ok(files)
    }

    /// Returns records with lower numbers than `before`, the newest first.
    pub(super) fn read(&self, before: u64, limit: usize) -> Result<Vec<NumberedRecord>> {
        // No line is being written meanwhile.
        let _end = self.end.lock();
        let mut found = Vec::new();
        let files = self.files()?.into_iter().rev();
        for (_, path) in files.filter(|(first, _)| *first < before) {
            let text = read_if_there(&path)?.unwrap_or_default();
            let records = parse(&path, whole_lines(&text))?.into_iter().rev();
            let wanted = records.filter(|(number, _)| *number < before);
            found.extend(wanted.take(limit - found.len()));
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }
}

fn name(first: u64) -> String {
    format!("{PREFIX}{first:016}{SUFFIX}")
}

fn line(number: u64, record: &str) -> String {
    let checked = format!("{number} {record}");
    format!("{number} {:016x} {record}\n", xxh3_64(checked.as_bytes()))
}

/// Returns the text up to its last end of a line.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte == b'\n');
    &text[..end.map_or(0, |end| end + 1)]
}

/// Returns the records of whole lines.
fn parse(path: &Path, text: &[u8]) -> Result<Vec<NumberedRecord>> {
    let mut offset = 0;
    let mut records = Vec::new();
    for bytes in text.split_inclusive(|byte| *byte == b'\n') {
        let record = std::str::from_utf8(bytes).ok().and_then(parse_line);
        records.push(record.ok_or_else(|| damaged(path, offset))?);
        offset += bytes.len() as u64;
    }
    Ok(records)
}

fn parse_line(text: &str) -> Option<NumberedRecord> {
    let (number, rest) = text.split_once(' ')?;
    let (_, record) = rest.split_once(' ')?;
    let (number, record) = (number.parse().ok()?, record.trim_end_matches('\n'));
    (line(number, record) == text).then(|| (number, record.to_owned()))
}

fn damaged(path: &Path, offset: u64) -> Error {
    Error::Damaged(Box::new(Damage {
        file: path.to_owned(),
        offset,
        position: 0,
        what: "line of the audit log".to_owned(),
        help: "restore this file from a backup, or move it away to do without what it says".into(),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn numbers(files: &AuditFiles, before: u64, limit: usize) -> Vec<u64> {
        let found = files.read(before, limit).unwrap();
        for (number, record) in &found {
            assert_eq!(record, &format!("record {number}"));
        }
        found.into_iter().map(|(number, _)| number).collect()
    }

    fn files_of(directory: &Path, n_records: u64) -> AuditFiles {
        let mut files = AuditFiles::new(directory);
        files.file_bytes = 100;
        for number in 1..=n_records {
            assert_eq!(files.append(&format!("record {number}")).unwrap(), number);
        }
        files
    }

    #[test]
    fn the_newest_files_are_kept_and_read_across() {
        let directory = tempfile::tempdir().unwrap();
        let files = files_of(directory.path(), 100);
        // Three lines of about 35 bytes fill a file.
        assert_eq!(files.files().unwrap().len(), FILES_KEPT);
        assert_eq!(numbers(&files, u64::MAX, 5), [100, 99, 98, 97, 96]);
        assert_eq!(numbers(&files, 98, 2), [97, 96]);
        let all = numbers(&files, u64::MAX, 1000);
        assert!(all.len() >= 3 * (FILES_KEPT - 1) && all.len() < 100);
        let again = AuditFiles::new(directory.path());
        assert_eq!(again.append("record 101").unwrap(), 101);
    }

    #[test]
    fn an_unfinished_line_is_cut_off_and_damage_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let files = files_of(directory.path(), 2);
        let (_, path) = files.files().unwrap().remove(0);
        let whole = fs::read(&path).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for end in first..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let files = AuditFiles::new(directory.path());
            assert_eq!(numbers(&files, u64::MAX, 9), [1]);
            assert_eq!(files.append("record 2").unwrap(), 2);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        for place in 0..whole.len() - 1 {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            fs::write(&path, &changed).unwrap();
            let files = AuditFiles::new(directory.path());
            let read = files.read(u64::MAX, 9);
            assert!(matches!(read, Err(Error::Damaged(_))), "{place}: {read:?}");
            assert!(files.append("more").is_err());
        }
    }
}
