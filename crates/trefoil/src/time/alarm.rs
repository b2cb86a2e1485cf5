//! One thread that knows when something of an open database is due: keys that expire, garbage.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use trefoil_core::{Error, Result};

use crate::database::engine::Engine;
use crate::time::clock::Clock;

/// Nothing is due.
pub(crate) const NEVER: u64 = u64::MAX;

/// How long the thread sleeps at most: the wall clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// The thread, and what it waits for.
#[derive(Debug)]
pub(crate) struct Alarm {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// When the thread wakes, in milliseconds since 1970.
    wakes: AtomicU64,
    clock: Clock,
}

#[derive(Debug, Default)]
struct State {
    engines: Vec<Weak<Engine>>,
    is_closed: bool,
}

impl Alarm {
    pub(crate) fn start(clock: Clock) -> Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            wakes: AtomicU64::new(NEVER),
            clock,
        });
        let thread = std::thread::Builder::new()
            .name("trefoil-alarm".to_owned())
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

    /// Looks after an engine from now on.
    pub(crate) fn add(&self, engine: &Arc<Engine>) {
        let mut state = self.shared.state.lock();
        state.engines.retain(|engine| engine.strong_count() > 0);
        state.engines.push(Arc::downgrade(engine));
        drop(state);
        self.note(engine.wakes());
    }

    /// Something is due at this time.
    pub(crate) fn note(&self, due: u64) {
        if due < self.shared.wakes.load(Ordering::SeqCst) {
            self.shared.wakes.fetch_min(due, Ordering::SeqCst);
            // With the lock, so that the thread does not miss it between looking and sleeping.
            let _state = self.shared.state.lock();
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Alarm {
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

impl Shared {
    fn run(&self) {
        loop {
            self.wakes.store(NEVER, Ordering::SeqCst);
            let engines: Vec<_> = {
                let state = self.state.lock();
                state.engines.iter().filter_map(Weak::upgrade).collect()
            };
            self.clock.watch();
            let now = self.clock.now().millis();
            let mut next = NEVER;
            for engine in engines {
                engine.clean_what_is_due(now);
                next = next.min(engine.wakes());
            }
            self.wakes.fetch_min(next, Ordering::SeqCst);
            let mut state = self.state.lock();
            if state.is_closed {
                return;
            }
            let wait = self.wakes.load(Ordering::SeqCst).saturating_sub(now);
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
