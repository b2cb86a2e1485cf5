//! Replies that leave at the end of a turn.
//!
//! A thread that serves connections first answers all that has arrived on any of them, and then sends
//! all replies. That takes less time than to send each when it is made: the processor does one thing at a
//! time, and a program that waits for several replies is woken once for all of them.
//!
//! What a socket does not take at once is handed back to its connection, which waits for the client.

use std::cell::RefCell;
use std::io;
use std::mem::{replace, swap, take};
use std::net::Shutdown;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, BytesMut};
use parking_lot::Mutex;
use socket2::SockRef;
use tokio::net::tcp::OwnedWriteHalf;

use crate::limits::RESP_OUTBOX_BYTES_MAX;
use crate::threads;

/// A buffer that is larger than this is given back when it is empty.
const KEPT_BYTES: usize = 512;

/// The side of a socket on which replies leave.
#[derive(Debug)]
pub(super) struct OutboxSocket {
    socket: OwnedWriteHalf,
    posted: Mutex<Posted>,
}

/// What leaves at the end of the turn.
#[derive(Debug, Default)]
struct Posted {
    bytes: BytesMut,
    /// Whether the end of the turn knows of it.
    is_listed: bool,
    /// Whether some of it did not leave.
    is_stuck: bool,
    /// The task of the connection.
    task: Option<Waker>,
}

impl Posted {
    /// Sends as much as the socket takes. Returns whether that is all.
    fn send(&mut self, socket: &OwnedWriteHalf) -> io::Result<bool> {
        let written = socket.try_write(&self.bytes)?;
        if written < self.bytes.len() {
            self.bytes.advance(written);
            return Ok(false);
        }
        // The buffer keeps its room, which it loses when it advances.
        match self.bytes.capacity() > KEPT_BYTES {
            true => self.bytes = BytesMut::new(),
            false => self.bytes.clear(),
        }
        Ok(true)
    }
}

impl OutboxSocket {
    pub(super) fn new(socket: OwnedWriteHalf) -> Arc<Self> {
        let posted = Mutex::default();
        Arc::new(Self { socket, posted })
    }

    /// Has bytes leave at the end of the turn, unless they are many, or this is a thread whose turns are
    /// not known. Returns whether it took them.
    pub(super) fn post(self: &Arc<Self>, bytes: &mut BytesMut) -> bool {
        let mut posted = self.posted.lock();
        let n_bytes = posted.bytes.len() + bytes.len();
        if posted.is_stuck || n_bytes > RESP_OUTBOX_BYTES_MAX || !threads::is_serving() {
            return false;
        }
        // A large buffer stays where it is counted.
        match posted.bytes.is_empty() && bytes.capacity() <= RESP_OUTBOX_BYTES_MAX {
            true => swap(&mut posted.bytes, bytes),
            false => posted.bytes.extend_from_slice(bytes),
        }
        bytes.clear();
        if !replace(&mut posted.is_listed, true) {
            list(Arc::clone(self));
        }
        true
    }

    /// Takes back what was posted and has not left, to be sent before these bytes.
    pub(super) fn take_back(&self, bytes: &mut BytesMut) {
        let mut posted = self.posted.lock();
        posted.is_stuck = false;
        if !posted.bytes.is_empty() {
            let mut first = take(&mut posted.bytes);
            first.extend_from_slice(bytes);
            *bytes = first;
        }
    }

    /// Completes when the socket did not take all that was posted.
    pub(super) fn poll_stuck(&self, context: &Context<'_>) -> Poll<()> {
        let mut posted = self.posted.lock();
        if posted.is_stuck {
            return Poll::Ready(());
        }
        let waker = context.waker();
        let is_known = |task: &Waker| task.will_wake(waker);
        if !posted.task.as_ref().is_some_and(is_known) {
            posted.task = Some(waker.clone());
        }
        Poll::Pending
    }

    /// The turn ends.
    fn leave(&self) {
        let mut posted = self.posted.lock();
        posted.is_listed = false;
        if posted.bytes.is_empty() {
            return;
        }
        // An error is found again by the connection when it sends the rest.
        if !posted.send(&self.socket).unwrap_or_default() {
            posted.is_stuck = true;
            if let Some(task) = &posted.task {
                task.wake_by_ref();
            }
        }
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.try_write(bytes)
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        self.socket.writable().await
    }

    /// Says that nothing more will come.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        SockRef::from(self.socket.as_ref()).shutdown(Shutdown::Write)
    }
}

/// The connections of a thread on which something leaves at the end of the turn.
#[derive(Default)]
struct Outbox {
    listed: Vec<Arc<OutboxSocket>>,
    /// Wakes the task that sends; `None` if there was nothing to send yet.
    sender: Option<Waker>,
}

thread_local! {
    static OUTBOX: RefCell<Outbox> = RefCell::default();
}

fn list(socket: Arc<OutboxSocket>) {
    OUTBOX.with_borrow_mut(|outbox| {
        if outbox.listed.is_empty() {
            // Tasks run in the order in which they are woken, so this one after all that were woken when
            // the turn began.
            match &outbox.sender {
                Some(sender) => sender.wake_by_ref(),
                None => drop(tokio::spawn(std::future::poll_fn(send_listed))),
            }
        }
        outbox.listed.push(socket);
    });
}

/// Sends what is listed. There will be more.
fn send_listed(context: &mut Context<'_>) -> Poll<()> {
    let mut listed = OUTBOX.with_borrow_mut(|outbox| {
        outbox.sender.get_or_insert_with(|| context.waker().clone());
        take(&mut outbox.listed)
    });
    listed.drain(..).for_each(|socket| socket.leave());
    OUTBOX.with_borrow_mut(|outbox| {
        // Its room is used again.
        if outbox.listed.is_empty() {
            outbox.listed = listed;
        }
    });
    Poll::Pending
}
