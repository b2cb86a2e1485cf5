//! What a connection has been doing, and what follows from it: when it has been idle for too long,
//! and whether a client that closed its side has gone or waits for its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use hyper::body::Incoming;
use hyper::{Request, Version};
use trefoil::Clock;

use crate::Config;

/// How many turns of its connection a request may take to be read once its client has closed its
/// side.
const HELD_BACK_MAX: usize = 3;

/// What a connection has been doing, in milliseconds since it began.
#[derive(Debug)]
pub(super) struct Activity {
    clock: Clock,
    /// When it began, by the steady clock.
    began: Duration,
    requests: AtomicUsize,
    /// When a request last began or ended.
    changed: AtomicU64,
    /// When the first byte after that came in, plus one; 0 if none did.
    head_began: AtomicU64,
    /// On HTTP/2, bytes come in for other reasons than a new request.
    is_http2: AtomicBool,
    /// Whether the client has sent its whole request and waits for a short answer.
    is_answering: AtomicBool,
    /// How often the end of the client's side has been held back to let its request be read.
    held_back: AtomicUsize,
    /// Reads again when an end that was held back may be told.
    reader: AtomicWaker,
}

impl Activity {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            began: clock.steady(),
            clock,
            requests: AtomicUsize::new(0),
            changed: AtomicU64::new(0),
            head_began: AtomicU64::new(0),
            is_http2: AtomicBool::new(false),
            is_answering: AtomicBool::new(false),
            held_back: AtomicUsize::new(0),
            reader: AtomicWaker::new(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.since(self.began).as_millis()).unwrap_or(u64::MAX)
    }

    fn change(&self) {
        self.changed.store(self.now(), Ordering::Relaxed);
        self.head_began.store(0, Ordering::Relaxed);
    }

    pub(super) fn bytes_came_in(&self) {
        if self.head_began.load(Ordering::Relaxed) == 0 {
            self.head_began.store(self.now() + 1, Ordering::Relaxed);
        }
    }

    /// Whether the end of the client's side is not to be told yet: what it sent before is still on
    /// its way to the request, or its answer is near.
    pub(super) fn holds_back_end(&self, context: &Context<'_>) -> bool {
        if self.is_answering.load(Ordering::Relaxed) {
            self.reader.register(context.waker());
            return true;
        }
        let is_under_way = self.requests.load(Ordering::Relaxed) > 0;
        if is_under_way && self.held_back.fetch_add(1, Ordering::Relaxed) < HELD_BACK_MAX {
            context.waker().wake_by_ref();
            return true;
        }
        false
    }

    /// Returns how long the client may do nothing from now on; zero if it has done so for too long.
    pub(super) fn time_left(&self, config: &Config) -> Duration {
        if self.requests.load(Ordering::Relaxed) > 0 {
            return config.idle_timeout.min(config.head_timeout);
        }
        let is_http2 = self.is_http2.load(Ordering::Relaxed);
        let (since, limit) = match self.head_began.load(Ordering::Relaxed) {
            began if began > 0 && !is_http2 => (began - 1, config.head_timeout),
            _ => (self.changed.load(Ordering::Relaxed), config.idle_timeout),
        };
        let elapsed = Duration::from_millis(self.now().saturating_sub(since));
        limit.saturating_sub(elapsed).min(config.head_timeout)
    }
}

/// A request that is not answered to its end.
pub(crate) struct UnderWay(Arc<Activity>);

impl UnderWay {
    pub(super) fn begin(activity: &Arc<Activity>, request: &Request<Incoming>) -> Self {
        activity.requests.fetch_add(1, Ordering::Relaxed);
        activity.held_back.store(0, Ordering::Relaxed);
        activity.change();
        if request.version() == Version::HTTP_2 {
            activity.is_http2.store(true, Ordering::Relaxed);
        }
        Self(Arc::clone(activity))
    }

    /// Says that the whole request is here and its answer is near. A client that closes its side
    /// now still gets the answer; at any other time it is taken to have gone.
    pub(crate) fn is_complete(&self) {
        if !self.0.is_http2.load(Ordering::Relaxed) {
            self.0.is_answering.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.change();
        self.0.is_answering.store(false, Ordering::Relaxed);
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
        self.0.reader.wake();
    }
}
