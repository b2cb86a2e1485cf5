//! What a policy says, and the calls of the database to set and list policies.

use std::time::Duration;

use trefoil_core::limits::{POSITION_MAX, RETENTION_SECONDS_MAX, STREAM_NAME_BYTES_MAX};
use trefoil_core::{Error, Result, category, validate_stream_name};

use super::entries::list_policies;
use crate::Database;
use crate::state::DurableView;
use crate::write::Work;

/// What a policy is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RetentionTarget {
    /// Each stream of this category that has no policy of its own.
    Category(String),
    /// This stream.
    Stream(String),
}

impl RetentionTarget {
    /// Returns the category that it is, or is in.
    pub(super) fn category(&self) -> &str {
        match self {
            Self::Category(name) => name,
            Self::Stream(name) => category(name),
        }
    }

    fn check(&self) -> Result<()> {
        match self {
            Self::Stream(name) => validate_stream_name(name),
            Self::Category(name) if name.is_empty() => {
                Err(Error::invalid("category must be a non-empty string"))
            }
            Self::Category(name) if name.contains('-') => Err(Error::invalid(format!(
                "there is no category {name:?}: the name of a category has no dash"
            ))),
            Self::Category(name) if name.len() > STREAM_NAME_BYTES_MAX => Err(Error::over_limit(
                "category name length",
                name.len(),
                STREAM_NAME_BYTES_MAX,
            )),
            Self::Category(_) => Ok(()),
        }
    }
}

/// Which events of a stream are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RetentionPolicy {
    /// Events are removed that are older than so many seconds.
    pub max_age: Option<u64>,
    /// Of each stream only so many events are kept, the newest.
    pub max_count: Option<u64>,
}

impl RetentionPolicy {
    /// Keeps events for so long.
    #[must_use]
    pub fn with_max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age.as_secs());
        self
    }

    /// Keeps so many events of each stream.
    #[must_use]
    pub fn with_max_count(mut self, count: u64) -> Self {
        self.max_count = Some(count);
        self
    }

    /// Returns whether it keeps everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn check(&self) -> Result<()> {
        let values = [
            (self.max_age, "maxAge", "seconds", RETENTION_SECONDS_MAX),
            (self.max_count, "maxCount", "events", POSITION_MAX),
        ];
        for (value, name, unit, max) in values {
            if value.is_some_and(|value| value == 0 || value > max) {
                return Err(Error::invalid(format!(
                    "{name} must be from 1 to {max} {unit}"
                )));
            }
        }
        Ok(())
    }
}

/// A policy that is to be set, or removed if it keeps everything.
#[derive(Debug, Clone)]
pub(crate) struct PolicyWork {
    pub(crate) target: RetentionTarget,
    pub(crate) policy: RetentionPolicy,
}

impl PolicyWork {
    fn new(target: RetentionTarget, policy: RetentionPolicy) -> Result<Self> {
        target.check()?;
        policy.check()?;
        Ok(Self { target, policy })
    }
}

impl Database {
    /// Sets the policy of a stream or a category in place of the one that it had, and returns when that is
    /// durable. One that keeps everything is removed. It is applied in the background. Blocks the thread.
    pub fn set_retention(&self, target: RetentionTarget, policy: RetentionPolicy) -> Result<()> {
        let work = PolicyWork::new(target, policy)?;
        let written = self.engine()?.write(Work::SetPolicy(work));
        self.confirm(written).map(drop)
    }

    /// The async form of [`Self::set_retention`].
    pub async fn set_retention_async(
        &self,
        target: RetentionTarget,
        policy: RetentionPolicy,
    ) -> Result<()> {
        let work = PolicyWork::new(target, policy)?;
        let written = self.engine()?.write_async(Work::SetPolicy(work)).await;
        self.confirm(written).map(drop)
    }

    /// Returns up to `limit` policies after that of a target: those of categories by name, then those of
    /// streams by name.
    pub fn retention(
        &self,
        after: Option<&RetentionTarget>,
        limit: usize,
    ) -> Result<Vec<(RetentionTarget, RetentionPolicy)>> {
        self.ask(|engine| list_policies(&DurableView::new(&engine.store), after, limit))
    }

    /// The async form of [`Self::retention`].
    pub async fn retention_async(
        &self,
        after: Option<RetentionTarget>,
        limit: usize,
    ) -> Result<Vec<(RetentionTarget, RetentionPolicy)>> {
        self.elsewhere(move |database| database.retention(after.as_ref(), limit))
            .await
    }
}
