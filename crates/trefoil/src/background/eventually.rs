//! Waiting, in tests, for what other threads do.

use std::time::Duration;

/// Waits until it is done, for half a minute at most.
pub(crate) fn eventually(is_done: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it was not done");
}
