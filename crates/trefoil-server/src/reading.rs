//! Answers made of events: whole if they are small, sent while they are read if they are not.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use trefoil::Event;

use crate::error::{Failure, Result};
use crate::limits::ANSWER_BUFFER_BYTES;
use crate::pages::Pages;
use crate::response::{Body, Chunks, StreamError};
use crate::service::blocking;

/// How events are written into an answer.
pub(crate) trait Writer: Send + 'static {
    /// What comes first.
    fn begin(&mut self, out: &mut Vec<u8>);
    /// One event.
    fn event(&mut self, out: &mut Vec<u8>, event: &Event);
    /// What comes last.
    fn end(&mut self, out: &mut Vec<u8>);
}

/// An answer that is being made.
pub(crate) struct Reading<W> {
    pages: Pages,
    writer: W,
    begun: bool,
}

impl<W: Writer> Reading<W> {
    pub(crate) fn new(pages: Pages, writer: W) -> Self {
        Self {
            pages,
            writer,
            begun: false,
        }
    }

    /// The next part of the answer. Blocks the thread.
    fn chunk(&mut self) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(512);
        if !self.begun {
            self.begun = true;
            self.writer.begin(&mut out);
        }
        while out.len() < ANSWER_BUFFER_BYTES && !self.pages.is_done() {
            for event in self.pages.next_page()? {
                self.writer.event(&mut out, &event);
            }
        }
        if self.pages.is_done() {
            self.writer.end(&mut out);
        }
        Ok(out)
    }

    /// The body of an answer that is short enough to be read at once.
    pub(crate) fn body_inline(mut self) -> Result<Body> {
        let first = self.chunk()?;
        Ok(self.into_body(first))
    }

    /// The body of an answer that may take long to read.
    pub(crate) async fn body(self) -> Result<Body> {
        let (reading, first) = self.chunk_elsewhere().await?;
        Ok(reading.into_body(first))
    }

    async fn chunk_elsewhere(mut self) -> Result<(Self, Vec<u8>)> {
        blocking(move || {
            let chunk = self.chunk()?;
            Ok((self, chunk))
        })
        .await?
    }

    fn into_body(self, first: Vec<u8>) -> Body {
        if self.pages.is_done() {
            return Body::Whole(first.into());
        }
        let first = stream::once(async { Ok(Bytes::from(first)) });
        Body::Stream(first.chain(self.rest()).boxed())
    }

    fn rest(self) -> Chunks {
        let next = |state: Option<Self>| async move {
            let reading = state?;
            match reading.chunk_elsewhere().await {
                Ok((reading, chunk)) => {
                    let left = (!reading.pages.is_done()).then_some(reading);
                    Some((Ok(chunk.into()), left))
                }
                Err(failure) => Some((Err(cut(&failure)), None)),
            }
        };
        stream::unfold(Some(self), next).boxed()
    }
}

fn cut(failure: &Failure) -> StreamError {
    tracing::warn!(
        code = failure.code,
        message = failure.message,
        "an answer was cut short"
    );
    failure.message.clone().into()
}
