//! Who waits for the answer to a request, and how answers get there.
//!
//! A task of a thread that serves connections is woken by a system call if another thread answers it.
//! So the answers of a group are handed to such a thread together, and it wakes its tasks itself.

use std::sync::Arc;

use trefoil_core::{Committed, Result};

use super::request::Executions;
use crate::database::host::ServingThread;

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) struct Caller<T> {
    reply: oneshot::Sender<T>,
    /// The thread that it waits on, if that serves connections.
    thread: Option<Arc<dyn ServingThread>>,
}

impl<T> Caller<T> {
    pub(crate) fn new(reply: oneshot::Sender<T>, thread: Option<Arc<dyn ServingThread>>) -> Self {
        Self { reply, thread }
    }

    /// Answers at once.
    pub(super) fn answer(self, answer: T) {
        // The caller may have gone.
        drop(self.reply.send(answer));
    }
}

impl<T> Caller<T>
where
    Delivery: From<(oneshot::Sender<T>, T)>,
{
    /// Answers with the others of the post.
    pub(super) fn answer_by(self, post: &mut Post, answer: T) {
        let delivery = Delivery::from((self.reply, answer));
        match self.thread {
            Some(thread) if !thread.is_here() => post.add(thread, delivery),
            _ => delivery.deliver(),
        }
    }
}

/// An answer, and who gets it.
pub(crate) enum Delivery {
    Write(oneshot::Sender<Result<Committed>>, Result<Committed>),
    Execute(oneshot::Sender<Executions>, Executions),
}

impl From<(oneshot::Sender<Result<Committed>>, Result<Committed>)> for Delivery {
    fn from((reply, answer): (oneshot::Sender<Result<Committed>>, Result<Committed>)) -> Self {
        Self::Write(reply, answer)
    }
}

impl From<(oneshot::Sender<Executions>, Executions)> for Delivery {
    fn from((reply, answer): (oneshot::Sender<Executions>, Executions)) -> Self {
        Self::Execute(reply, answer)
    }
}

impl Delivery {
    fn deliver(self) {
        // The caller may have gone.
        match self {
            Self::Write(reply, answer) => drop(reply.send(answer)),
            Self::Execute(reply, answer) => drop(reply.send(answer)),
        }
    }
}

/// Answers for other threads that serve connections. They leave when it is dropped.
#[derive(Default)]
pub(super) struct Post {
    /// There are few such threads.
    bags: Vec<(Arc<dyn ServingThread>, Vec<Delivery>)>,
}

impl Post {
    fn add(&mut self, thread: Arc<dyn ServingThread>, delivery: Delivery) {
        let bag = self
            .bags
            .iter_mut()
            .find(|(to, _)| Arc::ptr_eq(to, &thread));
        match bag {
            Some((_, bag)) => bag.push(delivery),
            None => self.bags.push((thread, vec![delivery])),
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        for (thread, bag) in self.bags.drain(..) {
            thread.run(Box::new(|| bag.into_iter().for_each(Delivery::deliver)));
        }
    }
}
