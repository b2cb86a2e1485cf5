//! Subscriptions over server-sent events: `/subscribe` tells that an event was written, `/events`
//! sends it.
//!
//! A subscription is pulled by its connection: a client that does not read holds no more than one
//! page of events, which is counted, and nobody else waits for it.
//!
//! The events come from [`here`], or from another node and are [`relayed`]. If the namespace moves, they
//! are [`continued`] where it is then.

mod continued;
mod frame;
mod here;
mod relayed;
mod request;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{StatusCode, Version};
use trefoil::{Error, Event, Subscription};

use crate::auth::Access;
use crate::budget::{PageTurns, Reservation, Share};
use crate::error::Result;
use crate::limits::SUBSCRIPTION_PAGE_BYTES;
use crate::peers::{AFTER, ForwardedBody, ForwardedRequest};
use crate::response::{self, HttpAnswer, HttpBody};
use crate::service::Shared;
use continued::{BegunFeed, FeedSearch};

pub(crate) use frame::FeedKind;

/// Answers `/subscribe` and `/events`.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    access: &Access,
    share: &Share,
    parts: &Parts,
    kind: FeedKind,
) -> Result<HttpAnswer> {
    let mut request = match request::parse(parts, kind) {
        Ok(request) => request,
        Err(message) => return Ok(response::text(StatusCode::BAD_REQUEST, message)),
    };
    access.grant.require_source(request.source())?;
    if let Some(position) = position_of_peer(access, parts) {
        request.begin_after(position);
    }
    let search = FeedSearch {
        shared: Arc::clone(shared),
        namespace: access.namespace.clone(),
        is_from_peer: access.is_from_peer,
        share: share.clone(),
        sent_on: ForwardedRequest::new(parts, ForwardedBody::Whole(Bytes::new()))?,
        request,
        kind,
    };
    let feed = match search.begin().await? {
        BegunFeed::Feed(feed) => feed,
        BegunFeed::Answer(answer) => return Ok(answer),
    };
    let begins_after = feed.begins_after();
    let ready = stream::once(async { Ok(Bytes::from_static(frame::READY)) });
    let body = HttpBody::Stream(ready.chain(feed.into_chunks()).boxed());
    let mut answer = event_stream(parts.version, body);
    let headers = answer.headers_mut();
    if let Some(position) = begins_after.filter(|_| access.is_from_peer) {
        headers.insert(AFTER, position.into());
    }
    if kind == FeedKind::Poke && !shared.config.web.is_local {
        // As EventoDB: a page must know the token, and learns positions alone.
        let any = HeaderValue::from_static("*");
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    }
    Ok(answer)
}

/// Returns after which position a peer goes on with a subscription. A client cannot say so.
fn position_of_peer(access: &Access, parts: &Parts) -> Option<u64> {
    let value = parts.headers.get(AFTER).filter(|_| access.is_from_peer)?;
    value.to_str().ok()?.parse().ok()
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
