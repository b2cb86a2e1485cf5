//! When a group is durable: at once, or later without a thread that waits for it.

use std::fmt;
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;
use trefoil_core::{Error, Result};

/// What became of a group, or who will say so.
#[derive(Debug)]
#[must_use = "a group that is not completed may fail unnoticed"]
pub enum Completion {
    /// The group is durable, or it failed.
    Now(Result<()>),
    /// The group is on its way.
    Later(Pending),
}

impl Completion {
    /// A completion that comes later, and what completes it.
    pub fn later() -> (Completer, Self) {
        let shared = Arc::new(Mutex::new(CompletionState::Waiting));
        let completer = Completer {
            shared: Some(Arc::clone(&shared)),
        };
        (completer, Self::Later(Pending { shared }))
    }

    /// Waits until the group is durable. Blocks the thread.
    pub fn wait(self) -> Result<()> {
        let pending = match self {
            Self::Now(completed) => return completed,
            Self::Later(pending) => pending,
        };
        let (reply, answer) = mpsc::channel();
        pending.then(move |completed| {
            // The receiver is there: it waits below.
            let _ = reply.send(completed);
        });
        answer.recv().unwrap_or_else(|_| Err(given_up()))
    }
}

impl From<Result<()>> for Completion {
    fn from(completed: Result<()>) -> Self {
        Self::Now(completed)
    }
}

/// What is done with a group's result.
type Callback = Box<dyn FnOnce(Result<()>) + Send>;

enum CompletionState {
    Waiting,
    Completed(Result<()>),
    Expected(Callback),
    Over,
}

impl fmt::Debug for CompletionState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Waiting => "Waiting",
            Self::Completed(_) => "Completed",
            Self::Expected(_) => "Expected",
            Self::Over => "Over",
        })
    }
}

/// A group that is on its way.
#[derive(Debug)]
pub struct Pending {
    shared: Arc<Mutex<CompletionState>>,
}

impl Pending {
    /// Calls `callback` with the result: on the thread that completes the group, or on this one if it
    /// is completed already. It must not block that thread.
    pub fn then(self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        let mut state = self.shared.lock();
        match std::mem::replace(&mut *state, CompletionState::Over) {
            CompletionState::Completed(completed) => {
                drop(state);
                callback(completed);
            }
            _ => *state = CompletionState::Expected(Box::new(callback)),
        }
    }
}

/// Completes a group. If it is dropped before, nobody knows whether the group is in the log.
#[derive(Debug)]
pub struct Completer {
    /// `None` once it has completed the group.
    shared: Option<Arc<Mutex<CompletionState>>>,
}

impl Completer {
    /// Says what became of the group.
    pub fn complete(mut self, completed: Result<()>) {
        self.finish(completed);
    }

    fn finish(&mut self, completed: Result<()>) {
        let Some(shared) = self.shared.take() else {
            return;
        };
        let mut state = shared.lock();
        match std::mem::replace(&mut *state, CompletionState::Over) {
            CompletionState::Expected(callback) => {
                drop(state);
                callback(completed);
            }
            _ => *state = CompletionState::Completed(completed),
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        self.finish(Err(given_up()));
    }
}

fn given_up() -> Error {
    Error::result_lost("the storage gave the group up without saying what became of it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_comes_before_or_after_somebody_asks() {
        let (completer, completion) = Completion::later();
        completer.complete(Ok(()));
        completion.wait().unwrap();

        let (completer, completion) = Completion::later();
        let thread = std::thread::spawn(move || completion.wait());
        completer.complete(Err(Error::invalid("no")));
        assert!(matches!(thread.join().unwrap(), Err(Error::Invalid(_))));

        Completion::from(Ok(())).wait().unwrap();
    }

    #[test]
    fn a_group_that_is_given_up_may_be_in_the_log() {
        let (completer, completion) = Completion::later();
        drop(completer);
        assert!(matches!(completion.wait(), Err(Error::Unknown { .. })));
    }
}
