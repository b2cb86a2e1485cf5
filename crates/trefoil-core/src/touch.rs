//! Having the processor fetch the bodies of events before they are used.

use crate::NewEvent;

/// How many events are touched together: their bodies fit into the fastest cache.
pub const EVENTS_TOUCHED: usize = 16;

/// How many bytes the processor fetches at once.
const CACHE_LINE_BYTES: usize = 64;

/// Touches the bodies of the first [`EVENTS_TOUCHED`] of these events. Those of many events are not
/// in the processor's caches, and a thread that reads them in turn would wait for each of them.
pub fn touch_bodies<'a>(events: impl Iterator<Item = &'a NewEvent>) {
    let lines = events.take(EVENTS_TOUCHED).flat_map(|event| {
        let body: &[u8] = event.data.bytes();
        body.iter().step_by(CACHE_LINE_BYTES)
    });
    std::hint::black_box(lines.fold(0, |all, byte| all ^ byte));
}
