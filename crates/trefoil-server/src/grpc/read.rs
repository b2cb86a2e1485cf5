//! `Read`: the events that a query matches, up to where the log ended for the first response.
//!
//! A read is taken page by page while it is sent, so it needs little memory whatever it returns, and
//! it stops when its client leaves. The first page is read at once, on the thread that asks, unless it
//! must be waited for; others are read elsewhere.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use trefoil::{Direction, Event, OpenDatabase, Page, Query, QueryItem, Selection, StartAt};
use trefoil_grpc::ReadRequest;

use super::batch::{self, Head, ResponseBatch};
use super::body::{GrpcAnswer, MessageFrames};
use super::request::Received;
use super::status::{Result, invalid, of_error, of_failure};
use crate::budget::Share;
use crate::limits::{GRPC_BATCH_DEFAULT, GRPC_BATCH_MAX, GRPC_MESSAGE_BYTES};
use crate::service::{reading, waiting};

/// Answers `Read`: up to `as_of` if that is said, because the read began at another node.
pub(super) async fn answer(
    share: &Share,
    database: OpenDatabase,
    request: &Received,
    as_of: Option<u64>,
) -> Result<GrpcAnswer> {
    let request: ReadRequest = request.decode("ReadRequest")?;
    if request.subscribe == Some(true) {
        return Err(invalid(
            "subscribe is no longer part of Read: call Subscribe",
        ));
    }
    if request.limit == Some(0) {
        // Not even a response without events, as in UmaDB.
        return Ok(GrpcAnswer::Whole(Bytes::new()));
    }
    let mut reading = GrpcReading::new(database, request)?;
    reading.read.as_of = as_of;
    let first = match reading.step_at_hand()? {
        Some(Some(batch)) => batch,
        found => {
            let has_begun = found.is_some();
            let (rest, batch) = reading.batch_elsewhere(has_begun).await?;
            reading = rest;
            batch
        }
    };
    let reservation = share.reserve(first.frames.len()).map_err(of_failure)?;
    let ResponseBatch { frames, failure } = first.holding(reservation);
    if reading.is_done && failure.is_ok() {
        return Ok(GrpcAnswer::Whole(frames));
    }
    let as_of = reading.read.as_of;
    let first = stream::iter([Ok(frames)]);
    let rest = match failure {
        Ok(()) => reading.rest(share.clone()),
        Err(status) => stream::iter([Err(status)]).boxed(),
    };
    let frames = first.chain(rest).boxed();
    Ok(GrpcAnswer::Stream { frames, as_of })
}

/// Returns how many events a client wants in one response.
pub(super) fn batch_size(wanted: Option<u32>) -> usize {
    wanted.map_or(GRPC_BATCH_DEFAULT, |wanted| {
        (wanted as usize).clamp(1, GRPC_BATCH_MAX)
    })
}

/// The query of a request; without one, everything is meant.
pub(super) fn query(query: Option<trefoil_grpc::Query>) -> Result<Query> {
    let items = query.map_or(Vec::new(), |query| query.items);
    let item = |item: trefoil_grpc::QueryItem| QueryItem {
        types: item.types,
        tags: item.tags,
    };
    let query: Query = items.into_iter().map(item).collect();
    query.validate().map_err(|error| of_error(&error))?;
    Ok(query)
}

/// What is left of a read.
struct GrpcReading {
    database: OpenDatabase,
    read: Selection,
    /// How many events are still wanted.
    wanted: usize,
    is_limited: bool,
    batch_size: usize,
    /// The events of the next response.
    events: Vec<Event>,
    bytes: usize,
    has_answered: bool,
    is_done: bool,
}

impl GrpcReading {
    fn new(database: OpenDatabase, request: ReadRequest) -> Result<Self> {
        let mut read = Selection::query(query(request.query)?);
        if let Some(start) = request.start {
            read.from = StartAt::Position(start);
        }
        if request.backwards == Some(true) {
            read.direction = Direction::Backwards;
        }
        Ok(Self {
            database,
            read,
            wanted: request.limit.map_or(usize::MAX, |limit| limit as usize),
            is_limited: request.limit.is_some(),
            batch_size: batch_size(request.batch_size),
            events: Vec::new(),
            bytes: 0,
            has_answered: false,
            is_done: false,
        })
    }

