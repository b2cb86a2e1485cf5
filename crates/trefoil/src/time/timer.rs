//! One thread that wakes each sleeper when its deadline has come.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use trefoil_core::{Error, Result};

use crate::time::NEVER;
use crate::time::clock::Clock;

/// How long the thread sleeps at most: the wall clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// What has deadlines: an open database, and the set of closed namespaces.
pub(crate) trait Sleeper: Debug + Send + Sync {
    /// Returns when it must be woken next.
    fn deadline(&self) -> u64;

    /// Has what is due at `now` done by other threads, and returns at once. Its next deadline is
    /// later than `now`.
    fn wake(self: Arc<Self>, now: u64);
}

/// The thread, and the sleepers that it wakes.
#[derive(Debug)]
pub(crate) struct TimerThread {
    shared: Arc<TimerShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct TimerShared {
    state: Mutex<TimerState>,
    changed: Condvar,
    /// When the thread looks at the sleepers next.
    next: AtomicU64,
    clock: Clock,
}

#[derive(Debug, Default)]
struct TimerState {
    sleepers: Vec<Weak<dyn Sleeper>>,
    is_closed: bool,
}

impl TimerThread {
    pub(crate) fn start(clock: Clock) -> Result<Self> {
        let shared = Arc::new(TimerShared {
            state: Mutex::default(),
            changed: Condvar::new(),
            next: AtomicU64::new(NEVER),
            clock,
        });
        let thread = std::thread::Builder::new()
            .name("trefoil-timer".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.run()
            })
            .map_err(|error| Error::io("starting a thread", &error))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Wakes a sleeper from now on, as long as it is there.
    pub(crate) fn add<S: Sleeper + 'static>(&self, sleeper: &Arc<S>) {
        let mut state = self.shared.state.lock();
        state.sleepers.retain(|sleeper| sleeper.strong_count() > 0);
        let sleeping: Weak<S> = Arc::downgrade(sleeper);
        state.sleepers.push(sleeping);
        drop(state);
        self.note(sleeper.deadline());
    }

    /// Notes that a sleeper has a new deadline.
    pub(crate) fn note(&self, deadline: u64) {
        if deadline < self.shared.next.load(Ordering::SeqCst) {
            self.shared.next.fetch_min(deadline, Ordering::SeqCst);
            // With the lock, so that the thread does not miss it between looking and sleeping.
            let _state = self.shared.state.lock();
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take()
            // The last handle may be dropped by the thread itself.
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl TimerShared {
    fn run(&self) {
        loop {
            self.next.store(NEVER, Ordering::SeqCst);
            let sleepers: Vec<_> = {
                let state = self.state.lock();
                state.sleepers.iter().filter_map(Weak::upgrade).collect()
            };
            self.clock.watch();
            let now = self.clock.now().millis();
            let mut next = NEVER;
            for sleeper in sleepers {
                if sleeper.deadline() <= now {
                    Arc::clone(&sleeper).wake(now);
                }
                next = next.min(sleeper.deadline());
            }
            self.next.fetch_min(next, Ordering::SeqCst);
            let mut state = self.state.lock();
            if state.is_closed {
                return;
            }
            let wait = self.next.load(Ordering::SeqCst).saturating_sub(now);
            if wait > 0 {
                let wait = Duration::from_millis(wait).min(SLEEP_MAX);
                self.changed.wait_for(&mut state, wait);
            }
            if state.is_closed {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use trefoil_core::Timestamp;

    use super::*;
    use crate::ManualTime;

    /// Tells when it was woken, and has no deadline after that.
    #[derive(Debug)]
    struct Once {
        deadline: AtomicU64,
        woken: mpsc::Sender<u64>,
    }

    impl Sleeper for Once {
        fn deadline(&self) -> u64 {
            self.deadline.load(Ordering::SeqCst)
        }

        fn wake(self: Arc<Self>, now: u64) {
            self.deadline.store(NEVER, Ordering::SeqCst);
            self.woken.send(now).unwrap();
        }
    }

    #[test]
    fn a_sleeper_is_woken_when_the_clock_reaches_its_deadline() {
        let time = ManualTime::new(Timestamp(0));
        let timer = TimerThread::start(Clock::new(time.clone())).unwrap();
        let (woken, wakes) = mpsc::channel();
        let deadline = AtomicU64::new(7_000);
        let sleeper = Arc::new(Once { deadline, woken });
        timer.add(&sleeper);
        let early = wakes.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "{early:?}");
        time.advance(Duration::from_secs(7));
        // The clock was set, which the thread sees when it looks next.
        assert_eq!(wakes.recv(), Ok(7_000));
        // A new deadline that has come already is seen at once.
        sleeper.deadline.store(6_000, Ordering::SeqCst);
        timer.note(6_000);
        assert_eq!(wakes.recv(), Ok(7_000));
        drop(sleeper);
        assert!(wakes.recv().is_err(), "nobody keeps a sleeper alive");
    }
}
