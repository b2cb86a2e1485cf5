//! The clock of a SlateDB.
//!
//! SlateDB refuses to write at a time before that of the last write, which another machine made. So its
//! clock begins where the last one ended. And it says when what is looked at now and then is looked at:
//! every request costs, so a store that nobody writes to is looked at once in a minute.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use slatedb_common::clock::{DefaultSystemClock, SystemClock, SystemClockTicker};
use tokio::sync::Notify;

/// How often a store is looked at that nobody writes to.
pub(super) const IDLE_POLL: Duration = Duration::from_secs(60);
const BUSY_POLL: Duration = Duration::from_secs(5);
/// The longest sleep that is one of those: SlateDB varies them.
const LONGEST_POLL: Duration = Duration::from_secs(120);

/// See the module.
#[derive(Debug)]
pub(super) struct StoreClock {
    system: DefaultSystemClock,
    /// By how many milliseconds it is ahead of the clock of the machine.
    ahead: AtomicI64,
    busy: Notify,
    /// How often a store is looked at that is written to.
    busy_poll: Duration,
}

impl StoreClock {
    /// Returns the clock of the machine.
    pub(super) fn new() -> Self {
        Self {
            system: DefaultSystemClock::new(),
            ahead: AtomicI64::new(0),
            busy: Notify::new(),
            busy_poll: BUSY_POLL,
        }
    }

    /// Moves the clock ahead, if it is behind a time by no more than `max`. Returns by how much it was
    /// behind.
    pub(super) fn catch_up(&self, milliseconds: i64, max: Duration) -> Duration {
        let behind = milliseconds.saturating_sub(self.now().timestamp_millis());
        let behind = Duration::from_millis(u64::try_from(behind).unwrap_or(0));
        if behind <= max {
            let step = i64::try_from(behind.as_millis()).unwrap_or(0);
            self.ahead.fetch_add(step, Ordering::Relaxed);
        }
        behind
    }

    /// Wakes those who look now and then: there is something to do.
    pub(super) fn hurry(&self) {
        self.busy.notify_waiters();
    }
}

impl SystemClock for StoreClock {
    fn now(&self) -> DateTime<Utc> {
        let ahead = TimeDelta::milliseconds(self.ahead.load(Ordering::Relaxed));
        let now = self.system.now();
        now.checked_add_signed(ahead).unwrap_or(now)
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        if duration <= self.busy_poll || duration > LONGEST_POLL {
            return self.system.sleep(duration);
        }
        Box::pin(async move {
            self.system.sleep(self.busy_poll).await;
            tokio::select! {
                () = self.system.sleep(duration.saturating_sub(self.busy_poll)) => {}
                () = self.busy.notified() => {}
            }
        })
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn it_begins_where_the_last_one_ended_and_goes_on() {
        let clock = StoreClock::new();
        let start = clock.now().timestamp_millis();
        assert_eq!(clock.catch_up(start - 1000, MINUTE), Duration::ZERO);
        let behind = clock.catch_up(start + 30_000, MINUTE);
        assert!(behind > Duration::from_secs(29), "{behind:?}");
        assert!(clock.now().timestamp_millis() >= start + 30_000);
        std::thread::sleep(Duration::from_millis(20));
        assert!(clock.now().timestamp_millis() >= start + 30_015);
    }

    #[test]
    fn it_does_not_go_far_ahead() {
        let clock = StoreClock::new();
        let start = clock.now().timestamp_millis();
        let behind = clock.catch_up(start + 90_000, MINUTE);
        assert!(behind > MINUTE);
        assert!(clock.now().timestamp_millis() < start + 60_000);
    }

    #[tokio::test]
    async fn a_poll_is_early_when_there_is_work() {
        let clock = StoreClock {
            busy_poll: Duration::from_millis(5),
            ..StoreClock::new()
        };
        let work = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            clock.hurry();
        };
        let both = async { tokio::join!(clock.sleep(IDLE_POLL), work) };
        let early = tokio::time::timeout(Duration::from_secs(20), both).await;
        early.expect("the poll was not early");
        let idle = clock.sleep(Duration::from_millis(300));
        let early = tokio::time::timeout(Duration::from_millis(100), idle).await;
        assert!(early.is_err(), "without work it comes when it is due");
    }
}
