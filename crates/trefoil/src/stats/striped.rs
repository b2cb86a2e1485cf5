//! Counters that many threads add to at the same time.
//!
//! A counter that two processors write to moves from the cache of one to that of the other with each
//! addition, which takes longer than all the rest. So each thread adds to a part of its own, and
//! whoever reads adds up the parts.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::histogram::{Histogram, HistogramSnapshot};

/// How many parts there are. Threads beyond this number share them.
const STRIPES: usize = 8;

static NEXT_STRIPE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: usize = NEXT_STRIPE.fetch_add(1, Ordering::Relaxed) % STRIPES;
}

/// Something that is counted in parts, of which each thread has one.
#[derive(Debug)]
pub struct Striped<T>(Box<[Stripe<T>]>);

/// A part that shares no line of a processor's cache with another.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe<T>(T);

impl<T: Default> Default for Striped<T> {
    fn default() -> Self {
        Self((0..STRIPES).map(|_| Stripe::default()).collect())
    }
}

impl<T> Striped<T> {
    /// Returns the part of this thread.
    fn here(&self) -> &T {
        &self.0[STRIPE.with(|stripe| *stripe)].0
    }

    fn parts(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|stripe| &stripe.0)
    }
}

impl Striped<AtomicU64> {
    /// Adds to the count.
    pub fn add(&self, n: u64) {
        self.here().fetch_add(n, Ordering::Relaxed);
    }

    /// Returns the count.
    pub fn get(&self) -> u64 {
        self.parts().map(|part| part.load(Ordering::Relaxed)).sum()
    }
}

impl Striped<Histogram> {
    /// Records a number.
    pub fn record(&self, number: u64) {
        self.here().record(number);
    }

    /// Records so many times how long something took, in nanoseconds.
    pub fn record_duration_times(&self, duration: Duration, times: u64) {
        let nanos = super::histogram::nanos(duration);
        self.here().record_times(nanos, times);
    }

    /// Records how long something took, in nanoseconds.
    pub fn record_duration(&self, duration: Duration) {
        self.here().record_duration(duration);
    }

    /// Returns a copy of all parts together.
    pub fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot::of_all(self.parts().map(Histogram::snapshot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_threads_add_is_counted() {
        let (count, histogram) = (Striped::<AtomicU64>::default(), Striped::default());
        std::thread::scope(|scope| {
            for number in 1..=20 {
                let (count, histogram) = (&count, &histogram);
                scope.spawn(move || {
                    count.add(number);
                    Striped::<Histogram>::record(histogram, number);
                });
            }
        });
        histogram.record_duration_times(Duration::from_nanos(3), 2);
        let snapshot = histogram.snapshot();
        assert_eq!(
            (count.get(), snapshot.count(), snapshot.sum()),
            (210, 22, 216)
        );
        assert_eq!(snapshot.count_up_to(4), 6);
    }
}
