//! Putting the parts of a backup together again: groups of records for a log, and entries for a
//! snapshot.

use trefoil_core::{Error, Result};
use trefoil_storage::{Group, GroupLimits, Record, VisitEntry};

use super::listing::{NamespaceBackup, PartReference};
use super::part::{LoggedCommit, damaged_part, take_changes, take_commit, take_entry};
use super::restore::FetchPart;
use crate::write::put_state;

/// Hands the log to `append`, group by group, with the changes after the snapshot. The last parts may
/// reach beyond the commit at which the backup ends.
pub(super) fn assemble_log(
    backup: &NamespaceBackup,
    fetch: &mut FetchPart<'_>,
    limits: GroupLimits,
    append: &mut dyn FnMut(&Group) -> Result<()>,
) -> Result<()> {
    let mut changes = ChangesReader::new(backup)?;
    let mut groups = GroupBuilder::new(limits);
    for reference in &backup.log {
        let content = fetch(reference)?;
        let wrong = || damaged_part(&reference.hash, "this is no part of a log");
        if reference.first != groups.next_commit {
            return Err(wrong());
        }
        let mut rest = content.as_slice();
        while !rest.is_empty() && groups.next_commit <= backup.commit {
            let commit = take_commit(&mut rest).ok_or_else(wrong)?;
            groups.begin(&commit).ok_or_else(wrong)?;
            changes.take(groups.next_commit, fetch, &mut |bytes| groups.change(bytes))?;
            groups.end();
            if groups.is_full() {
                append(&groups.take())?;
            }
        }
        if groups.next_commit != reference.last.min(backup.commit).saturating_add(1) {
            return Err(wrong());
        }
    }
    if !groups.group.records.is_empty() {
        append(&groups.take())?;
    }
    changes.finish()?;
    let (found, expected) = (groups.next_commit - 1, backup.commit);
    match found == expected && groups.next_position == backup.position.saturating_add(1) {
        true => Ok(()),
        false => Err(not_whole(&format!(
            "ends at commit {found}, not at {expected}"
        ))),
    }
}

/// Hands the entries of the snapshot to `visit`, in order.
pub(super) fn assemble_state(
    backup: &NamespaceBackup,
    fetch: &mut FetchPart<'_>,
    visit: &mut VisitEntry<'_>,
) -> Result<()> {
    let Some(state) = &backup.state else {
        return Ok(());
    };
    let mut n_entries = 0;
    let mut last_key: Option<Vec<u8>> = None;
    for reference in &state.parts {
        let content = fetch(reference)?;
        let wrong = || damaged_part(&reference.hash, "this is no part of a snapshot");
        let mut rest = content.as_slice();
        while !rest.is_empty() {
            let (key, value) = take_entry(&mut rest).ok_or_else(wrong)?;
            if last_key.as_deref().is_some_and(|last| last >= key) {
                return Err(wrong());
            }
            visit(key, value)?;
            let last = last_key.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            n_entries += 1;
        }
        if n_entries != reference.last {
            return Err(wrong());
        }
    }
    match n_entries == state.entries {
        true => Ok(()),
        false => Err(not_whole(&format!(
            "has {n_entries} of {} entries",
            state.entries
        ))),
    }
}

fn not_whole(what: &str) -> Error {
    damaged_part("the list of the parts", format!("the backup {what}"))
}

/// The changes of a backup, read along with the log.
struct ChangesReader<'a> {
    parts: std::slice::Iter<'a, PartReference>,
    /// The commit of which the snapshot is.
    snapshot: u64,
    /// Whether the last part reaches beyond the commit at which the backup ends.
    is_cut: bool,
    content: Vec<u8>,
    offset: usize,
    hash: &'a str,
    /// The commit of which changes came last.
    last: u64,
}

