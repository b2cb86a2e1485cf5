//! How long the owner of a namespace is looked for while it moves.

use std::time::Duration;

use tokio::time::sleep;
use trefoil::Clock;

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Pauses between attempts, each longer than the one before, until a time is over.
#[derive(Debug)]
pub(crate) struct Patience {
    clock: Clock,
    /// Until when, by the steady clock.
    until: Duration,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(clock: &Clock, time: Duration) -> Self {
        Self {
            until: clock.steady() + time,
            clock: clock.clone(),
            pause: PAUSE_MIN,
        }
    }

    /// Waits until the next attempt. Returns whether there is to be one.
    pub(crate) async fn wait(&mut self) -> bool {
        if self.clock.steady() + self.pause > self.until {
            return false;
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}
