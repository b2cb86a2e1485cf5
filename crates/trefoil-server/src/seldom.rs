//! A future that is polled only when it was woken.
//!
//! A task that waits for several things polls all of them whenever one of them has happened. Some
//! happen at most once, as when the server stops, and to ask for that takes locks: with each request,
//! if it is asked as often as for requests.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

/// A future that is polled only when it was woken.
pub(crate) struct Seldom<'a> {
    future: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
    alarm: Arc<Alarm>,
    /// What wakes the future.
    waker: Waker,
    /// The task that the alarm wakes.
    task: Option<Waker>,
}

/// Notes that the future was woken, and wakes its task.
#[derive(Default)]
struct Alarm {
    has_rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.has_rung.store(true, Ordering::SeqCst);
        let task = self.task.lock().clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl<'a> Seldom<'a> {
    pub(crate) fn new(future: impl Future<Output = ()> + Send + 'a) -> Self {
        let alarm = Arc::new(Alarm::default());
        // It has to be polled once to be woken at all.
        alarm.has_rung.store(true, Ordering::SeqCst);
        Self {
            future: Box::pin(future),
            waker: Arc::clone(&alarm).into(),
            alarm,
            task: None,
        }
    }
}

impl Future for Seldom<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let task = context.waker();
        if !this
            .task
            .as_ref()
            .is_some_and(|known| known.will_wake(task))
        {
            *this.alarm.task.lock() = Some(task.clone());
            this.task = Some(task.clone());
        }
        if !this.alarm.has_rung.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        this.alarm.has_rung.store(false, Ordering::SeqCst);
        this.future
            .as_mut()
            .poll(&mut Context::from_waker(&this.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn it_is_polled_when_it_was_woken_and_ends_when_it_is_over() {
        let (token, polls) = (CancellationToken::new(), AtomicUsize::new(0));
        let mut seldom = Seldom::new(async {
            let mut cancelled = Box::pin(token.cancelled());
            std::future::poll_fn(|context| {
                polls.fetch_add(1, Ordering::Relaxed);
                cancelled.as_mut().poll(context)
            })
            .await;
        });
        for _ in 0..10 {
            tokio::select! {
                biased;
                () = &mut seldom => panic!("it is not over"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        let later = token.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            later.cancel();
        });
        seldom.await;
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn another_task_that_polls_it_is_woken() {
        let token = CancellationToken::new();
        let cancelled = token.clone();
        let mut seldom = Seldom::new(async move { cancelled.cancelled().await });
        tokio::select! {
            biased;
            () = &mut seldom => panic!("it is not over"),
            () = tokio::task::yield_now() => {}
        }
        let other = tokio::spawn(seldom);
        tokio::time::sleep(Duration::from_millis(10)).await;
        token.cancel();
        other.await.unwrap();
    }
}
