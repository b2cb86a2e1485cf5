//! Staging a removal: from this commit on, events of a stream are hidden.

use trefoil_core::{Committed, Error, Result};

use super::conditions::check_version;
use super::stage::Stage;
use crate::removal::{RemovalWork, StreamRemoval};

impl Stage<'_> {
    /// Stages a removal as a commit of its own, which is the last one of its group: what is staged is
    /// not asked whether it was removed.
    pub(crate) fn remove(&mut self, work: &RemovalWork) -> Result<Committed> {
        let RemovalWork {
            stream,
            expected,
            before,
            after,
        } = work;
        let version = self.last_ordinal(stream)?;
        if let Some(expected) = expected {
            check_version(0, stream, *expected, version)?;
        }
        if self.view().stream_removal(stream)? != *before {
            return Err(Error::WatchedKeyChanged);
        }
        // What was appended since it was found out is kept.
        let is_empty = after.is_empty && version == Some(after.version);
        let after = StreamRemoval { is_empty, ..*after };
        let committed = self.whole_or_not(|stage| {
            stage.view().set_stream_removal(stream, after)?;
            stage.stage_commit(Vec::new(), None, &[])
        })?;
        self.end_group();
        Ok(committed)
    }
}
