//! Who is using what a token grants over a longer time: a connection of RESP, or an answer that is a
//! stream. When the token is revoked, replaced or expires, that ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use trefoil::{Clock, Grant, NamespaceId, Namespaces, Timestamp, TokenReview};

/// What those are told who used a token that does not count any more.
pub(crate) const NOT_GRANTED: &str = "the token was revoked or replaced, or has expired";

/// How often is looked for tokens that have expired.
const EXPIRY_PAUSE: Duration = Duration::from_secs(1);

/// All visits, by namespace and in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    open: Mutex<OpenVisits>,
}

#[derive(Debug, Default)]
struct OpenVisits {
    by_namespace: BTreeMap<(NamespaceId, u64), Arc<VisitFacts>>,
    /// How many there have been.
    n_visits: u64,
}

#[derive(Debug)]
struct VisitFacts {
    grant: Arc<Grant>,
    /// Until when it may last, in nanoseconds since 1970; the last number is never, the first one is over.
    until: AtomicI64,
    /// Cancelled when it must end.
    over: CancellationToken,
}

impl VisitFacts {
    /// Notes until when the visit may last: `None` if it is over.
    fn set_until(&self, until: Option<Timestamp>) {
        let until = until.map_or(i64::MIN, |until| until.0);
        self.until.store(until, Ordering::Relaxed);
        if until == i64::MIN {
            self.over.cancel();
        }
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        self.until.load(Ordering::Relaxed) <= now.0
    }
}

/// A visit, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Visit {
    visits: Arc<Visits>,
    number: u64,
    facts: Arc<VisitFacts>,
}

impl Visits {
    /// Begins a visit.
    pub(crate) fn begin(self: &Arc<Self>, namespaces: &Namespaces, grant: &Arc<Grant>) -> Visit {
        let facts = Arc::new(VisitFacts {
            grant: Arc::clone(grant),
            until: AtomicI64::new(grant.until().0),
            over: CancellationToken::new(),
        });
        let mut open = self.open.lock();
        open.n_visits += 1;
        let number = open.n_visits;
        let key = (grant.namespace().clone(), number);
        open.by_namespace.insert(key, Arc::clone(&facts));
        drop(open);
        // The token may have been revoked between the moment it was looked at and this one.
        facts.set_until(namespaces.still_granted(grant));
        Visit {
            visits: Arc::clone(self),
            number,
            facts,
        }
    }

    /// Tokens of a namespace may have changed: ends the visits that are not granted any more.
    pub(crate) fn review(&self, review: &TokenReview<'_>) {
        let first = (review.namespace.clone(), 0);
        let last = (review.namespace.clone(), u64::MAX);
        let open = self.open.lock();
        for (_, facts) in open.by_namespace.range(first..=last) {
            facts.set_until(review.still_granted(&facts.grant));
        }
    }

    /// Ends visits whose tokens have expired, for ever.
    pub(crate) async fn watch_expiry(&self, clock: &Clock) {
        loop {
            tokio::time::sleep(EXPIRY_PAUSE).await;
            let now = clock.now();
            for facts in self.open.lock().by_namespace.values() {
                if facts.is_expired(now) {
                    facts.over.cancel();
                }
            }
        }
    }
}

impl Visit {
    /// Returns what is granted.
    pub(crate) fn grant(&self) -> &Arc<Grant> {
        &self.facts.grant
    }

    /// Returns whether it must end.
    pub(crate) fn is_over(&self, clock: &Clock) -> bool {
        // Most tokens never expire, so the clock need not be asked.
        let may_end = self.facts.until.load(Ordering::Relaxed) != i64::MAX;
        may_end && self.facts.is_expired(clock.now())
    }

    /// Returns the parts of an answer, which end with `failure` when the visit must end.
    pub(crate) fn guard<T: Send + 'static, E: Send + 'static>(
        self,
        parts: BoxStream<'static, Result<T, E>>,
        failure: impl FnOnce() -> E + Send + 'static,
    ) -> BoxStream<'static, Result<T, E>> {
        let guarded = Some((self, failure));
        stream::unfold((parts, guarded), |(mut parts, guarded)| async move {
            let (visit, failure) = guarded?;
            tokio::select! {
                biased;
                () = visit.facts.over.cancelled() => match parts.next().now_or_never() {
                    // It has ended by itself, as when the namespace was deleted.
                    Some(None) => None,
                    Some(Some(Err(error))) => Some((Err(error), (parts, None))),
                    _ => Some((Err(failure()), (parts, None))),
                },
                part = parts.next() => Some((part?, (parts, Some((visit, failure))))),
            }
        })
        .boxed()
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let key = (self.facts.grant.namespace().clone(), self.number);
        self.visits.open.lock().by_namespace.remove(&key);
    }
}
