//! Keeps one namespace to its quotas: what it has written is measured here, and all that is refused is
//! counted here. It outlives the database, which may be closed and opened again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use trefoil_core::{Error, Result};

use super::{Quota, Quotas};

/// What keeps a namespace to its quotas.
#[derive(Debug)]
pub struct QuotaKeeper {
    /// In the order of [`Quota`].
    limits: [AtomicU64; Quota::EVERY.len()],
    /// How often each has refused something.
    refusals: [AtomicU64; Quota::EVERY.len()],
    writes: Mutex<WriteAllowance>,
}

/// What stands for no limit.
const UNLIMITED: u64 = u64::MAX;

/// How long a measurement of the disk is good for.
const MEASURED_FOR: Duration = Duration::from_secs(1);

/// What a write asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WriteSize {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    /// Whether it takes room; else it only makes some.
    pub(crate) takes_room: bool,
    /// Whether it is taken also if no events may be appended now: those after it wait for longer.
    pub(crate) may_owe: bool,
}

/// Which events of a namespace something is about: while all are replaced, there are two logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenLog {
    /// That which counts.
    Current = 0,
    /// That which is to replace it.
    Beside = 1,
}

#[derive(Debug, Default)]
struct WriteAllowance {
    /// How many events may be appended now; below zero after a large commit.
    events: f64,
    /// When that was computed, by the steady clock.
    computed: Option<Duration>,
    /// In the order of [`WrittenLog`].
    logs: [TakenRoom; 2],
}

/// What is known of the room that a log takes, with its index and state.
#[derive(Debug, Clone, Copy, Default)]
struct TakenRoom {
    /// How many bytes there were on disk when that was measured.
    measured: Option<u64>,
    /// The bytes of writes since then.
    written: u64,
    /// When it was last asked to measure.
    asked: Option<Duration>,
}

impl Default for QuotaKeeper {
    fn default() -> Self {
        Self {
            limits: Quota::EVERY.map(|_| AtomicU64::new(UNLIMITED)),
            refusals: Default::default(),
            writes: Mutex::default(),
        }
    }
}

impl QuotaKeeper {
    pub(in crate::namespaces) fn set(&self, quotas: Quotas) {
        for quota in Quota::EVERY {
            let limit = quotas.get(quota).unwrap_or(UNLIMITED);
            self.limits[quota as usize].store(limit, Ordering::Relaxed);
        }
    }

    /// Returns a quota; `None` if there is none of that kind.
    pub fn limit(&self, quota: Quota) -> Option<u64> {
        let limit = self.limits[quota as usize].load(Ordering::Relaxed);
        (limit != UNLIMITED).then_some(limit)
    }

    /// Returns how often a quota has refused something since the start.
    pub fn refusals(&self, quota: Quota) -> u64 {
        self.refusals[quota as usize].load(Ordering::Relaxed)
    }

    /// Returns whether there is anything to tell of it.
    pub(in crate::namespaces) fn is_of_interest(&self) -> bool {
        let is_used = |quota| self.limit(quota).is_some() || self.refusals(quota) > 0;
        Quota::EVERY.into_iter().any(is_used)
    }

    /// Counts that something was refused, and returns the error that says so.
    pub fn refuse(&self, quota: Quota) -> Error {
        self.refusals[quota as usize].fetch_add(1, Ordering::Relaxed);
        Error::QuotaExceeded {
            quota: quota.name(),
            // It may have been removed meanwhile.
            limit: self.limit(quota).unwrap_or(0),
        }
    }

    /// Returns whether writes have to be measured: those of most namespaces have not.
    pub(crate) fn limits_writes(&self) -> bool {
        let quotas = [Quota::DiskBytes, Quota::EventsPerSecond];
        quotas.into_iter().any(|quota| self.limit(quota).is_some())
    }

    /// Returns whether the disk should be measured now. The caller has that done elsewhere: it may wait.
    pub(crate) fn must_measure(&self, log: WrittenLog, now: Duration) -> bool {
        if !self.limits_disk() {
            return false;
        }
        let asked = &mut self.writes.lock().logs[log as usize].asked;
        let is_due = asked.is_none_or(|asked| now.saturating_sub(asked) >= MEASURED_FOR);
        if is_due {
            *asked = Some(now);
        }
        is_due
    }