impl<'a> ChangesReader<'a> {
    fn new(backup: &'a NamespaceBackup) -> Result<Self> {
        let snapshot = backup.state.as_ref().map_or(0, |state| state.commit);
        let mut parts = backup.changes.iter();
        let end = parts.try_fold(snapshot, |end, part| {
            (part.first == end + 1 && part.last > end).then_some(part.last)
        });
        let is_cut = end.is_some_and(|end| end > backup.commit);
        if end != Some(backup.commit) && !is_cut {
            return Err(not_whole("lacks changes of the state"));
        }
        Ok(Self {
            parts: backup.changes.iter(),
            snapshot,
            is_cut,
            content: Vec::new(),
            offset: 0,
            hash: "",
            last: snapshot,
        })
    }

    /// Hands the changes of this commit to `visit`.
    fn take(
        &mut self,
        commit: u64,
        fetch: &mut FetchPart<'_>,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        loop {
            if self.offset == self.content.len() {
                let Some(next) = self.parts.as_slice().first() else {
                    return Ok(());
                };
                if next.first > commit {
                    return Ok(());
                }
                self.parts.next();
                (self.content, self.offset) = (fetch(next)?, 0);
                self.hash = &next.hash;
                continue;
            }
            let wrong = || damaged_part(self.hash, "these are no changes of a state");
            let mut rest = &self.content[self.offset..];
            let (of, bytes) = take_changes(&mut rest).ok_or_else(wrong)?;
            if of > commit {
                return Ok(());
            }
            // A part may begin before the snapshot, which has what it says of the commits up to there.
            if of > self.snapshot {
                if of < commit || of < self.last {
                    return Err(wrong());
                }
                visit(bytes);
                self.last = of;
            }
            self.offset = self.content.len() - rest.len();
        }
    }

    /// All of them were of commits that there are, unless the backup was cut.
    fn finish(mut self) -> Result<()> {
        let is_read = self.is_cut || self.offset == self.content.len();
        match is_read && self.parts.next().is_none() {
            true => Ok(()),
            false => Err(not_whole("has changes of commits that it does not have")),
        }
    }
}

/// Makes groups of commits: those whose positions follow each other share a record.
struct GroupBuilder {
    limits: GroupLimits,
    group: Group,
    bytes: usize,
    n_commits: usize,
    next_commit: u64,
    next_position: u64,
}

impl GroupBuilder {
    fn new(limits: GroupLimits) -> Self {
        Self {
            limits,
            group: Group::default(),
            bytes: 0,
            n_commits: 0,
            next_commit: 1,
            next_position: 1,
        }
    }

    /// Adds a commit; `None` if it cannot follow.
    fn begin(&mut self, commit: &LoggedCommit<'_>) -> Option<()> {
        let LoggedCommit {
            first_position,
            events,
        } = commit;
        if *first_position < self.next_position {
            return None;
        }
        let last = self.group.records.last();
        if last.is_none_or(|last| last.end_position() != *first_position) {
            self.group.records.push(Record {
                first_commit: self.next_commit,
                first_position: *first_position,
                ..Record::default()
            });
        }
        let record = self.group.records.last_mut()?;
        record.n_commits += 1;
        trefoil_core::put_varint(&mut record.commits, events.len() as u64);
        for event in events {
            match event {
                None => record.items.push_dropped(),
                Some((label, bytes)) => {
                    record.items.push(*label, bytes);
                    self.bytes += bytes.len();
                }
            }
        }
        // A commit without events says where one would have been, and takes no position.
        if !events.is_empty() {
            self.next_position = record.end_position();
        }
        Some(())
    }

    /// Adds what the commit changed of the state.
    fn change(&mut self, changes: &[u8]) {
        if let Some(record) = self.group.records.last_mut() {
            let index = self.next_commit - record.first_commit;
            put_state(&mut record.changes, index, changes);
            self.bytes += changes.len();
        }
    }

    fn end(&mut self) {
        self.next_commit += 1;
        self.n_commits += 1;
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.limits.bytes || self.n_commits >= self.limits.commits
    }

    fn take(&mut self) -> Group {
        (self.bytes, self.n_commits) = (0, 0);
        std::mem::take(&mut self.group)
    }
}
