//! Tracked positions: an entry per source.

use bytes::Bytes;
use trefoil_core::{Damage, Error, Result, Tracking, put_varint, take_varint};

use super::View;

/// What the keys of these entries begin with.
const TRACKING: u8 = b't';

/// Returns whether an entry outlives the events: all but tracked positions do, which tell of them.
pub(crate) fn is_carried(key: &[u8]) -> bool {
    key.first() != Some(&TRACKING)
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
