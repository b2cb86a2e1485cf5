//! What time it is: the one place that reads a clock.
//!
//! Deadlines (expiries, holds, how long replies are kept) are set and judged by the wall clock as it
//! is. Only the times of events never go backwards: an event gets the wall clock's time or that of the
//! event before it, whichever is later. So a clock that was wrong for a while leaves a few events with
//! a late time, and deadlines that were set meanwhile where they were set, as in Redis.

#![allow(
    clippy::disallowed_methods,
    reason = "all other code gets the time from here"
)]

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use trefoil_core::Timestamp;
use trefoil_storage::Stopwatch;

/// A clock that moves by more than this against the steady one was set, or the machine slept.
const JUMP_MAX: Duration = Duration::from_secs(10);

/// Where a [`Clock`] reads the time.
pub trait TimeSource: Debug + Send + Sync {
    /// Returns the time by the wall clock, which may be set.
    fn wall(&self) -> Timestamp;

    /// Returns the time since some moment in the past, by a clock that is never set.
    fn steady(&self) -> Duration;

    /// Returns both, of about the same moment.
    fn both(&self) -> (Timestamp, Duration) {
        (self.wall(), self.steady())
    }
}

/// The clock of a process. Clones are the same clock.
#[derive(Clone)]
pub struct Clock {
    inner: Arc<ClockInner>,
}

impl Stopwatch for Clock {
    fn elapsed(&self) -> Duration {
        self.steady()
    }
}

/// Without the time, so that options that are the same look the same.
impl Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct ClockInner {
    source: Arc<dyn TimeSource>,
    /// By how many nanoseconds the wall clock was ahead of the steady one when last looked at.
    offset: AtomicI64,
    n_jumps: AtomicU64,
    /// When it was last seen to have jumped ahead, by the steady clock.
    jumped_ahead: Mutex<Option<Duration>>,
    /// The highest time that an event was given, in nanoseconds since 1970.
    last_event: AtomicI64,
    /// Whether it is known that events have later times than the wall clock.
    is_behind: AtomicBool,
}

impl Default for Clock {
    /// The clock of the operating system.
    fn default() -> Self {
        Self::new(Arc::new(OperatingSystem(Instant::now())))
    }
}

impl Clock {
    /// A clock that reads the time from `source`.
    pub fn new(source: Arc<dyn TimeSource>) -> Self {
        Self {
            inner: Arc::new(ClockInner {
                offset: AtomicI64::new(offset(source.as_ref())),
                source,
                n_jumps: AtomicU64::new(0),
                jumped_ahead: Mutex::new(None),
                last_event: AtomicI64::new(0),
                is_behind: AtomicBool::new(false),
            }),
        }
    }

    /// Returns the time by the wall clock.
    pub fn now(&self) -> Timestamp {
        self.inner.source.wall()
    }

    /// Returns the time since some moment in the past, by a clock that is never set. It measures how
    /// long something takes; see [`Self::since`].
    pub fn steady(&self) -> Duration {
        self.inner.source.steady()
    }

    /// Returns how long ago `began` is, which [`Self::steady`] returned.
    pub fn since(&self, began: Duration) -> Duration {
        self.steady().saturating_sub(began)
    }

    /// Returns how often the wall clock was seen to jump by more than ten seconds.
    pub fn n_jumps(&self) -> u64 {
        self.inner.n_jumps.load(Ordering::Relaxed)
    }

    /// Returns how long ago the wall clock was last seen to jump ahead; `None` if it was not. Looks whether it
    /// just did.
    pub(crate) fn since_jump_ahead(&self) -> Option<Duration> {
        self.watch();
        let jumped = *self.inner.jumped_ahead.lock();
        jumped.map(|jumped| self.since(jumped))
    }

    /// Returns by how much the wall clock is behind the time of the last event.
    pub fn behind(&self) -> Duration {
        let last = self.inner.last_event.load(Ordering::Relaxed);
        let behind = last.saturating_sub(self.now().0);
        Duration::from_nanos(u64::try_from(behind).unwrap_or(0))
    }

    /// Notes the time that an event was given.
    pub(crate) fn note_event(&self, time: Timestamp) {
        self.inner.last_event.fetch_max(time.0, Ordering::Relaxed);
    }