    /// Prepares to read a page; returns how many bytes it may have.
    fn begin(&mut self) -> usize {
        self.read.limit = self.wanted.min(self.batch_size - self.events.len());
        GRPC_MESSAGE_BYTES.saturating_sub(self.bytes)
    }

    /// Reads a page; returns a response if there is enough for one, or no more to come. Blocks the
    /// thread for the length of one page.
    fn step(&mut self) -> Result<Option<ResponseBatch>> {
        let bytes_max = self.begin();
        let page = self.database.read_page(&self.read, bytes_max);
        Ok(self.take(page.map_err(|error| of_error(&error))?))
    }

    /// The same, unless the page would have to be waited for.
    fn step_at_hand(&mut self) -> Result<Option<Option<ResponseBatch>>> {
        let bytes_max = self.begin();
        let page = self
            .database
            .at_hand(|database| database.read_page(&self.read, bytes_max));
        let page = page.map_err(|error| of_error(&error))?;
        Ok(page.map(|page| self.take(page)))
    }

    fn take(&mut self, page: Page) -> Option<ResponseBatch> {
        self.read.as_of = Some(page.head);
        self.wanted -= page.events.len();
        match page.next {
            Some(next) if self.wanted > 0 => self.read.from = StartAt::Position(next),
            _ => self.is_done = true,
        }
        self.bytes += page.events.iter().map(Event::stored_bytes).sum::<usize>();
        if self.events.is_empty() {
            self.events = page.events;
        } else {
            self.events.extend(page.events);
        }
        let is_full = self.events.len() >= self.batch_size || self.bytes >= GRPC_MESSAGE_BYTES;
        (self.is_done || is_full).then(|| self.response(page.head))
    }

    fn response(&mut self, head: u64) -> ResponseBatch {
        let events = std::mem::take(&mut self.events);
        self.bytes = 0;
        // Only a read that finds nothing at all answers without events.
        if events.is_empty() && self.has_answered {
            return ResponseBatch {
                frames: Bytes::new(),
                failure: Ok(()),
            };
        }
        self.has_answered = true;
        let head = if self.is_limited {
            Head::LastEvent
        } else {
            Head::Log(head)
        };
        batch::encode(&events, self.batch_size, head)
    }

    /// The next response, without blocking this thread. Each page is work of its own, so that a
    /// client that leaves stops the search.
    async fn batch_elsewhere(mut self, has_begun: bool) -> Result<(Self, ResponseBatch)> {
        // A read that needs the disk is mostly a short one; the pages after its first may be many.
        let mut is_first = !has_begun;
        loop {
            let database = self.database.clone();
            let step = move || {
                let step = self.step();
                (self, step)
            };
            let (rest, step) = match std::mem::take(&mut is_first) {
                true => waiting(&database, step).await,
                false => reading(&database, step).await,
            }
            .map_err(of_failure)?;
            match step? {
                Some(batch) => return Ok((rest, batch)),
                None => self = rest,
            }
        }
    }

    /// The responses after the first one.
    fn rest(self, share: Share) -> MessageFrames {
        let next = move |state: Option<Result<Self>>| {
            let share = share.clone();
            async move {
                let reading = match state? {
                    Ok(reading) if reading.is_done => return None,
                    Ok(reading) => reading,
                    Err(status) => return Some((Err(status), None)),
                };
                let reservation = share.reserve_in_turn(2 * GRPC_MESSAGE_BYTES).await;
                match reading.batch_elsewhere(true).await {
                    Ok((reading, batch)) => {
                        let ResponseBatch { frames, failure } = batch.holding(reservation);
                        let next = failure.map(|()| reading);
                        Some((Ok(frames), Some(next)))
                    }
                    Err(status) => Some((Err(status), None)),
                }
            }
        };
        stream::unfold(Some(Ok(self)), next)
            // A search may end without having found anything more.
            .filter(|frames| std::future::ready(!matches!(frames, Ok(frames) if frames.is_empty())))
            .boxed()
    }
}