    /// Returns whether the room on disk is limited.
    pub(crate) fn limits_disk(&self) -> bool {
        self.limit(Quota::DiskBytes).is_some()
    }

    /// Notes how many bytes there are on disk.
    pub(crate) fn measured(&self, log: WrittenLog, bytes: u64) {
        let room = &mut self.writes.lock().logs[log as usize];
        room.measured = Some(bytes);
        room.written = 0;
    }

    /// Notes that there is one log again, which may be another one than before: it is measured soon.
    pub(crate) fn end_replacement(&self) {
        let logs = &mut self.writes.lock().logs;
        logs[WrittenLog::Beside as usize] = TakenRoom::default();
        logs[WrittenLog::Current as usize].asked = None;
    }

    /// Returns how long it takes until events may be appended again: nothing if they may now, or never.
    pub(crate) fn pause(&self, now: Duration) -> Duration {
        let limit = self.limit(Quota::EventsPerSecond);
        let Some(limit) = limit.filter(|limit| *limit > 0) else {
            return Duration::ZERO;
        };
        let mut writes = self.writes.lock();
        writes.grow(limit, now);
        match writes.events > 0.0 {
            true => Duration::ZERO,
            false => {
                let seconds = (1.0 - writes.events) / limit as f64;
                Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
            }
        }
    }

    /// Takes what a write needs, or refuses it and takes nothing.
    pub(crate) fn take(&self, log: WrittenLog, size: WriteSize, now: Duration) -> Result<()> {
        let (events_max, bytes_max) = (
            self.limit(Quota::EventsPerSecond),
            self.limit(Quota::DiskBytes),
        );
        let mut writes = self.writes.lock();
        if size.takes_room && bytes_max.is_some_and(|limit| writes.has_filled(limit)) {
            return Err(self.refuse(Quota::DiskBytes));
        }
        if let Some(limit) = events_max.filter(|_| size.events > 0)
            && !writes.take_events(size, limit, now)
        {
            return Err(self.refuse(Quota::EventsPerSecond));
        }
        let written = &mut writes.logs[log as usize].written;
        *written = written.saturating_add(size.bytes);
        Ok(())
    }
}

impl WriteAllowance {
    /// Returns whether so many bytes are on disk, as far as that is known.
    fn has_filled(&self, limit: u64) -> bool {
        let taken = |room: &TakenRoom| room.measured.unwrap_or(0).saturating_add(room.written);
        let is_known = self.logs.iter().any(|room| room.measured.is_some());
        let taken: u64 = self.logs.iter().map(taken).fold(0, u64::saturating_add);
        is_known && taken >= limit
    }

    /// The allowance grows by the quota each second, up to the quota. A commit that is larger than what is
    /// left is taken as long as something is left, and those after it wait until it is made up for.
    fn take_events(&mut self, size: WriteSize, limit: u64, now: Duration) -> bool {
        self.grow(limit, now);
        // What may never be appended is not owed either.
        if self.events <= 0.0 && (!size.may_owe || limit == 0) {
            return false;
        }
        self.events -= size.events as f64;
        true
    }

