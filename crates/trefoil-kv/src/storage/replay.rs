//! Reading the records of the log in order.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use trefoil_core::{Direction, Result};
use trefoil_storage::Record;

use crate::contract::KvRead;

use super::block::ItemBlock;
use super::errors::{damaged, damaged_log, failed};
use super::keys::{Tag, number_of};
use super::log::KvLog;
use super::record::{ChangesPlace, StoredRecord};
use super::store::{OpenStore, PAGE_BYTES, next_key};

/// Reads values of one kind in the order of their keys.
struct LogWalk<'a> {
    store: &'a OpenStore,
    moment: &'a dyn KvRead,
    from: Bytes,
    to: Bytes,
    page: VecDeque<(Bytes, Bytes)>,
    has_more: bool,
}

impl<'a> LogWalk<'a> {
    fn new(store: &'a OpenStore, moment: &'a dyn KvRead, tag: Tag, numbers: Range<u64>) -> Self {
        Self {
            store,
            moment,
            from: store.keys.numbered(tag, numbers.start),
            to: store.keys.numbered(tag, numbers.end),
            page: VecDeque::new(),
            has_more: true,
        }
    }

    /// Begins with the last value whose number is not higher than that of `from`, if there is one.
    fn begin_at_or_before(mut self, tag: Tag) -> Result<Self> {
        let first = self.store.keys.numbered(tag, 0);
        let floor = self.moment.floor(&[(&first, &self.from)]);
        let floor = floor.map_err(failed("reading the log"))?;
        if let Some((key, _)) = floor.into_iter().flatten().next() {
            self.from = key;
        }
        Ok(self)
    }

    /// Returns the number of the next value, if there is one.
    fn peek(&mut self) -> Result<Option<u64>> {
        if self.page.is_empty() && self.has_more {
            let page =
                self.moment
                    .scan(&self.from, &self.to, Direction::Forwards, PAGE_BYTES, false);
            let page = page.map_err(failed("reading the log"))?;
            if let Some((last, _)) = page.entries.last() {
                self.from = next_key(last);
            }
            self.has_more = page.has_more;
            self.page = page.entries.into();
        }
        Ok(self.page.front().map(|(key, _)| number_of(key)))
    }

    /// Returns the next key and the content of its value.
    fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        self.peek()?;
        let Some((key, value)) = self.page.pop_front() else {
            return Ok(None);
        };
        let content = self.store.cells.settled(self.moment, &key, &value)?;
        Ok(Some((key, content)))
    }
}

/// Puts records together.
struct Assembly<'a> {
    records: LogWalk<'a>,
    /// Begins with the first record that has items.
    items: Option<LogWalk<'a>>,
    block: Option<ItemBlock>,
    changes: LogWalk<'a>,
    /// Up to this commit, changes may have been dropped.
    snapshot: u64,
    end_position: u64,
}

impl KvLog {
    /// Hands every record with a commit after `after_commit` to `visit`. Changes up to the commit
    /// `snapshot` may have been dropped.
    pub(super) fn replay(
        &self,
        after_commit: u64,
        snapshot: &dyn Fn() -> u64,
        visit: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        self.store.check()?;
        let end = self.end();
        if after_commit >= end.commit {
            return Ok(());
        }
        let moment: Arc<dyn KvRead> = self.store.moment()?;
        let walk = |tag, numbers| LogWalk::new(&self.store, &*moment, tag, numbers);
        let commits = after_commit + 1..end.commit + 1;
        let mut assembly = Assembly {
            records: walk(Tag::Record, commits.clone()).begin_at_or_before(Tag::Record)?,
            items: None,
            block: None,
            changes: walk(Tag::Changes, commits),
            // Asked after the moment was taken: what lacks in it was dropped for this one.
            snapshot: snapshot(),
            end_position: end.position,
        };
        let mut next = None;
        while let Some(stored) = assembly.next_record()? {
            let is_next = match next {
                Some(next) => stored.first_commit == next,
                None => stored.first_commit <= after_commit + 1,
            };
            if !is_next {
                return Err(lacking(next.unwrap_or(after_commit + 1), &stored));
            }
            next = Some(stored.last_commit() + 1);
            if stored.last_commit() > after_commit {
                visit(&assembly.complete(stored)?)?;
            }
        }
        match next == Some(end.commit + 1) {
            true => Ok(()),
            false => Err(damaged_log(
                end.position,
                "records at the end of the log are missing",
            )),
        }
    }
}

fn lacking(commit: u64, found: &StoredRecord) -> trefoil_core::Error {
    let last = found.first_commit.saturating_sub(1);
    let what = format!("the records of commits {commit} to {last} are missing");
    damaged_log(found.first_position, what)
}

impl<'a> Assembly<'a> {
    fn next_record(&mut self) -> Result<Option<StoredRecord>> {
        let Some((key, content)) = self.records.next()? else {
            return Ok(None);
        };
        let stored = StoredRecord::decode(number_of(&key), &content);
        let stored = stored.ok_or_else(|| damaged(&key, "this is not a record"))?;
        Ok(Some(stored))
    }

    fn complete(&mut self, stored: StoredRecord) -> Result<Record> {
        let mut record = Record {
            first_commit: stored.first_commit,
            n_commits: stored.n_commits,
            first_position: stored.first_position,
            changes_dropped: stored.changes == ChangesPlace::Dropped,
            ..Record::default()
        };
        if stored.changes == ChangesPlace::Beside {
            match self.changes(stored.last_commit())? {
                Some(changes) => record.changes = changes.to_vec(),
                None if stored.last_commit() <= self.snapshot => record.changes_dropped = true,
                None => return Err(damaged_log(stored.first_position, "changes are missing")),
            }
        }
        let mut position = stored.first_position;
        while position < stored.end_position() {
            let block = self.block_with(position)?;
            let end = block.end().min(stored.end_position());
            block.copy(position..end, &mut record.items);
            position = end;
        }
        record.commits = stored.commits;
        Ok(record)
    }

    /// Returns the changes of the record that ends with this commit.
    fn changes(&mut self, last_commit: u64) -> Result<Option<Bytes>> {
        while self
            .changes
            .peek()?
            .is_some_and(|number| number < last_commit)
        {
            self.changes.page.pop_front();
        }
        match self.changes.peek()? == Some(last_commit) {
            true => Ok(self.changes.next()?.map(|(_, content)| content)),
            false => Ok(None),
        }
    }

    /// Returns the block that has an item which there must be.
    fn block_with(&mut self, position: u64) -> Result<&ItemBlock> {
        if self.items.is_none() {
            let (store, moment) = (self.records.store, self.records.moment);
            let positions = position..self.end_position + 1;
            let walk = LogWalk::new(store, moment, Tag::Items, positions);
            self.items = Some(walk.begin_at_or_before(Tag::Items)?);
        }
        while self
            .block
            .as_ref()
            .is_none_or(|block| block.end() <= position)
        {
            let next = self
                .items
                .as_mut()
                .map(LogWalk::next)
                .transpose()?
                .flatten();
            let (key, content) = next.ok_or_else(|| missing_items(position))?;
            let block = ItemBlock::decode(number_of(&key), &content);
            let block = block.ok_or_else(|| damaged(&key, "this is not a block of items"))?;
            self.block = Some(block);
        }
        let block = self.block.as_ref();
        block
            .filter(|block| block.contains(position))
            .ok_or_else(|| missing_items(position))
    }
}

fn missing_items(position: u64) -> trefoil_core::Error {
    damaged_log(position, "a block of items is missing")
}
