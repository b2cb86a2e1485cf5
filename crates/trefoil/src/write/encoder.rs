//! The encoder: the commits of a group as records of the log.
//!
//! It decides nothing and looks nothing up. Commits whose positions follow each other share a record.

use trefoil_core::{EventItem, put_varint};
use trefoil_storage::{Group, Label, Record};

use super::changes;

/// A group that is being encoded.
#[derive(Debug)]
pub(super) struct GroupEncoder {
    group: Group,
    /// What the commits of the last record change besides appending events.
    changes: Vec<u8>,
    /// About how many bytes the records before the last one take in the log.
    ended_bytes: usize,
    /// The bytes after which the group takes no more commits.
    bytes_max: usize,
}

impl GroupEncoder {
    /// An empty group that is full when it takes `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            group: Group::default(),
            changes: Vec::new(),
            ended_bytes: 0,
            bytes_max,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.group.records.is_empty()
    }

    /// Returns whether the group should be written before more is added.
    pub(super) fn is_full(&self) -> bool {
        let last = self.group.records.last();
        let last = last.map_or(0, |record| record.items.n_bytes());
        self.ended_bytes + last + self.changes.len() >= self.bytes_max
    }

    /// Begins the commit of this number, whose first event goes to `position`.
    pub(super) fn begin_commit(&mut self, number: u64, position: u64) {
        let last = self.group.records.last();
        if last.is_some_and(|record| record.end_position() == position) {
            return;
        }
        self.end_record();
        self.group.records.push(Record {
            first_commit: number,
            first_position: position,
            ..Record::default()
        });
    }

    /// Makes room for events, so that what the group holds is not moved as it grows.
    pub(super) fn reserve(&mut self, n_events: usize, n_bytes: usize) {
        if let Some(record) = self.group.records.last_mut() {
            record.items.reserve(n_events, n_bytes);
        }
    }

    /// Adds an event to the commit that was begun last.
    pub(super) fn push(&mut self, label: Label, item: &EventItem<'_>) {
        if let Some(record) = self.group.records.last_mut() {
            record.items.push_with(label, |out| item.encode(out));
        }
    }

    /// Ends the commit that was begun last, with its number of events.
    pub(super) fn end_commit(&mut self, n_events: usize) {
        if let Some(record) = self.group.records.last_mut() {
            record.n_commits += 1;
            put_varint(&mut record.commits, n_events as u64);
        }
    }

    /// Adds what the commit of this number changes of the state. It is in the last record.
    pub(super) fn put_state(&mut self, number: u64, state: &[u8]) {
        if let Some(record) = self.group.records.last() {
            let index = number - record.first_commit;
            changes::put_state(&mut self.changes, index, state);
        }
    }

    /// Ends the last record: no commit is added to it any more.
    fn end_record(&mut self) {
        if let Some(record) = self.group.records.last_mut() {
            record.changes.append(&mut self.changes);
            self.ended_bytes += record.items.n_bytes() + record.changes.len();
        }
    }

    /// Ends the group.
    pub(super) fn finish(&mut self) {
        self.end_record();
    }

    /// Returns the group, which is finished.
    pub(super) fn group(&self) -> &Group {
        &self.group
    }

    /// Takes out the group, which is finished, and begins the next one.
    pub(super) fn take_group(&mut self) -> Group {
        self.ended_bytes = 0;
        std::mem::take(&mut self.group)
    }
}

#[cfg(test)]
mod tests {
    use trefoil_core::{EventId, Payload, Timestamp};

    use super::*;
    use crate::read::label;
    use crate::write::state_changes;

    fn commit(encoder: &mut GroupEncoder, number: u64, position: u64, n_events: usize) {
        encoder.begin_commit(number, position);
        for _ in 0..n_events {
            let item = EventItem {
                id: EventId::from_u128(7),
                time: Timestamp(0),
                commit_offset: 0,
                stream: None,
                event_type: "Opened",
                tags: &[],
                metadata: None,
                tracking: None,
                data: &Payload::binary("{}"),
                is_redacted: false,
            };
            encoder.push(label::make(false, false, None), &item);
        }
        encoder.end_commit(n_events);
    }

    #[test]
    fn commits_share_a_record_until_a_position_is_skipped() {
        let mut encoder = GroupEncoder::new(usize::MAX);
        assert!(encoder.is_empty());
        commit(&mut encoder, 5, 10, 2);
        commit(&mut encoder, 6, 12, 1);
        commit(&mut encoder, 7, 20, 1);
        encoder.finish();
        let records = &encoder.group().records;
        let shape: Vec<_> = records
            .iter()
            .map(|record| (record.first_commit, record.n_commits, record.first_position))
            .collect();
        assert_eq!(shape, [(5, 2, 10), (7, 1, 20)]);
        let lengths: Vec<_> = records.iter().map(|record| record.items.len()).collect();
        assert_eq!(lengths, [3, 1]);
        assert_eq!(records[0].commits, [2, 1]);
    }

    #[test]
    fn changes_of_state_stay_with_the_record_of_their_commit() {
        let mut encoder = GroupEncoder::new(usize::MAX);
        commit(&mut encoder, 1, 1, 1);
        encoder.put_state(1, b"first");
        commit(&mut encoder, 2, 9, 0);
        encoder.put_state(2, b"second");
        encoder.finish();
        let changes: Vec<Vec<Vec<u8>>> = { &encoder.group().records }
            .iter()
            .map(|record| {
                let mut found = Vec::new();
                let mut visit = |changes: &[u8]| {
                    found.push(changes.to_vec());
                    Some(())
                };
                state_changes(record, &mut visit).unwrap();
                found
            })
            .collect();
        assert_eq!(changes, [[b"first".to_vec()], [b"second".to_vec()]]);
    }

    #[test]
    fn events_and_changes_of_all_records_make_it_full() {
        let mut encoder = GroupEncoder::new(200);
        commit(&mut encoder, 1, 1, 1);
        encoder.put_state(1, &[0; 100]);
        assert!(!encoder.is_full());
        commit(&mut encoder, 2, 9, 1);
        encoder.put_state(2, &[0; 100]);
        assert!(encoder.is_full());
    }
}
