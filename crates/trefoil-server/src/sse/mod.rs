//! Subscriptions over server-sent events: `/subscribe` tells that an event was written, `/events`
//! sends it.
//!
//! A subscription is pulled by its connection: a client that does not read holds no more than one
//! page of events, which is counted, and nobody else waits for it.

mod frame;
mod request;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{StatusCode, Version};
use trefoil::{Error, Event, OpenDatabase, Subscription};

use crate::auth::Access;
use crate::budget::{PageTurns, Reservation, Share};
use crate::connections::Guest;
use crate::error::Result;
use crate::limits::SUBSCRIPTION_PAGE_BYTES;
use crate::response::{self, Chunks, HttpAnswer, HttpBody};
use crate::rpc::rows::EventShape;
use crate::service::Shared;
use crate::subscriptions::Subscriber;

pub(crate) use frame::FeedKind;

/// Answers `/subscribe` and `/events`.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    access: &Access,
    guest: &Guest,
    parts: &Parts,
    kind: FeedKind,
) -> Result<HttpAnswer> {
    let request = match request::parse(parts, kind) {
        Ok(request) => request,
        Err(message) => return Ok(response::text(StatusCode::BAD_REQUEST, message)),
    };
    let database = access.database(shared).await?;
    let shape = request.shape;
    let read = request.into_read(database.head()?);
    let endpoint = match kind {
        FeedKind::Poke => "/subscribe",
        FeedKind::Event => "/events",
    };
    let subscriber = Subscriber::new(
        Arc::clone(shared),
        &access.namespace,
        ("HTTP", endpoint),
        &read,
    );
    let subscription = database.subscribe(read);
    let feed = SseFeed {
        subscription: subscription.with_page_bytes(SUBSCRIPTION_PAGE_BYTES),
        share: guest.share.clone(),
        turns: shared.budget.page_turns(&access.namespace),
        _database: database,
        subscriber,
        kind,
        shape,
    };
    let ready = stream::once(async { Ok(Bytes::from_static(frame::READY)) });
    let body = HttpBody::Stream(ready.chain(feed.into_chunks()).boxed());
    let mut answer = event_stream(parts.version, body);
    if kind == FeedKind::Poke && !shared.config.web.is_local {
        // As EventoDB: a page must know the token, and learns positions alone.
        let any = HeaderValue::from_static("*");
        let headers = answer.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    }
    Ok(answer)
}

/// An answer that is a stream of events.
pub(crate) fn event_stream(version: Version, body: HttpBody) -> HttpAnswer {
    let content_type = HeaderValue::from_static("text/event-stream");
    let mut answer = response::answer(StatusCode::OK, content_type, body);
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    if version != Version::HTTP_2 {
        headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive"));
    }
    answer
}

/// A subscription on its way to a client.
struct SseFeed {
    subscription: Subscription,
    share: Share,
    turns: PageTurns,
    /// Keeps the namespace open.
    _database: OpenDatabase,
    subscriber: Subscriber,
    kind: FeedKind,
    shape: EventShape,
}

impl SseFeed {
    /// The frames, until the server closes or the database does.
    fn into_chunks(self) -> Chunks {
        stream::unfold(self, |mut feed| async move {
            let chunk = feed.next().await?;
            Some((Ok(chunk), feed))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Bytes> {
        // What was sent before has been taken by the connection.
        self.subscriber.reached(self.subscription.position());
        let shared = self.subscriber.shared();
        let page = tokio::select! {
            page = next_page(&mut self.subscription, &self.share, &self.turns) => page,
            () = tokio::time::sleep(shared.config.keep_alive) => {
                return Some(Bytes::from_static(frame::KEEP_ALIVE));
            }
            () = shared.closing.cancelled() => return None,
        };
        match page {
            Ok((events, mut reservation)) => {
                self.subscriber.sent(events.len());
                let mut out = Vec::with_capacity(events.len() * 128);
                for event in &events {
                    frame::put(&mut out, event, self.kind, self.shape);
                }
                reservation.shrink_to(out.len());
                reservation.grow_anyway(out.len());
                Some(reservation.hold(out))
            }
            Err(Error::Closed(_)) => None,
            Err(error) => {
                tracing::warn!(%error, "a subscription failed");
                None
            }
        }
    }
}

/// The next events of a subscription, and memory for them and for what is written of them. Nothing
/// is read before there is memory for it.
pub(crate) async fn next_page(
    subscription: &mut Subscription,
    share: &Share,
    turns: &PageTurns,
) -> Result<(Vec<Event>, Reservation), Error> {
    loop {
        subscription.ready().await?;
        let bytes = 2 * SUBSCRIPTION_PAGE_BYTES;
        let (mut reservation, _turn) = share.reserve_for_page(bytes, turns).await;
        let events = subscription.next_page().await?;
        if !events.is_empty() {
            let bytes: usize = events.iter().map(Event::stored_bytes).sum();
            reservation.grow_anyway(2 * bytes);
            return Ok((events, reservation));
        }
    }
}
