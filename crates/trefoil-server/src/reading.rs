//! Answers made of events: whole if they are small, sent while they are read if they are not.

use futures_util::stream::{self, StreamExt as _};
use trefoil::Event;

use crate::budget::Share;
use crate::error::{Failure, Result};
use crate::limits::{ANSWER_BUFFER_BYTES, ANSWER_CHUNK_MEMORY};
use crate::pages::Pages;
use crate::response::{Chunks, HttpBody, StreamError};
use crate::service::{reading, waiting};

/// How events are written into an answer.
pub(crate) trait EventWriter: Send + 'static {
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
    /// What is to be sent next.
    out: Vec<u8>,
    is_over: bool,
    share: Share,
}

impl<W: EventWriter> Reading<W> {
    pub(crate) fn new(pages: Pages, mut writer: W, share: &Share) -> Self {
        let mut out = Vec::with_capacity(512);
        writer.begin(&mut out);
        Self {
            pages,
            writer,
            out,
            is_over: false,
            share: share.clone(),
        }
    }

    /// The body of the answer.
    pub(crate) async fn body(mut self) -> Result<HttpBody> {
        if let Some(events) = self.pages.next_at_hand()? {
            self.write(&events);
        }
        let (reading, first) = self.chunk().await?;
        let reservation = reading.share.reserve(first.len())?;
        let first = reservation.hold(first);
        if reading.is_over {
            return Ok(HttpBody::Whole(first));
        }
        let first = stream::once(async { Ok(first) });
        Ok(HttpBody::Stream(first.chain(reading.rest()).boxed()))
    }

    /// Reads one page. Blocks the thread.
    fn read_page(&mut self) -> Result<()> {
        let events = self.pages.next_page()?;
        self.write(&events);
        Ok(())
    }

    fn write(&mut self, events: &[Event]) {
        for event in events {
            self.writer.event(&mut self.out, event);
        }
        if self.pages.is_done() {
            self.writer.end(&mut self.out);
            self.is_over = true;
        }
    }

    /// The next part of the answer. Each page is read by a task of its own: when the client leaves,
    /// no more of them begin.
    async fn chunk(mut self) -> Result<(Self, Vec<u8>)> {
        while self.out.len() < ANSWER_BUFFER_BYTES && !self.is_over {
            let Self {
                pages,
                writer,
                out,
                is_over,
                share,
            } = self;
            let page = elsewhere(pages, move |pages| {
                let mut reading = Self {
                    pages,
                    writer,
                    out,
                    is_over,
                    share,
                };
                reading.read_page().map(|()| reading)
            });
            self = page.await??;
        }
        let chunk = std::mem::take(&mut self.out);
        Ok((self, chunk))
    }

    fn rest(self) -> Chunks {
        let next = |state: Option<Self>| async move {
            let state = state?;
            let mut reservation = state.share.reserve_in_turn(ANSWER_CHUNK_MEMORY).await;
            match state.chunk().await {
                Ok((reading, chunk)) => {
                    reservation.shrink_to(chunk.len());
                    reservation.grow_anyway(chunk.len());
                    let chunk = reservation.hold(chunk);
                    let left = (!reading.is_over).then_some(reading);
                    Some((Ok(chunk), left))
                }
                Err(failure) => Some((Err(cut(&failure)), None)),
            }
        };
        stream::unfold(Some(self), next).boxed()
    }
}

/// The next events, without blocking the thread; there may be none before the end. A short read begins on
/// this thread, where most of them end. If it needs the disk, it is done on one that waits for it, and
/// whatever takes longer on yet another.
pub(crate) async fn next_events(mut pages: Pages) -> Result<(Pages, Vec<Event>)> {
    match pages.next_at_hand()? {
        Some(events) => Ok((pages, events)),
        None => {
            let read = |mut pages: Pages| pages.next_page().map(|events| (pages, events));
            elsewhere(pages, read).await?
        }
    }
}

/// Does something with pages on a thread that may block.
async fn elsewhere<T: Send + 'static>(
    pages: Pages,
    work: impl FnOnce(Pages) -> T + Send + 'static,
) -> Result<T> {
    let (database, is_short) = (pages.database().clone(), pages.is_short());
    match is_short {
        true => waiting(&database, move || work(pages)).await,
        false => reading(&database, move || work(pages)).await,
    }
}

/// Says that an answer ends before its end, and returns what ends it.
pub(crate) fn cut(failure: &Failure) -> StreamError {
    tracing::warn!(
        code = failure.code,
        message = failure.message,
        "an answer was cut short"
    );
    failure.message.clone().into()
}
