//! How much is being written: work that can wait looks here before it begins.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// More bytes per second than this are a load beside which nothing should run that can wait.
const HIGH_DEMAND_BYTES: f64 = 8.0 * 1024.0 * 1024.0;
/// Demand is judged over at least this long.
const DEMAND_PERIOD: Duration = Duration::from_millis(250);

/// How much is being written.
#[derive(Debug)]
pub(crate) struct Demand {
    bytes: AtomicU64,
    /// When the bytes were last looked at, how many there were, and whether that was much.
    last: Mutex<(Instant, u64, bool)>,
}

impl Demand {
    pub(crate) fn new() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            last: Mutex::new((Instant::now(), 0, false)),
        }
    }

    pub(crate) fn note(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether as much was written of late that nothing should run beside it that can wait.
    pub(crate) fn is_high(&self) -> bool {
        let mut last = self.last.lock();
        let (since, before, was_high) = *last;
        if since.elapsed() < DEMAND_PERIOD {
            return was_high;
        }
        let bytes = self.bytes.load(Ordering::Relaxed);
        let is_high = (bytes - before) as f64 / since.elapsed().as_secs_f64() > HIGH_DEMAND_BYTES;
        *last = (Instant::now(), bytes, is_high);
        is_high
    }
}
