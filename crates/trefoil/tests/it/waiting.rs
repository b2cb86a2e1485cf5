//! Waiting for futures without a runtime: the library needs none.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Wakes this thread, which may be parked.
pub(crate) fn waker_of_this_thread() -> Waker {
    Waker::from(Arc::new(Unpark(std::thread::current())))
}

/// Starts all futures, in their order and before any of them can be waited for, and waits.
pub(crate) fn wait_for_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let waker = waker_of_this_thread();
    let mut context = Context::from_waker(&waker);
    let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut answers: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    while answers.iter().any(Option::is_none) {
        for (future, answer) in waiting.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(&mut context)
            {
                *answer = Some(output);
            }
        }
        if answers.iter().any(Option::is_none) {
            std::thread::park();
        }
    }
    answers.into_iter().flatten().collect()
}