    fn grow(&mut self, limit: u64, now: Duration) {
        let most = limit as f64;
        let grown = match self.computed {
            Some(computed) => self.events + now.saturating_sub(computed).as_secs_f64() * most,
            None => most,
        };
        self.events = grown.min(most);
        self.computed = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(events: u64, bytes: u64) -> WriteSize {
        WriteSize {
            events,
            bytes,
            takes_room: true,
            may_owe: false,
        }
    }

    fn keeper(quota: Quota, limit: u64) -> QuotaKeeper {
        let (keeper, mut quotas) = (QuotaKeeper::default(), Quotas::default());
        assert!(!keeper.limits_writes());
        quotas.set(quota, Some(limit));
        keeper.set(quotas);
        assert!(keeper.limits_writes());
        keeper
    }

    #[test]
    fn events_are_taken_at_the_rate_of_the_quota() {
        let keeper = keeper(Quota::EventsPerSecond, 10);
        let at = |millis: u64, events: u64| {
            let taken = keeper.take(
                WrittenLog::Current,
                size(events, 0),
                Duration::from_millis(millis),
            );
            taken.map_err(|error| error.to_string())
        };
        at(0, 10).unwrap();
        let refused = "the namespace has used up its quota eventsPerSecond, which is 10";
        assert_eq!(at(0, 1).unwrap_err(), refused);
        at(0, 0).unwrap();
        at(100, 1).unwrap();
        // A large commit is taken if something is left, and made up for afterwards.
        at(1100, 25).unwrap();
        assert!(at(2500, 1).is_err());
        at(2700, 1).unwrap();
        assert_eq!(keeper.refusals(Quota::EventsPerSecond), 2);
        keeper.set(Quotas::default());
        assert!(!keeper.limits_writes());
    }

    #[test]
    fn nothing_is_written_beyond_the_quota_of_the_disk_but_what_makes_room() {
        let keeper = keeper(Quota::DiskBytes, 1000);
        let second = Duration::from_secs(1);
        // It is not known yet how much there is.
        assert!(keeper.must_measure(WrittenLog::Current, second));
        assert!(!keeper.must_measure(WrittenLog::Current, second));
        keeper
            .take(WrittenLog::Current, size(1, 10), second)
            .unwrap();
        keeper.measured(WrittenLog::Current, 900);
        keeper
            .take(WrittenLog::Current, size(1, 100), second)
            .unwrap();
        keeper
            .take(WrittenLog::Current, size(1, 1), second)
            .unwrap_err();
        keeper
            .take(WrittenLog::Current, WriteSize::default(), second)
            .unwrap();
        // It is measured again though everything is refused: somebody may have made room.
        assert!(keeper.must_measure(WrittenLog::Current, 2 * second));
        keeper.measured(WrittenLog::Current, 100);
        keeper
            .take(WrittenLog::Current, size(1, 1), 2 * second)
            .unwrap();
        assert_eq!(keeper.refusals(Quota::DiskBytes), 1);
    }

    #[test]
    fn what_the_disk_refuses_takes_no_events() {
        let keeper = QuotaKeeper::default();
        keeper.set(Quotas {
            disk_bytes: Some(1),
            events_per_second: Some(1),
            ..Quotas::default()
        });
        keeper.measured(WrittenLog::Current, 1);
        keeper
            .take(WrittenLog::Current, size(1, 1), Duration::ZERO)
            .unwrap_err();
        keeper.measured(WrittenLog::Current, 0);
        keeper
            .take(WrittenLog::Current, size(1, 0), Duration::ZERO)
            .unwrap();
    }

    #[test]
    fn what_replaces_the_events_takes_room_beside_them() {
        let keeper = keeper(Quota::DiskBytes, 1000);
        let (current, beside) = (WrittenLog::Current, WrittenLog::Beside);
        keeper.measured(current, 600);
        keeper.take(beside, size(1, 300), Duration::ZERO).unwrap();
        // That one of them is measured does not make the other one forgotten.
        keeper.measured(current, 600);
        keeper.take(beside, size(1, 100), Duration::ZERO).unwrap();
        keeper.measured(beside, 400);
        keeper.take(beside, size(1, 1), Duration::ZERO).unwrap_err();
        keeper
            .take(current, size(1, 1), Duration::ZERO)
            .unwrap_err();
        assert!(keeper.must_measure(current, Duration::ZERO));
        keeper.end_replacement();
        assert!(keeper.must_measure(current, Duration::ZERO));
        keeper.take(current, size(1, 1), Duration::ZERO).unwrap();
    }

    #[test]
    fn what_goes_on_waits_instead_of_being_refused() {
        let keeper = keeper(Quota::EventsPerSecond, 10);
        let second = Duration::from_secs(1);
        assert_eq!(keeper.pause(second), Duration::ZERO);
        let owing = WriteSize {
            may_owe: true,
            ..size(25, 0)
        };
        keeper.take(WrittenLog::Current, owing, second).unwrap();
        // Somebody else was faster: it is taken all the same.
        keeper.take(WrittenLog::Current, owing, second).unwrap();
        let pause = keeper.pause(second);
        assert!(pause > 4 * second && pause < 5 * second, "{pause:?}");
        assert_eq!(keeper.pause(second + pause), Duration::ZERO);
        assert_eq!(keeper.refusals(Quota::EventsPerSecond), 0);
        let mut none = Quotas::default();
        none.set(Quota::EventsPerSecond, Some(0));
        keeper.set(none);
        assert_eq!(keeper.pause(second), Duration::ZERO);
        keeper.take(WrittenLog::Current, owing, second).unwrap_err();
    }
}
