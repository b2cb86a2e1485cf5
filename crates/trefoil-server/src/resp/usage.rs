//! How often each command was called, how long that took, and how often it failed: what `INFO
//! commandstats` tells.
//!
//! Requests that arrive together are carried out together, so each gets an equal part of the time.
//! It lasts until the reply is there, which for a write is until it is on disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hashbrown::HashMap;

use super::metrics::UNKNOWN_COMMAND;

/// A count since the server began. It can be told from a later moment on.
#[derive(Debug, Default)]
pub(super) struct Tallied {
    total: AtomicU64,
    /// What it was when it was reset.
    before: AtomicU64,
}

impl Tallied {
    pub(super) fn add(&self, n: u64) {
        self.total.fetch_add(n, Ordering::Relaxed);
    }

    /// The count since the server began.
    fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// The count since it was reset.
    pub(super) fn get(&self) -> u64 {
        let before = self.before.load(Ordering::Relaxed);
        self.total.load(Ordering::Relaxed).saturating_sub(before)
    }

    pub(super) fn reset(&self) {
        let total = self.total.load(Ordering::Relaxed);
        self.before.store(total, Ordering::Relaxed);
    }
}

/// What is counted of one command.
#[derive(Debug, Default)]
pub(super) struct CommandCounts {
    pub(super) calls: Tallied,
    pub(super) nanos: Tallied,
    /// Requests that were refused before they were carried out.
    pub(super) rejected: Tallied,
    /// Requests that were answered with an error.
    pub(super) failed: Tallied,
}

impl CommandCounts {
    /// Counts requests that took this long together.
    pub(super) fn add(&self, calls: u64, time: Duration) {
        self.calls.add(calls);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.add(nanos);
    }
}

/// What is counted of every command. Nobody waits for anybody here.
#[derive(Debug)]
pub(super) struct CommandUsage(HashMap<&'static str, CommandCounts>);

impl CommandUsage {
    /// Nothing yet of these commands.
    pub(super) fn new(commands: impl Iterator<Item = &'static str>) -> Self {
        let commands = commands.chain([UNKNOWN_COMMAND]);
        Self(
            commands
                .map(|name| (name, CommandCounts::default()))
                .collect(),
        )
    }

    /// Returns what is counted of a command.
    pub(super) fn of(&self, command: &str) -> Option<&CommandCounts> {
        self.0.get(command)
    }

    /// A request was refused before it was carried out.
    pub(super) fn reject(&self, command: &str) {
        if let Some(counts) = self.0.get(command) {
            counts.rejected.add(1);
        }
    }

    /// A request was answered with an error.
    pub(super) fn fail(&self, command: &str) {
        if let Some(counts) = self.0.get(command) {
            counts.failed.add(1);
        }
    }

    /// Begins to count anew.
    pub(super) fn reset(&self) {
        for counts in self.0.values() {
            counts.calls.reset();
            counts.nanos.reset();
            counts.rejected.reset();
            counts.failed.reset();
        }
    }

    /// How often each command was called since the server began, and how long that took, by name.
    pub(super) fn totals(&self) -> Vec<(&'static str, u64, Duration)> {
        let totals = self.0.iter().map(|(name, counts)| {
            let time = Duration::from_nanos(counts.nanos.total());
            (*name, counts.calls.total(), time)
        });
        let mut totals: Vec<_> = totals.filter(|(_, calls, _)| *calls > 0).collect();
        totals.sort_unstable();
        totals
    }

    /// What was called, or was to be called, by name.
    pub(super) fn told(&self) -> Vec<(&'static str, &CommandCounts)> {
        let is_told = |counts: &CommandCounts| counts.calls.get() > 0 || counts.rejected.get() > 0;
        let counts = self.0.iter().map(|(name, counts)| (*name, counts));
        let mut told: Vec<_> = counts
            .filter(|(name, counts)| *name != UNKNOWN_COMMAND && is_told(counts))
            .collect();
        told.sort_unstable_by_key(|(name, _)| *name);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_told_until_it_is_reset() {
        let usage = CommandUsage::new(["get", "set"].into_iter());
        let count = |command: &str, calls, time| {
            if let Some(counts) = usage.of(command) {
                counts.add(calls, time);
            }
        };
        count("set", 2, Duration::from_micros(7));
        usage.fail("set");
        count(UNKNOWN_COMMAND, 1, Duration::ZERO);
        count("never heard of", 1, Duration::ZERO);
        let told = usage.told();
        let [("set", set)] = told.as_slice() else {
            panic!("{told:?}");
        };
        assert_eq!((set.calls.get(), set.nanos.get()), (2, 7_000));
        assert_eq!((set.failed.get(), set.rejected.get()), (1, 0));
        usage.reset();
        assert!(usage.told().is_empty());
        let totals = [
            ("set", 2, Duration::from_micros(7)),
            (UNKNOWN_COMMAND, 1, Duration::ZERO),
        ];
        assert_eq!(usage.totals(), totals, "unknown commands are counted, too");
        usage.reject("get");
        count("set", 1, Duration::ZERO);
        let told = usage.told();
        assert_eq!(
            told.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["get", "set"]
        );
    }
}
