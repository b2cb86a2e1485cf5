//! One connection: requests in, replies out.
//!
//! Whatever has arrived is parsed, carried out and answered before more is read, so a client that
//! does not take its replies is not read from either. A client that is silent costs no buffers.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::failure::of_error;
use super::input::{InputRefusal, RespInput};
use super::output::RespOutput;
use super::parser::Violation;
use super::session::Session;
use super::stream::split;
use super::words::error;
use crate::connections::Guest;
use crate::limits::{RESP_BATCH_BYTES_MAX, RESP_BATCH_REQUESTS_MAX, RESP_DISCARD_TIMEOUT};
use crate::panics::caught;
use crate::seldom::Seldom;
use crate::server::Stop;
use crate::service::Shared;
use crate::stream::ServedStream;

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
    stream: ServedStream,
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    stop: Stop,
) {
    let Ok((address, local)) = stream.addresses() else {
        // It has gone before it was served.
        return;
    };
    let descriptor = stream.descriptor();
    let client = shared
        .resp
        .enter(address, local, descriptor, &guest.must_leave);
    let session = Session::new(Arc::clone(shared), Arc::clone(guest), Arc::clone(&client));
    let (reader, writer) = split(stream);
    let mut connection = RespConnection {
        input: RespInput::new(reader, shared, guest),
        output: RespOutput::new(writer, shared, &client, &guest.share),
        session,
    };
    let must_go = Seldom::new(async {
        tokio::select! {
            () = stop.cut.cancelled() => {}
            () = client.killed.cancelled() => {}
        }
    });
    let ended = tokio::select! {
        biased;
        ended = connection.run_or_fail(&stop.drain) => ended,
        () = must_go => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "RESP connection ended");
    }
}

struct RespConnection {
    input: RespInput,
    output: RespOutput,
    session: Session,
}

impl RespConnection {
    /// Answers requests until the connection ends. If one of them panics, the client is told so, and
    /// that is the end: nobody knows which of them were answered.
    async fn run_or_fail(&mut self, drain: &CancellationToken) -> io::Result<()> {
        let ended = caught(pin!(self.run(drain))).await;
        match ended {
            Ok(Ok(())) => self.output.send().await,
            Ok(failed) => failed,
            // A connection that ends properly would say that all is answered.
            Err(panicked) if self.session.guest.is_peer => Err(io::Error::other(panicked)),
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
        let (guest, patience) = (
            Arc::clone(&self.session.guest),
            self.session.config().head_timeout,
        );
        let mut is_over = Seldom::new(async {
            tokio::select! {
                () = drain.cancelled() => return,
                () = tokio::time::sleep(patience) => {}
            }
            if guest.is_known() {
                return drain.cancelled().await;
            }
            tracing::debug!("a RESP client does not say who it is");
        });
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
                // A peer knows by a proper end that everything else was not carried out.
                () = &mut is_over => match guest.is_peer {
                    true => return self.finish().await,
                    false => return Ok(()),
                },
                () = self.output.stuck() => {
                    self.output.send().await?;
                    continue;
                }
                is_open = self.input.more() => is_open,
            };
            match is_open {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(InputRefusal::Io(error)) => return Err(error),
                Err(InputRefusal::Reply(reply)) => {
                    self.output.put(&reply, self.session.protocol()).await?;
                    return self.finish().await;
                }
            }
        }
    }

    /// Answers all requests that have arrived whole.
    async fn answer(&mut self) -> io::Result<()> {
        let mut may_have_more = true;
        while may_have_more && !self.session.is_closing {
            may_have_more = self.answer_some().await?;
        }
        self.output.send_soon().await
    }

    /// Answers requests that have arrived whole, up to a bound. Returns whether there may be more.
    async fn answer_some(&mut self) -> io::Result<bool> {
        let (mut n_requests, before) = (0, self.input.buffer.len());
        let taken = loop {
            let n_bytes = before - self.input.buffer.len();
            let is_enough =
                n_requests == RESP_BATCH_REQUESTS_MAX || n_bytes >= RESP_BATCH_BYTES_MAX;
            if is_enough || self.session.is_closing {
                break Ok(true);
            }
            match self.input.next(self.session.trust()) {
                Ok(Some(words)) => {
                    if n_requests == 0 {
                        self.session.begin_turn();
                    }
                    n_requests += 1;
                    self.session.request(words, &mut self.output).await?;
                }
                Ok(None) => break Ok(false),
                Err(violation) => break Err(violation),
            }
        };
        if n_requests > 0 {
            self.session.end_turn(n_requests, &mut self.output).await?;
            if !self.session.is_stranger() {
                self.session.guest.make_known();
            }
        }
        if let (Err(Violation(text)), false) = (&taken, self.session.is_closing) {
            self.session.is_closing = true;
            let reply = error(text.clone());
            self.output.put(&reply, self.session.protocol()).await?;
        }
        Ok(taken.unwrap_or(false))
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
