//! Policies as entries of the state, and how far those of categories are applied.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use trefoil_core::limits::RETENTION_POLICIES_MAX;
use trefoil_core::{Direction, Error, Result, put_varint, take_varint};
use trefoil_state::Space as _;

use super::policy::{PolicyWork, RetentionPolicy, RetentionTarget};
use crate::removal::entries::{REMOVAL, read};
use crate::state::{DurableView, View};

/// The entry that counts the policies and their changes.
const COUNTS: &[u8] = b"dk";
/// What the keys of policies begin with, followed by what they are about.
const POLICY: u8 = b'm';
const CATEGORY: u8 = b'c';
const STREAM: u8 = b's';
/// What the keys begin with that say how far the policy of a category is applied.
const PROGRESS: u8 = b'n';

/// Returns whether an entry is about policies, which stay when all events go.
pub(crate) fn is_policy(key: &[u8]) -> bool {
    key == COUNTS || key.starts_with(&[REMOVAL, POLICY])
}

/// How many policies there are, and how often one was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct PolicyCounts {
    policies: u64,
    revision: u64,
}

impl PolicyCounts {
    fn read(value: Option<&[u8]>) -> Result<Self> {
        let decode = |mut value: &[u8]| {
            let policies = take_varint(&mut value)?;
            let revision = take_varint(&mut value)?;
            Some(Self { policies, revision })
        };
        Ok(read(value, "by policies", decode)?.unwrap_or_default())
    }

    fn encode(self) -> Bytes {
        two_varints(self.policies, self.revision)
    }
}

/// How far the policy of a category is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PolicyProgress {
    /// All its events before this position were found to be too old, those of streams with policies of
    /// their own aside.
    pub(crate) aged_to: u64,
    /// Since this position no stream was looked at for having too many events.
    pub(crate) counted_to: u64,
}

impl PolicyProgress {
    fn decode(mut value: &[u8]) -> Option<Self> {
        Some(Self {
            aged_to: take_varint(&mut value)?,
            counted_to: take_varint(&mut value)?,
        })
    }

    fn encode(self) -> Bytes {
        two_varints(self.aged_to, self.counted_to)
    }
}

fn two_varints(first: u64, second: u64) -> Bytes {
    let mut out = Vec::new();
    put_varint(&mut out, first);
    put_varint(&mut out, second);
    out.into()
}

/// A maximum that is not set is written as 0.
fn encode_policy(policy: RetentionPolicy) -> Bytes {
    two_varints(policy.max_age.unwrap_or(0), policy.max_count.unwrap_or(0))
}

fn decode_policy(mut value: &[u8]) -> Option<RetentionPolicy> {
    let mut maximum =
        || take_varint(&mut value).map(|value| Some(value).filter(|value| *value > 0));
    Some(RetentionPolicy {
        max_age: maximum()?,
        max_count: maximum()?,
    })
}

fn policy_key(target: &RetentionTarget) -> Vec<u8> {
    let (kind, name) = match target {
        RetentionTarget::Category(name) => (CATEGORY, name),
        RetentionTarget::Stream(name) => (STREAM, name),
    };
    [&[REMOVAL, POLICY, kind], name.as_bytes()].concat()
}

fn progress_key(category: &str) -> Bytes {
    [&[REMOVAL, PROGRESS], category.as_bytes()].concat().into()
}

fn target_of(key: &[u8]) -> Option<RetentionTarget> {
    let (kind, name) = key.strip_prefix(&[REMOVAL, POLICY])?.split_first()?;
    let name = String::from_utf8_lossy(name).into_owned();
    match *kind {
        CATEGORY => Some(RetentionTarget::Category(name)),
        STREAM => Some(RetentionTarget::Stream(name)),
        _ => None,
    }
}

/// Returns how often a policy was changed.
pub(super) fn revision(entries: &DurableView) -> Result<u64> {
    let counts = entries.get(COUNTS)?;
    Ok(PolicyCounts::read(counts.as_deref())?.revision)
}

