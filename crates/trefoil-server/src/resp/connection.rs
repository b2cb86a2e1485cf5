//! One connection: requests in, replies out.
//!
//! Whatever has arrived is parsed, carried out and answered before more is read, so a client that
//! does not take its replies is not read from either. A client that is silent costs no buffers.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;
use tokio_util::sync::CancellationToken;
use trefoil::Reply;

use super::failure::of_error;
use super::output::Output;
use super::parser::{Parser, Trust, Violation};
use super::session::Session;
use super::words::error;
use crate::budget::Reservation;
use crate::connections::Guest;
use crate::limits::{
    DISCARD_BYTES_MAX, RESP_BATCH_BYTES_MAX, RESP_BATCH_REQUESTS_MAX, RESP_DISCARD_TIMEOUT,
    RESP_INPUT_BYTES, RESP_READ_BYTES,
};
use crate::panics::caught;
use crate::server::Stop;
use crate::service::Shared;

/// Tells a client that there are too many.
pub(crate) async fn refuse(mut socket: TcpStream, shared: &Shared) {
    shared.resp.refused.fetch_add(1, Ordering::Relaxed);
    // A client that has gone needs no answer.
    let text = b"-ERR max number of clients reached\r\n";
    let _ = socket.write_all(text).await;
    let _ = socket.shutdown().await;
}

/// Serves a connection until it ends.
pub(crate) async fn serve(
    mut socket: TcpStream,
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    stop: Stop,
) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let (Ok(address), Ok(local)) = (socket.peer_addr(), socket.local_addr()) else {
        // It has gone before it was served.
        return;
    };
    let client = shared.resp.enter(address, local, &guest.must_leave);
    let session = Session::new(Arc::clone(shared), Arc::clone(guest), Arc::clone(&client));
    let (reader, writer) = socket.split();
    let mut connection = Connection {
        input: Input::new(reader, shared, guest),
        output: Output::new(writer, shared, &guest.share),
        session,
    };
    let ended = tokio::select! {
        biased;
        ended = connection.run_or_fail(&stop.drain) => ended,
        () = stop.cut.cancelled() => return,
        () = client.killed.cancelled() => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "RESP connection ended");
    }
}

struct Connection<'a> {
    input: Input<'a>,
    output: Output<'a>,
    session: Session,
}

impl Connection<'_> {
    /// Answers requests until the connection ends. If one of them panics, the client is told so, and
    /// that is the end: nobody knows which of them were answered.
    async fn run_or_fail(&mut self, drain: &CancellationToken) -> io::Result<()> {
        let ended = caught(pin!(self.run(drain))).await;
        match ended {
            Ok(ended) => ended,
            Err(panicked) => {
                let protocol = self.session.protocol();
                self.output.put(&of_error(&panicked), protocol).await?;
                self.finish().await
            }
        }
    }

    /// Answers requests until the client leaves, or until the server stops and all that has arrived
    /// is answered.
    async fn run(&mut self, drain: &CancellationToken) -> io::Result<()> {
        let mut drained = pin!(drain.cancelled());
        let mut patience = pin!(tokio::time::sleep(self.session.config().head_timeout));
        loop {
            self.answer().await?;
            if self.session.is_closing {
                return self.finish().await;
            }
            self.output.release();
            let unread = self.input.buffer.len();
            self.session.client.unread.store(unread, Ordering::Relaxed);
            let is_open = tokio::select! {
                biased;
                () = drained.as_mut() => return Ok(()),
                is_open = self.input.more() => is_open,
                () = patience.as_mut(), if !self.session.guest.is_known() => {
                    tracing::debug!("a RESP client does not say who it is");
                    return Ok(());
                }
            };
            match is_open {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(Refusal::Io(error)) => return Err(error),
                Err(Refusal::Reply(reply)) => {
                    self.output.put(&reply, self.session.protocol()).await?;
                    return self.finish().await;
                }
            }
        }
    }

    /// Answers all requests that have arrived whole.
    async fn answer(&mut self) -> io::Result<()> {
        while !self.session.is_closing {
            let (requests, violation) = self.input.requests(self.session.trust());
            if requests.is_empty() && violation.is_none() {
                break;
            }
            if !requests.is_empty() {
                self.session.count(requests.len());
                self.session.run(requests, &mut self.output).await?;
                if !self.session.is_stranger() {
                    self.session.guest.make_known();
                }
            }
            if let (Some(Violation(text)), false) = (violation, self.session.is_closing) {
                self.session.is_closing = true;
                self.output
                    .put(&error(text), self.session.protocol())
                    .await?;
            }
        }
        self.output.send().await
    }

    /// Closes the connection so that the client can read what it was told, whatever it has sent
    /// that nobody will read.
    async fn finish(&mut self) -> io::Result<()> {
        self.output.send().await?;
        self.output.finish().await?;
        self.session.end_visit();
        let _ = tokio::time::timeout(RESP_DISCARD_TIMEOUT, self.input.discard()).await;
        Ok(())
    }
}

