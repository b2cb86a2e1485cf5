//! `Subscribe`: the events that a query matches, from the past into the present, until the client
//! leaves or the server stops.
//!
//! A subscription is pulled by its connection: a client that does not read holds no more than one
//! page of events, which is counted, and nobody else waits for it.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use trefoil::{NamespaceId, OpenDatabase, Selection, StartAt, Subscription};
use trefoil_grpc::SubscribeRequest;

use super::batch::{self, Head, ResponseBatch};
use super::body::GrpcAnswer;
use super::read::{batch_size, query};
use super::request::Received;
use super::status::{Result, of_error, of_failure};
use crate::budget::{PageTurns, Reservation, Share};
use crate::limits::SUBSCRIPTION_PAGE_BYTES;
use crate::service::Shared;
use crate::sse::next_page;
use crate::subscriptions::Subscriber;

/// Answers `Subscribe`.
pub(super) fn answer(
    shared: &Arc<Shared>,
    share: &Share,
    namespace: &NamespaceId,
    database: &OpenDatabase,
    received: &Received,
) -> Result<GrpcAnswer> {
    let request: SubscribeRequest = received.decode("SubscribeRequest")?;
    let mut read = Selection::query(query(request.query)?);
    if let Some(after) = request.after {
        let Some(from) = after.checked_add(1) else {
            // Nothing can come after the last position there is.
            return Ok(GrpcAnswer::stream(stream::empty().boxed()));
        };
        read.from = StartAt::Position(from);
    }
    let turns = shared.page_turns(namespace);
    let shared = Arc::clone(shared);
    let subscription = database.subscribe(read.clone());
    let followed = (&read, subscription.progress());
    let subscriber = Subscriber::new(shared, namespace, ("gRPC", "Subscribe"), followed);
    let subscriber = subscriber.map_err(|error| of_error(&error))?;
    let feed = GrpcFeed {
        _memory: share.reserve(subscription.n_bytes()).map_err(of_failure)?,
        subscription: subscription.with_page_bytes(SUBSCRIPTION_PAGE_BYTES),
        share: share.clone(),
        turns,
        _database: database.clone(),
        _received: received.clone(),
        subscriber,
        batch_size: batch_size(request.batch_size),
    };
    let responses = stream::unfold(Some(feed), |feed| async move {
        let mut feed = feed?;
        let ResponseBatch { frames, failure } = match feed.next().await? {
            Ok(batch) => batch,
            Err(status) => return Some((stream::iter(vec![Err(status)]), None)),
        };
        let mut parts = Vec::with_capacity(2);
        if !frames.is_empty() {
            parts.push(Ok(frames));
        }
        let is_failed = failure.is_err();
        parts.extend(failure.err().map(Err));
        Some((stream::iter(parts), (!is_failed).then_some(feed)))
    });
    Ok(GrpcAnswer::stream(responses.flatten().boxed()))
}

/// A subscription on its way to a client.
struct GrpcFeed {
    subscription: Subscription,
    /// What the subscription takes.
    _memory: Reservation,
    share: Share,
    turns: PageTurns,
    /// Keeps the namespace open.
    _database: OpenDatabase,
    /// Keeps the memory of the call.
    _received: Received,
    subscriber: Subscriber,
    batch_size: usize,
}

impl GrpcFeed {
    /// The next responses; `None` when the server stops.
    async fn next(&mut self) -> Option<Result<ResponseBatch>> {
        // What was sent before has been taken by the connection.
        self.subscriber.reached(self.subscription.position());
        let closing = &self.subscriber.shared().closing;
        let page = tokio::select! {
            page = next_page(&mut self.subscription, &self.share, &self.turns) => page,
            () = closing.cancelled() => return None,
        };
        let batch = page.map(|(events, reservation)| {
            self.subscriber.sent(events.len());
            let batch = batch::encode(&events, self.batch_size, Head::Unsaid);
            batch.holding(reservation)
        });
        Some(batch.map_err(|error| of_error(&error)))
    }
}
