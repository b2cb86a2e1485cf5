//! A subscription that goes on when its namespace moves to another node: its client misses nothing, gets
//! nothing twice, and notices nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use trefoil::{NamespaceId, Trace};

use super::here::FeedHere;
use super::relayed::RelayedFeed;
use super::request::FeedRequest;
use super::{FeedKind, frame};
use crate::budget::Share;
use crate::error::{Failure, Result};
use crate::limits::{MOVE_PATIENCE, SUBSCRIPTION_MOVE_PATIENCE};
use crate::peers::{AFTER, Forwarded, ForwardedRequest, Patience, PeerAnswer, PeerNodes};
use crate::response::{Chunks, HttpAnswer};
use crate::service::Shared;

/// What comes of a subscription.
pub(super) enum Fed {
    /// Frames, and the position of the last event in them.
    Frames(Bytes, Option<u64>),
    /// The namespace is not there any more; it may be elsewhere.
    Gone,
    /// There is nothing more.
    Ended,
}

/// How to find what a subscription is about, and begin there.
pub(super) struct FeedSearch {
    pub(super) shared: Arc<Shared>,
    pub(super) namespace: NamespaceId,
    pub(super) is_from_peer: bool,
    pub(super) share: Share,
    pub(super) request: FeedRequest,
    pub(super) kind: FeedKind,
    /// The request as another node gets it.
    pub(super) sent_on: ForwardedRequest,
}

enum FeedSource {
    Here(Box<FeedHere>),
    There(RelayedFeed),
}

/// What the search has found.
enum FoundFeed {
    /// A subscription, and after which position it began, if that is known.
    Feed(FeedSource, Option<u64>),
    /// Another node has answered otherwise.
    Answer(PeerAnswer),
}

/// How a subscription begins.
pub(super) enum BegunFeed {
    Feed(Box<ContinuedFeed>),
    Answer(HttpAnswer),
}

/// A subscription, wherever its namespace is.
pub(super) struct ContinuedFeed {
    search: FeedSearch,
    /// `None` while it is looked for.
    source: Option<FeedSource>,
    /// Up to which position its client has got everything; `None`: it begins as was asked for.
    after: Option<u64>,
    /// When its namespace was lost, by the steady clock.
    lost: Duration,
}

/// Why nothing was found.
enum FeedNotFound {
    /// It may be found later.
    Yet(Failure),
    Ever(Failure),
}

impl FeedSearch {
    /// The peers that have the namespace if this node does not. A peer looks itself.
    fn peers(&self) -> Option<&PeerNodes> {
        let peers = self.shared.peers.as_ref();
        peers.filter(|_| !self.is_from_peer)
    }

    /// Begins the subscription.
    pub(super) async fn begin(self) -> Result<BegunFeed> {
        let mut patience = Patience::new(self.shared.clock(), MOVE_PATIENCE);
        loop {
            match self.look(None).await {
                Ok(FoundFeed::Answer(answer)) => {
                    return Ok(BegunFeed::Answer(answer.into_answer()));
                }
                Ok(FoundFeed::Feed(source, after)) => {
                    return Ok(BegunFeed::Feed(Box::new(ContinuedFeed {
                        source: Some(source),
                        after,
                        lost: Duration::ZERO,
                        search: self,
                    })));
                }
                Err(FeedNotFound::Ever(failure)) => return Err(failure),
                Err(FeedNotFound::Yet(mut failure)) => {
                    if failure.elsewhere.is_none() || !patience.wait().await {
                        // It was looked for long enough.
                        failure.elsewhere = None;
                        return Err(failure);
                    }
                }
            }
        }
    }

    /// Looks for the namespace once, and begins after a position, if there is one.
    async fn look(&self, after: Option<u64>) -> Result<FoundFeed, FeedNotFound> {
        let trace = Trace::default();
        let (shared, is_from_peer) = (&self.shared, self.is_from_peer);
        let opened = shared.database(&self.namespace, &trace, is_from_peer);
        let begun = opened
            .await
            .and_then(|database| FeedHere::begin(self, database, after));
        let failure = match begun {
            Ok((feed, after)) => {
                let source = FeedSource::Here(Box::new(feed));
                return Ok(FoundFeed::Feed(source, after));
            }
            Err(failure) => failure,
        };
        let (Some(peers), Some(elsewhere)) = (self.peers(), failure.elsewhere.clone()) else {
            // A server error may pass, as when the namespace is being closed to be moved.
            return Err(match failure.status.is_server_error() {
                true => FeedNotFound::Yet(failure),
                false => FeedNotFound::Ever(failure),
            });
        };
        let Some(owner) = &elsewhere.owner else {
            return Err(FeedNotFound::Yet(
                failure.because("its node has no address"),
            ));
        };
        self.ask(peers, owner, after, failure).await
    }