/// Returns up to `limit` policies after that of a target.
pub(super) fn list_policies(
    entries: &DurableView,
    after: Option<&RetentionTarget>,
    limit: usize,
) -> Result<Vec<(RetentionTarget, RetentionPolicy)>> {
    let from = match after {
        None => vec![REMOVAL, POLICY],
        // The first key after that one.
        Some(after) => [policy_key(after), vec![0]].concat(),
    };
    let found = entries.scan(&from, &[REMOVAL, POLICY + 1], Direction::Forwards);
    let read_one = |entry: Result<(Bytes, Bytes)>| {
        let (key, value) = entry?;
        let policy = read(Some(&value), "by a policy", decode_policy)?;
        Ok(target_of(&key).zip(policy))
    };
    let listed = found.filter_map(|entry| read_one(entry).transpose());
    listed.take(limit).collect()
}

/// Returns how far the policy of a category is applied.
pub(super) fn progress(entries: &DurableView, category: &str) -> Result<PolicyProgress> {
    let value = entries.get(&progress_key(category))?;
    let progress = read(value.as_deref(), category, PolicyProgress::decode)?;
    Ok(progress.unwrap_or_default())
}

impl View {
    /// Returns how often a policy was changed.
    pub(crate) fn policy_revision(&self) -> Result<u64> {
        let counts = self.get(COUNTS)?;
        Ok(PolicyCounts::read(counts.as_deref())?.revision)
    }

    /// Sets a policy, or removes one. Returns whether that changes something.
    pub(crate) fn set_policy(&mut self, work: &PolicyWork) -> Result<bool> {
        let key = Bytes::from(policy_key(&work.target));
        let before = self.get(&key)?;
        let after = (!work.policy.is_empty()).then(|| encode_policy(work.policy));
        if before == after {
            return Ok(false);
        }
        let counts = self.get(COUNTS)?;
        let mut counts = PolicyCounts::read(counts.as_deref())?;
        counts.revision += 1;
        counts.policies += u64::from(before.is_none());
        counts.policies = counts.policies.saturating_sub(u64::from(after.is_none()));
        if counts.policies > RETENTION_POLICIES_MAX && before.is_none() {
            return Err(Error::invalid(format!(
                "the namespace has {RETENTION_POLICIES_MAX} retention policies, the limit"
            )));
        }
        self.set(key, after)?;
        self.put(Bytes::from_static(COUNTS), counts.encode())?;
        // What was passed over under the policies so far is looked at again.
        self.set(progress_key(work.target.category()), None)?;
        self.leave_upkeep();
        Ok(true)
    }

    /// Notes how far the policy of a category is applied.
    pub(crate) fn set_progress(&mut self, category: &str, progress: PolicyProgress) -> Result<()> {
        self.put(progress_key(category), progress.encode())
    }
}

/// What everybody must know of the policies at any time.
#[derive(Debug, Default)]
pub(crate) struct KnownPolicies {
    policies: AtomicU64,
    revision: AtomicU64,
}

impl KnownPolicies {
    /// Reads it from the entries.
    pub(crate) fn load(&self, entries: &DurableView) -> Result<()> {
        let counts = entries.get(COUNTS)?;
        self.set(PolicyCounts::read(counts.as_deref())?);
        Ok(())
    }

    /// Follows a change of an entry.
    pub(crate) fn note(&self, key: &[u8], value: Option<&[u8]>) {
        if key == COUNTS
            && let Ok(counts) = PolicyCounts::read(value)
        {
            self.set(counts);
        }
    }

    fn set(&self, counts: PolicyCounts) {
        self.policies.store(counts.policies, Ordering::Release);
        self.revision.store(counts.revision, Ordering::Release);
    }

    /// Returns whether there is a policy.
    pub(crate) fn have_any(&self) -> bool {
        self.policies.load(Ordering::Acquire) > 0
    }

    /// Returns how often a policy was changed.
    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }
}
