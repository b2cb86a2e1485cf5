//! Tracking: how far a consumer has come in another log, recorded together with what it wrote.
//!
//! A consumer that turns the events of one log into events of this one sends, with each commit, the
//! position it has worked off. It is written with the commit or not at all, and only if it is
//! higher than the last one of its source, so nothing is worked off twice.

use crate::limits::TRACKING_SOURCE_BYTES_MAX;
use crate::{Error, Result};

/// A position in another log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tracking {
    /// Which log this is about.
    pub source: String,
    /// The position in it.
    pub position: u64,
}

impl Tracking {
    /// Returns a position of a source.
    pub fn new(source: impl Into<String>, position: u64) -> Self {
        Self {
            source: source.into(),
            position,
        }
    }

    /// Checks the limit on the length of the source.
    pub fn validate(&self) -> Result<()> {
        let length = self.source.len();
        if length > TRACKING_SOURCE_BYTES_MAX {
            return Err(Error::over_limit(
                "length of a tracking source",
                length,
                TRACKING_SOURCE_BYTES_MAX,
            ));
        }
        Ok(())
    }
}
