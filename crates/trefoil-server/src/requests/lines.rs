//! How many lines of one kind the log gets.
//!
//! The first few of each kind in a while are logged, the others are counted. The next line of that
//! kind tells how many were left out; if none comes, a line of its own does.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use trefoil::Clock;

use crate::connections::Protocol;

/// So many lines of a kind are logged ...
const LINES_MAX: u32 = 5;
/// ... in this time.
const WINDOW: Duration = Duration::from_secs(10);

/// What lines are told apart by. There are few of them: all of it is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LineKey {
    pub(super) what: &'static str,
    pub(super) protocol: Protocol,
    pub(super) method: &'static str,
    pub(super) code: &'static str,
}

#[derive(Debug, Default)]
struct LineWindow {
    /// When it began, by the steady clock.
    began: Duration,
    n_logged: u32,
    n_left_out: u64,
}

/// How many lines of each kind there were lately.
#[derive(Debug, Default)]
pub(super) struct LineLimits(Mutex<HashMap<LineKey, LineWindow>>);

impl LineLimits {
    /// Returns how many lines of a kind were left out before this one; `None` if this one is left out
    /// as well.
    pub(super) fn admit(self: &Arc<Self>, key: LineKey, clock: &Clock) -> Option<u64> {
        let now = clock.steady();
        let mut windows = self.0.lock();
        let window = windows.entry(key).or_default();
        if window.n_logged == 0 || now.saturating_sub(window.began) >= WINDOW {
            (window.began, window.n_logged) = (now, 0);
        }
        if window.n_logged < LINES_MAX {
            window.n_logged += 1;
            return Some(std::mem::take(&mut window.n_left_out));
        }
        window.n_left_out += 1;
        if window.n_left_out == 1 {
            self.tell_later(key);
        }
        None
    }

    /// Tells how many lines were left out, when no others are to be expected.
    fn tell_later(self: &Arc<Self>, key: LineKey) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let limits = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(WINDOW).await;
            let Some(limits) = limits.upgrade() else {
                return;
            };
            let window = |window: &mut LineWindow| std::mem::take(&mut window.n_left_out);
            let left_out = limits.0.lock().get_mut(&key).map_or(0, window);
            if left_out > 0 {
                let LineKey {
                    what, method, code, ..
                } = key;
                let protocol = key.protocol.name();
                tracing::warn!(protocol, method, code, left_out, "more lines: {what}");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use trefoil::{ManualTime, Timestamp};

    use super::*;

    #[test]
    fn the_first_lines_are_logged_and_the_others_counted() {
        let time = ManualTime::new(Timestamp::default());
        let clock = Clock::new(Arc::clone(&time) as _);
        let limits = Arc::new(LineLimits::default());
        let key = |method| LineKey {
            what: "x",
            protocol: Protocol::Http,
            method,
            code: "",
        };
        let lines: Vec<_> = (0..10).map(|_| limits.admit(key("a"), &clock)).collect();
        assert_eq!(lines[..5], [Some(0); 5]);
        assert_eq!(lines[5..], [None; 5]);
        assert_eq!(limits.admit(key("b"), &clock), Some(0), "of another kind");
        time.advance(WINDOW);
        assert_eq!(limits.admit(key("a"), &clock), Some(5));
        assert_eq!(limits.admit(key("a"), &clock), Some(0));
    }
}
