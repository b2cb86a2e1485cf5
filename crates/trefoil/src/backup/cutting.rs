//! Cutting a log where an earlier backup was cut: if an event has changed, the parts behind it would have other
//! ends, and none of them the hash that it had.

use std::collections::VecDeque;

use trefoil_core::Result;

use super::listing::NamespaceBackup;
use super::part::{BackupPart, PartKind, damaged_part, take_commit};
use super::source::BackupHead;

/// Cuts parts of a log, as they are read, where those of an earlier backup end. Parts of other kinds are not
/// its business.
#[derive(Debug, Default)]
pub struct LogCutter {
    /// Where parts of the earlier one end, as far as that is yet to come.
    ends: VecDeque<u64>,
    /// What has not reached such an end.
    held: Option<BackupPart>,
}

impl LogCutter {
    /// Cuts the log of a backup that begins with this head as that of the one `before`, if both are of the same
    /// namespace. The last part of that may not be full, so it is not cut there.
    pub fn new(head: &BackupHead, before: Option<&NamespaceBackup>) -> Self {
        let is_same = |before: &&NamespaceBackup| before.origin == head.origin;
        let log = before.filter(is_same).map_or(&[][..], |one| &one.log);
        let full = log.split_last().map_or(&[][..], |(_, full)| full);
        let ends = full.iter().map(|part| part.last);
        Self {
            ends: ends.filter(|last| *last > head.after).collect(),
            held: None,
        }
    }

    /// Takes the next part and returns what is cut of it and of those before.
    pub fn add(&mut self, part: BackupPart) -> Result<Vec<BackupPart>> {
        let mut held = match self.held.take() {
            None => part,
            Some(mut held) => {
                held.last = part.last;
                held.bytes.extend(part.bytes);
                held
            }
        };
        let mut cut = Vec::new();
        while let Some(end) = self.ends.front().copied() {
            if held.last < end {
                self.held = Some(held);
                return Ok(cut);
            }
            self.ends.pop_front();
            if end == held.last {
                cut.push(held);
                return Ok(cut);
            }
            let rest = split(&mut held, end)?;
            cut.push(std::mem::replace(&mut held, rest));
        }
        cut.push(held);
        Ok(cut)
    }

    /// Returns what is left when the last part was taken.
    pub fn finish(&mut self) -> Option<BackupPart> {
        self.held.take()
    }
}

/// Cuts a part after a commit, and returns the rest.
fn split(part: &mut BackupPart, end: u64) -> Result<BackupPart> {
    let mut rest = part.bytes.as_slice();
    for _ in part.first..=end {
        let wrong = || damaged_part("a part that was read", "this is no part of a log");
        take_commit(&mut rest).ok_or_else(wrong)?;
    }
    let n_bytes = part.bytes.len() - rest.len();
    let rest = BackupPart {
        kind: PartKind::Log,
        first: end + 1,
        last: part.last,
        bytes: part.bytes.split_off(n_bytes),
    };
    part.last = end;
    Ok(rest)
}
