//! A subscription to a namespace of this node.

use std::sync::Arc;

use bytes::Bytes;
use trefoil::{Error, OpenDatabase, StartAt, Subscription};

use super::continued::{Fed, FeedSearch};
use super::{FeedKind, frame, next_page};
use crate::budget::{PageTurns, Reservation, Share};
use crate::error::Result;
use crate::limits::SUBSCRIPTION_PAGE_BYTES;
use crate::rpc::rows::EventShape;
use crate::subscriptions::Subscriber;

/// A subscription on its way to a client.
pub(super) struct FeedHere {
    subscription: Subscription,
    /// What the subscription takes.
    _memory: Reservation,
    share: Share,
    turns: PageTurns,
    /// Keeps the namespace open.
    _database: OpenDatabase,
    subscriber: Subscriber,
    kind: FeedKind,
    shape: EventShape,
}

impl FeedHere {
    /// Begins a subscription. Returns also after which position, if that does not depend on a stream.
    pub(super) fn begin(
        search: &FeedSearch,
        database: OpenDatabase,
        after: Option<u64>,
    ) -> Result<(Self, Option<u64>)> {
        let mut request = search.request.clone();
        if let Some(position) = after {
            request.begin_after(position);
        }
        let shape = request.shape;
        let read = request.into_read(database.head()?);
        let begins_after = match read.from {
            StartAt::Position(position) => Some(position.saturating_sub(1)),
            _ => None,
        };
        let endpoint = match search.kind {
            FeedKind::Poke => "/subscribe",
            FeedKind::Event => "/events",
        };
        let subscription = database.subscribe(read.clone());
        let subscriber = Subscriber::new(
            Arc::clone(&search.shared),
            &search.namespace,
            ("HTTP", endpoint),
            (&read, subscription.progress()),
        )?;
        let feed = Self {
            _memory: search.share.reserve(subscription.n_bytes())?,
            subscription: subscription.with_page_bytes(SUBSCRIPTION_PAGE_BYTES),
            share: search.share.clone(),
            turns: search.shared.page_turns(&search.namespace),
            _database: database,
            subscriber,
            kind: search.kind,
            shape,
        };
        Ok((feed, begins_after))
    }

    /// The next frames.
    pub(super) async fn next(&mut self) -> Fed {
        // What was sent before has been taken by the connection.
        self.subscriber.reached(self.subscription.position());
        let shared = self.subscriber.shared();
        let page = tokio::select! {
            page = next_page(&mut self.subscription, &self.share, &self.turns) => page,
            () = tokio::time::sleep(shared.config.keep_alive) => {
                return Fed::Frames(Bytes::from_static(frame::KEEP_ALIVE), None);
            }
            () = shared.closing.cancelled() => return Fed::Ended,
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
                let last = events.last().map(trefoil::Event::position);
                Fed::Frames(reservation.hold(out), last)
            }
            Err(Error::Closed(_) | Error::NotOwner { .. }) => Fed::Gone,
            Err(error) => {
                tracing::warn!(%error, "a subscription failed");
                Fed::Ended
            }
        }
    }
}