/// Why nothing more is read.
enum Refusal {
    Io(io::Error),
    /// The client is told so.
    Reply(Reply),
}

/// Bytes that have arrived.
struct Input<'a> {
    socket: ReadHalf<'a>,
    shared: Arc<Shared>,
    parser: Parser,
    buffer: BytesMut,
    /// How many bytes are asked for next.
    wanted: usize,
    /// What the requests take of the memory for clients.
    reservation: Reservation,
}

impl<'a> Input<'a> {
    fn new(socket: ReadHalf<'a>, shared: &Arc<Shared>, guest: &Guest) -> Self {
        Self {
            socket,
            shared: Arc::clone(shared),
            parser: Parser::default(),
            buffer: BytesMut::new(),
            wanted: RESP_READ_BYTES.0,
            reservation: guest.share.for_request(),
        }
    }

    /// Takes requests that are here, up to a bound, and what is wrong with the one after them. Of
    /// a stranger only one is taken: it may make the client known.
    fn requests(&mut self, trust: Trust) -> (Vec<Vec<Bytes>>, Option<Violation>) {
        let (mut requests, before) = (Vec::new(), self.buffer.len());
        let requests_max = match trust {
            Trust::Stranger => 1,
            Trust::Known => RESP_BATCH_REQUESTS_MAX,
        };
        while requests.len() < requests_max && before - self.buffer.len() < RESP_BATCH_BYTES_MAX {
            match self.parser.next(&mut self.buffer, trust) {
                Ok(Some(words)) => requests.push(words),
                Ok(None) => break,
                Err(violation) => return (requests, Some(violation)),
            }
        }
        (requests, None)
    }

    /// Reads more; false if the client has gone. What came before is answered by now.
    async fn more(&mut self) -> Result<bool, Refusal> {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
            self.reservation.shrink_to(RESP_INPUT_BYTES);
            self.socket.readable().await.map_err(Refusal::Io)?;
        }
        let (least, most) = RESP_READ_BYTES;
        let missing = self.parser.bytes_wanted(&self.buffer);
        // What is announced is believed a piece at a time.
        let wanted = self.wanted.max(missing.min(self.buffer.len() + most));
        self.reserve(wanted)?;
        self.buffer.reserve(wanted);
        let read = self
            .socket
            .read_buf(&mut self.buffer)
            .await
            .map_err(Refusal::Io)?;
        self.wanted = match read >= self.wanted {
            true => (self.wanted * 2).min(most),
            false => least,
        };
        self.shared.metrics.resp.received.inc_by(read as u64);
        Ok(read > 0)
    }

    /// Takes memory for what has arrived, for so many bytes that are about to, and for as many words
    /// as they may be.
    fn reserve(&mut self, wanted: usize) -> Result<(), Refusal> {
        let bytes = self.buffer.len() + wanted;
        // A buffer that grows by copying is there twice for a moment.
        let twice = if bytes > self.buffer.capacity() {
            bytes
        } else {
            0
        };
        let words = self.parser.words_bytes_after(wanted);
        let needed = (bytes + twice + words).max(RESP_INPUT_BYTES);
        self.reservation.shrink_to(needed);
        let grown = self.reservation.grow_to(needed);
        grown.map_err(|failure| Refusal::Reply(super::failure::of_failure(&failure)))
    }

    /// Reads and forgets, within a bound.
    async fn discard(&mut self) {
        let mut left = DISCARD_BYTES_MAX;
        while left > 0 {
            self.buffer.clear();
            match self.socket.read_buf(&mut self.buffer).await {
                Ok(read @ 1..) => left = left.saturating_sub(read),
                _ => return,
            }
        }
    }
}
