//! What systemd is told, if it started the program (`Type=notify`): that the server is ready, that it stops,
//! and now and then that it is alive.

use sd_notify::NotifyState;

/// Tells that the server is ready, and from now on that it is alive, as often as systemd asks for it.
pub(crate) fn is_ready() {
    tell(NotifyState::Ready);
    let Some(patience) = sd_notify::watchdog_enabled() else {
        return;
    };
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(patience / 3);
        loop {
            ticks.tick().await;
            tell(NotifyState::Watchdog);
        }
    });
}

/// Tells that the server stops.
pub(crate) fn is_stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    // Without systemd there is nobody to tell.
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "cannot tell systemd how the server is");
    }
}
