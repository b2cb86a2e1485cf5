//! Requests that are carried out together, and where their replies go.
//!
//! Either they all read, and do so at once on what is durable; or the first of them writes, and all
//! are handed to the writer, which carries them out in order.

use trefoil::{Call, Error, Executed, Reply, Transaction};

use super::failure::of_error;
use super::multi::{merge, of_transaction};
use crate::reply_memory::ReplyMemory;

/// Requests whose replies are not there yet, and replies that come after those.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) slots: Vec<Slot>,
    pub(super) reads: Vec<Call>,
    pub(super) transactions: Vec<Transaction>,
    /// What the replies of transactions take, until they are answered.
    pub(super) memory: Vec<ReplyMemory>,
}

/// The place of one reply.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) shape: Shape,
    /// Whose reply it is.
    pub(super) command: &'static str,
    /// Whether the client does not want it.
    pub(super) is_silent: bool,
}

/// Where a reply comes from.
#[derive(Debug)]
pub(super) enum Shape {
    /// It is there.
    Ready(Reply),
    /// From the next read, or from the only step of the next transaction.
    Single,
    /// From all steps of the next transaction, and these.
    Exec(Vec<(usize, Reply)>),
}

/// What came of the requests, in order.
#[derive(Debug)]
pub(super) enum Outcomes {
    Read(std::vec::IntoIter<Reply>),
    Executed(std::vec::IntoIter<Result<Executed, Error>>),
    /// Nothing: all get this error.
    Failed(Reply),
}

impl Outcomes {
    /// The reply for the next slot.
    pub(super) fn take(&mut self, shape: Shape) -> Reply {
        let missing = || of_error(&Error::Closed("the writer has no answer".to_owned()));
        match (shape, self) {
            (Shape::Ready(reply), _) => reply,
            (_, Self::Failed(reply)) => reply.clone(),
            (_, Self::Read(replies)) => replies.next().unwrap_or_else(missing),
            (Shape::Single, Self::Executed(executed)) => match executed.next() {
                Some(Ok(executed)) => executed.replies.into_iter().next().unwrap_or_else(missing),
                Some(Err(failure)) => of_error(&failure),
                None => missing(),
            },
            (Shape::Exec(extra), Self::Executed(executed)) => match executed.next() {
                Some(Ok(executed)) => merge(executed.replies, extra),
                Some(Err(failure)) => of_transaction(failure, &extra),
                None => missing(),
            },
        }
    }
}
