//! Staging a removal: from this commit on, events of a stream are hidden.

use trefoil_core::{Committed, Error, Result};

use super::conditions::check_version;
use super::stage::Stage;
use crate::removal::{
    DroppedStream, PolicyWork, Redaction, RedactionWork, RemovalWork, RetentionWork, StreamRemoval,
    no_event,
};

impl Stage<'_> {
    /// Stages a removal as a commit of its own, which is the last one of its group: what is staged is
    /// not asked whether it was removed.
    pub(crate) fn remove(&mut self, work: &RemovalWork) -> Result<Committed> {
        let committed = self.whole_or_not(|stage| {
            stage.hide(work)?;
            stage.stage_commit(Vec::new(), None, &[])
        })?;
        self.end_group();
        Ok(committed)
    }

    /// Stages what is beyond policies in the same way, if they are still the same.
    pub(crate) fn retain(&mut self, work: &RetentionWork) -> Result<Committed> {
        if self.view().policy_revision()? != work.revision {
            return Err(Error::WatchedKeyChanged);
        }
        let committed = self.whole_or_not(|stage| {
            for removal in &work.removals {
                stage.hide(removal)?;
            }
            for (category, progress) in &work.progress {
                stage.view().set_progress(category, *progress)?;
            }
            stage.stage_commit(Vec::new(), None, &[])
        })?;
        self.end_group();
        Ok(committed)
    }

    /// Stages a policy.
    pub(crate) fn set_policy(&mut self, work: &PolicyWork) -> Result<Committed> {
        self.whole_or_not(|stage| match stage.view().set_policy(work)? {
            true => stage.stage_commit(Vec::new(), None, &[]),
            false => Ok(stage.nothing_new()),
        })
    }

    fn hide(&mut self, work: &RemovalWork) -> Result<()> {
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
        let now = self.moment().now;
        self.view().set_stream_removal(stream, after)?;
        self.view().set_pending(stream, now)
    }

    /// Returns the answer to what was so before.
    fn nothing_new(&self) -> Committed {
        Committed {
            commit: self.front.commit,
            position: self.front.position,
            events: Vec::new(),
            replayed: true,
        }
    }

    /// Stages that the log has nothing left of what was removed of streams.
    pub(crate) fn end_pending(&mut self, streams: &[DroppedStream]) -> Result<Committed> {
        self.whole_or_not(|stage| {
            let now = stage.moment().now;
            for DroppedStream { stream, floor } in streams {
                stage.view().end_pending(stream, *floor, now)?;
            }
            stage.view().count_log_edit()?;
            stage.stage_commit(Vec::new(), None, &[])
        })
    }

    /// Stages that the log has removed events of streams.
    pub(crate) fn drop_again(&mut self, streams: &[String]) -> Result<Committed> {
        self.whole_or_not(|stage| {
            let now = stage.moment().now;
            for stream in streams {
                stage.view().set_pending(stream, now)?;
            }
            stage.stage_commit(Vec::new(), None, &[])
        })
    }

    /// Stages that an event is redacted, as a commit of its own, which is the last one of its group.
    pub(crate) fn redact(&mut self, work: RedactionWork) -> Result<Committed> {
        // The log may be another one than that in which the event was found.
        let events = self.durable_events(&[work.position])?;
        if events.iter().all(|event| event.id() != work.id) {
            return Err(no_event(work.position));
        }
        let now = self.moment().now;
        let committed = self.whole_or_not(|stage| match stage.view().redact(work, now)? {
            true => stage.stage_commit(Vec::new(), None, &[]),
            false => Ok(stage.nothing_new()),
        })?;
        self.end_group();
        Ok(committed)
    }

    /// Stages that events are redacted which others know to be, as a commit of its own, which is the last
    /// one of its group.
    pub(crate) fn redact_again(&mut self, works: &[(u64, Redaction)]) -> Result<Committed> {
        let committed = self.whole_or_not(|stage| {
            for (position, redaction) in works {
                stage.view().redact_again(*position, *redaction)?;
            }
            stage.stage_commit(Vec::new(), None, &[])
        })?;
        self.end_group();
        Ok(committed)
    }

    /// Stages that the log has followed redactions.
    pub(crate) fn end_redactions(&mut self, done: &[(u64, Redaction)]) -> Result<Committed> {
        self.whole_or_not(|stage| {
            stage.view().end_redactions(done)?;
            stage.view().count_log_edit()?;
            stage.stage_commit(Vec::new(), None, &[])
        })
    }
}