    /// Looks whether the clock was set, and reports it. To be called every now and then.
    pub(crate) fn watch(&self) {
        let now = offset(self.inner.source.as_ref());
        let before = self.inner.offset.swap(now, Ordering::Relaxed);
        let jump = now.saturating_sub(before);
        if u128::from(jump.unsigned_abs()) > JUMP_MAX.as_nanos() {
            self.inner.n_jumps.fetch_add(1, Ordering::Relaxed);
            if jump > 0 {
                *self.inner.jumped_ahead.lock() = Some(self.steady());
            }
            let seconds = jump as f64 / 1e9;
            tracing::warn!(
                seconds,
                "the wall clock jumped: it was set, or the machine slept"
            );
        }
        let behind = self.behind();
        let is_behind = behind > JUMP_MAX;
        let was_behind = self.inner.is_behind.swap(is_behind, Ordering::Relaxed);
        if is_behind && !was_behind {
            let seconds = behind.as_secs_f64();
            tracing::warn!(
                seconds,
                "the wall clock is behind the last event: new events get its time until then"
            );
        }
    }
}

/// By how many nanoseconds the wall clock is ahead of the steady one.
fn offset(source: &dyn TimeSource) -> i64 {
    let (wall, steady) = source.both();
    let steady = i64::try_from(steady.as_nanos()).unwrap_or(i64::MAX);
    wall.0.saturating_sub(steady)
}

/// The clocks of the operating system, and when the steady one was first read.
#[derive(Debug)]
struct OperatingSystem(Instant);

impl TimeSource for OperatingSystem {
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    fn steady(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A time that stands still until it is moved, for tests.
#[derive(Debug, Default)]
pub struct ManualTime(Mutex<(Timestamp, Duration)>);

impl ManualTime {
    /// A time that stands at `wall`.
    pub fn new(wall: Timestamp) -> Arc<Self> {
        Arc::new(Self(Mutex::new((wall, Duration::ZERO))))
    }

    /// Sets the wall clock, in either direction, as an administrator would.
    pub fn set(&self, wall: Timestamp) {
        self.0.lock().0 = wall;
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        let mut both = self.0.lock();
        let nanos = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        both.0.0 = both.0.0.saturating_add(nanos);
        both.1 += time;
    }
}

impl TimeSource for ManualTime {
    fn wall(&self) -> Timestamp {
        self.both().0
    }

    fn steady(&self) -> Duration {
        self.both().1
    }

    fn both(&self) -> (Timestamp, Duration) {
        *self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000_000_000)
    }

    #[test]
    fn a_jump_in_either_direction_is_counted_and_passing_time_is_not() {
        let time = ManualTime::new(seconds(1_000));
        let clock = Clock::new(time.clone());
        time.advance(Duration::from_secs(3600));
        clock.watch();
        time.set(seconds(4_600 + 9));
        clock.watch();
        assert_eq!(clock.n_jumps(), 0);
        time.set(seconds(1_000_000));
        clock.watch();
        clock.watch();
        assert_eq!(clock.n_jumps(), 1);
        time.set(seconds(5_000));
        clock.watch();
        assert_eq!(clock.n_jumps(), 2);
    }

    #[test]
    fn it_says_for_how_long_it_may_be_ahead() {
        let time = ManualTime::new(seconds(1_000));
        let clock = Clock::new(time.clone());
        time.set(seconds(500));
        assert_eq!(clock.since_jump_ahead(), None);
        time.set(seconds(1_000_000));
        assert_eq!(clock.since_jump_ahead(), Some(Duration::ZERO));
        time.advance(Duration::from_secs(60));
        time.set(seconds(1_000));
        assert_eq!(clock.since_jump_ahead(), Some(Duration::from_secs(60)));
    }

    #[test]
    fn it_says_how_far_events_are_ahead() {
        let time = ManualTime::new(seconds(100));
        let clock = Clock::new(time.clone());
        clock.note_event(seconds(90));
        assert_eq!(clock.behind(), Duration::ZERO);
        clock.note_event(seconds(160));
        clock.note_event(seconds(100));
        assert_eq!(clock.behind(), Duration::from_secs(60));
        time.advance(Duration::from_secs(61));
        assert_eq!(clock.behind(), Duration::ZERO);
    }
}
