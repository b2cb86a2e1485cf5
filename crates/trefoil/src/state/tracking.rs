//! Tracked positions: an entry per source.

use bytes::Bytes;
use trefoil_core::{Damage, Direction, Error, Result, Tracking, put_varint, take_varint};
use trefoil_state::Space;

use super::View;
use crate::read::listing::List;
use crate::removal;

/// What the keys of these entries begin with.
const TRACKING: u8 = b't';

/// Returns whether an entry outlives the events: all but those do that tell of them.
pub(crate) fn is_carried(key: &[u8]) -> bool {
    key.first() != Some(&TRACKING) && !removal::is_of_events(key)
}

fn key(source: &str) -> Bytes {
    let mut key = Vec::with_capacity(1 + source.len());
    key.push(TRACKING);
    key.extend_from_slice(source.as_bytes());
    key.into()
}

impl View {
    /// Returns the position that was last recorded for a source.
    pub(crate) fn tracking(&self, source: &str) -> Result<Option<u64>> {
        let value = self.get(&key(source))?;
        value.map(|value| decode(source, &value)).transpose()
    }

    /// Returns a page of all sources by name, with the position that was last recorded for each.
    pub(crate) fn trackings(&self, list: &List) -> Result<Vec<Tracking>> {
        trackings(self, list)
    }

    /// Records a position, which must be higher than the one before.
    pub(crate) fn track(&mut self, tracking: &Tracking) -> Result<()> {
        if let Some(recorded) = self.tracking(&tracking.source)?
            && tracking.position <= recorded
        {
            return Err(Error::TrackingConflict {
                source_name: tracking.source.clone(),
                position: tracking.position,
                recorded,
            });
        }
        self.set_tracking(tracking)
    }

    /// Records a position whatever was recorded before.
    pub(crate) fn set_tracking(&mut self, tracking: &Tracking) -> Result<()> {
        let mut value = Vec::new();
        put_varint(&mut value, tracking.position);
        self.put(key(&tracking.source), value.into())
    }
}

/// Returns a page of all sources by name, with the position that was last recorded for each.
pub(crate) fn trackings(space: &impl Space, list: &List) -> Result<Vec<Tracking>> {
    let prefix = key(&list.prefix);
    let mut after = Vec::from(key(&list.after));
    // The first key after that one.
    after.push(0);
    let from = if list.after.is_empty() {
        prefix.clone()
    } else {
        prefix.clone().max(after.into())
    };
    let entries = space.scan(&from, &[TRACKING + 1], Direction::Forwards);
    let of_prefix = entries.take_while(|entry| match entry {
        Ok((key, _)) => key.starts_with(&prefix),
        Err(_) => true,
    });
    let read = |entry: Result<(Bytes, Bytes)>| {
        let (key, value) = entry?;
        let source = String::from_utf8_lossy(&key[1..]).into_owned();
        let position = decode(&source, &value)?;
        Ok(Tracking { source, position })
    };
    of_prefix.take(list.limit).map(read).collect()
}

/// Returns the source that an entry of this name is about, and the position that it holds if its value
/// is known; `None` if it is not about a source.
pub(super) fn read_entry(name: &[u8], value: Option<&[u8]>) -> Option<(String, Option<u64>)> {
    let source = name.strip_prefix(&[TRACKING])?;
    let position = value.and_then(|mut value| take_varint(&mut value));
    Some((String::from_utf8_lossy(source).into_owned(), position))
}

fn decode(source: &str, mut value: &[u8]) -> Result<u64> {
    take_varint(&mut value).ok_or_else(|| {
        Error::Damaged(Box::new(Damage {
            file: "maps".into(),
            offset: 0,
            position: 0,
            what: format!("unreadable tracked position of {source:?}"),
            help: "run `trefoil repair`, which rebuilds the maps from the log".to_owned(),
        }))
    })
}
