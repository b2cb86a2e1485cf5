//! Doing two things at the same time, where there is enough to do for a second thread.

use std::sync::{Mutex, PoisonError};

/// Does both things: at the same time if that `pays` for starting a thread, which takes as long as
/// some hundred lookups; otherwise, or if no thread is to be had, one after the other.
pub fn both<A: Send, B>(
    pays: bool,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    if !pays {
        return (first(), second());
    }
    // A thread that cannot be started would take its work with it.
    let waiting = Mutex::new(Some(first));
    let take = || {
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    };
    std::thread::scope(|scope| {
        let begin = || take().map(|first| first());
        let beside = std::thread::Builder::new().spawn_scoped(scope, begin);
        let second = second();
        let first = match beside.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => begin(),
        };
        match first {
            Some(first) => (first, second),
            None => unreachable!("the one that began took the work"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_things_are_done_on_one_thread_or_two() {
        let here = std::thread::current().id();
        for pays in [false, true] {
            let (first, second) = both(pays, || std::thread::current().id(), || "done");
            assert_eq!(first != here, pays);
            assert_eq!(second, "done");
        }
    }

    #[test]
    #[should_panic(expected = "what it had to say")]
    fn a_panic_beside_goes_on_here() {
        both(true, || panic!("what it had to say"), || ());
    }
}