    /// Asks another node for the subscription.
    async fn ask(
        &self,
        peers: &PeerNodes,
        owner: &str,
        after: Option<u64>,
        failure: Failure,
    ) -> Result<FoundFeed, FeedNotFound> {
        let mut request = self.sent_on.clone();
        if let Some(position) = after {
            request.headers.insert(AFTER, HeaderValue::from(position));
        }
        let why = match peers.forward(owner, &request, &self.share).await {
            Forwarded::Answered(answer) => {
                peers.found(&self.namespace, owner);
                return Ok(self.found_there(answer));
            }
            Forwarded::Refused(failure) => return Err(FeedNotFound::Ever(failure)),
            Forwarded::NotExecuted {
                why,
                owner: Some(owner),
            } => {
                peers.found(&self.namespace, &owner);
                return Err(FeedNotFound::Yet(failure.because(&why)));
            }
            // Reading once more does no harm.
            Forwarded::NotExecuted { why, owner: None } | Forwarded::Lost(why) => why,
        };
        peers.forget(&self.namespace);
        Err(FeedNotFound::Yet(failure.because(&why)))
    }

    fn found_there(&self, answer: PeerAnswer) -> FoundFeed {
        if answer.response.status() != StatusCode::OK {
            return FoundFeed::Answer(answer);
        }
        let after = answer.response.headers().get(AFTER);
        let after = after.and_then(|value| value.to_str().ok()?.parse().ok());
        let feed = RelayedFeed::new(answer.into_chunks(), self.share.for_reply());
        FoundFeed::Feed(FeedSource::There(feed), after)
    }
}

impl ContinuedFeed {
    /// Returns after which position it begins, if that is known before the first event.
    pub(super) fn begins_after(&self) -> Option<u64> {
        self.after
    }

    /// The frames, until the server closes or the namespace is nowhere.
    pub(super) fn into_chunks(self) -> Chunks {
        stream::unfold(self, |mut feed| async move {
            let chunk = feed.next().await?;
            Some((Ok(chunk), feed))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let fed = match &mut self.source {
                Some(FeedSource::Here(feed)) => feed.next().await,
                Some(FeedSource::There(feed)) => self.search.next_unless_closing(feed).await,
                None => match self.find_again().await? {
                    Some(keep_alive) => return Some(keep_alive),
                    None => continue,
                },
            };
            match fed {
                Fed::Frames(frames, position) => {
                    self.after = position.or(self.after);
                    return Some(frames);
                }
                Fed::Gone if self.search.peers().is_some() => {
                    self.source = None;
                    self.lost = self.search.shared.clock().steady();
                }
                Fed::Gone | Fed::Ended => return None,
            }
        }
    }

    /// Looks for the namespace until it is found. `None` if it is not; a comment if the client has not heard
    /// anything for a while.
    async fn find_again(&mut self) -> Option<Option<Bytes>> {
        let shared = Arc::clone(&self.search.shared);
        let left = SUBSCRIPTION_MOVE_PATIENCE.saturating_sub(shared.clock().since(self.lost));
        tokio::select! {
            found = self.search.find_within(left, self.after) => {
                let (source, after) = found?;
                self.source = Some(source);
                self.after = self.after.or(after);
                Some(None)
            }
            () = tokio::time::sleep(shared.config.keep_alive) => {
                Some(Some(Bytes::from_static(frame::KEEP_ALIVE)))
            }
            () = shared.closing.cancelled() => None,
        }
    }
}

impl FeedSearch {
    async fn next_unless_closing(&self, feed: &mut RelayedFeed) -> Fed {
        tokio::select! {
            fed = feed.next() => fed,
            () = self.shared.closing.cancelled() => Fed::Ended,
        }
    }

    async fn find_within(
        &self,
        time: Duration,
        after: Option<u64>,
    ) -> Option<(FeedSource, Option<u64>)> {
        let mut patience = Patience::new(self.shared.clock(), time);
        loop {
            let failure = match self.look(after).await {
                Ok(FoundFeed::Feed(source, after)) => return Some((source, after)),
                Ok(FoundFeed::Answer(answer)) => {
                    let status = answer.response.status().as_u16();
                    tracing::debug!(status, "a subscription is not continued");
                    return None;
                }
                Err(FeedNotFound::Ever(failure)) => {
                    tracing::debug!(failure.message, "a subscription is not continued");
                    return None;
                }
                Err(FeedNotFound::Yet(failure)) => failure,
            };
            if !patience.wait().await {
                tracing::warn!(failure.message, "a subscription is not continued");
                return None;
            }
        }
    }
}
