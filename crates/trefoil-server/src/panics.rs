//! Panics: each is a fault of the server. They are counted, and cost the request that caused one.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use trefoil::Error;

/// How many panics there were in this process, on whatever thread.
pub(crate) static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts the panics of this process from now on, and writes them to the log.
pub(crate) fn count() {
    static COUNTED: Once = Once::new();
    COUNTED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            let place = panic.location().map(ToString::to_string);
            let text = panic.payload_as_str();
            tracing::error!(place, text, "the server panicked: please report this");
            before(panic);
        }));
    });
}

/// What a future resolves to; an error if it panics. It is pinned by the caller: it may be large, and
/// moving it costs as much as many a request.
pub(crate) async fn caught<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Result<T, Error> {
    poll_fn(|context| {
        let poll = || future.as_mut().poll(context);
        match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Error::Internal("the request panicked".to_owned()))),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_caught_and_counted() {
        count();
        let before = PANICS.load(Ordering::Relaxed);
        assert_eq!(caught(pin!(async { 1 })).await.unwrap(), 1);
        let panicking = pin!(async {
            tokio::task::yield_now().await;
            assert!(before == u64::MAX, "as it should");
        });
        assert!(matches!(caught(panicking).await, Err(Error::Internal(_))));
        // Other tests of this process may panic as well.
        assert!(PANICS.load(Ordering::Relaxed) > before);
    }
}
