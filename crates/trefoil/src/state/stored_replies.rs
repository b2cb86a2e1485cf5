//! The replies of transactions that have a name, kept for when one is sent again.
//!
//! ```text
//! i name        when it was executed, its commit, its events, its replies
//! j time name   for forgetting the oldest first
//! ```

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use trefoil_core::{Direction, Result, put_varint, take_varint};
use trefoil_state::{Reply, Space as _, damaged};

use super::View;

const BY_NAME: u8 = b'i';
const BY_TIME: u8 = b'j';

/// What is stored of a transaction that was executed.
#[derive(Debug)]
pub(crate) struct StoredReplies {
    /// Its commit; 0 if it changed nothing.
    pub(crate) commit: u64,
    /// The position of its first event, and how many there are.
    pub(crate) position: u64,
    pub(crate) n_events: u64,
    pub(crate) replies: Vec<Reply>,
}

fn by_name(name: &[u8]) -> Bytes {
    let mut key = BytesMut::with_capacity(1 + name.len());
    key.put_u8(BY_NAME);
    key.put_slice(name);
    key.freeze()
}

fn by_time(time: u64, name: &[u8]) -> Bytes {
    let mut key = BytesMut::with_capacity(9 + name.len());
    key.put_u8(BY_TIME);
    key.put_u64(time);
    key.put_slice(name);
    key.freeze()
}

impl View {
    /// Returns what is stored of the transaction of this name.
    pub(crate) fn stored_replies(&self, name: &[u8]) -> Result<Option<StoredReplies>> {
        let value = self.get(&by_name(name))?;
        let decode =
            |value: Bytes| decode(&value).ok_or_else(|| damaged("the replies of a transaction"));
        value.map(decode).transpose()
    }

    /// Stores the replies of a transaction, for `retention` milliseconds.
    pub(crate) fn store_replies(
        &mut self,
        name: &[u8],
        time: u64,
        retention: u64,
        what: &StoredReplies,
    ) -> Result<()> {
        self.due(time.saturating_add(retention));
        let mut value = Vec::new();
        put_varint(&mut value, what.commit);
        put_varint(&mut value, what.position);
        put_varint(&mut value, what.n_events);
        put_varint(&mut value, what.replies.len() as u64);
        what.replies
            .iter()
            .for_each(|reply| reply.encode(&mut value));
        self.put(by_name(name), value.into())?;
        self.put(by_time(time, name), Bytes::new())
    }

    /// Forgets up to `n_max` transactions that were executed at these times.
    pub(crate) fn forget_replies(&mut self, times: Range<u64>, n_max: usize) -> Result<()> {
        let (from, to) = (by_time(times.start, b""), by_time(times.end, b""));
        let due: Vec<Bytes> = self
            .scan(&from, &to, Direction::Forwards)
            .take(n_max)
            .map(|entry| entry.map(|(key, _)| key))
            .collect::<Result<_>>()?;
        for key in &due {
            self.set(by_name(&key[9..]), None)?;
            self.set(key.clone(), None)?;
        }
        Ok(())
    }

    /// Returns when the oldest transaction that is stored was executed, if that was not before `from`.
    pub(crate) fn oldest_replies(&self, from: u64) -> Result<Option<u64>> {
        let (from, to) = (by_time(from, b""), [BY_TIME + 1]);
        let first = self.scan(&from, &to, Direction::Forwards).next();
        let time = |key: Bytes| key.get(1..9).and_then(|time| time.try_into().ok());
        let first = first.transpose()?;
        Ok(first.and_then(|(key, _)| time(key)).map(u64::from_be_bytes))
    }
}

/// Returns the name of the transaction whose replies an entry of this name keeps, or lists by their
/// age; `None` if it does neither.
pub(super) fn id_of_entry(name: &[u8]) -> Option<Bytes> {
    let id = match name.split_first()? {
        (&BY_NAME, id) => id,
        (&BY_TIME, rest) => rest.get(size_of::<u64>()..)?,
        _ => return None,
    };
    Some(Bytes::copy_from_slice(id))
}

fn decode(mut value: &[u8]) -> Option<StoredReplies> {
    let commit = take_varint(&mut value)?;
    let position = take_varint(&mut value)?;
    let n_events = take_varint(&mut value)?;
    let n_replies = take_varint(&mut value)?;
    let replies = (0..n_replies).map(|_| Reply::decode(&mut value));
    Some(StoredReplies {
        commit,
        position,
        n_events,
        replies: replies.collect::<Option<_>>()?,
    })
}
