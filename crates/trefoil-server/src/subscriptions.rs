//! The open subscriptions of all namespaces: what each follows, and how far it has come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use trefoil::{
    Error, NamespaceId, QueryItem, Quota, Selection, Source, SubscriptionProgress, Timestamp,
};

use crate::json::{ObjectWriter, put_array, put_string};
use crate::service::Shared;

/// What a subscription follows is kept as text if it has at most so many bytes.
const QUERY_BYTES_MAX: usize = 4096;

/// All open subscriptions, by namespace and in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    open: Mutex<OpenByNamespace>,
    last_id: AtomicU64,
}

type OpenByNamespace = BTreeMap<(NamespaceId, u64), Arc<OpenSubscription>>;

/// One of them.
#[derive(Debug)]
pub(crate) struct OpenSubscription {
    pub(crate) id: u64,
    pub(crate) protocol: &'static str,
    pub(crate) endpoint: &'static str,
    pub(crate) since: Timestamp,
    /// What it follows, as JSON; `None` if that is long.
    pub(crate) query: Option<String>,
    namespace: NamespaceId,
    /// Up to which position the log was sent, and how far it comes while it waits.
    sent_to: AtomicU64,
    progress: SubscriptionProgress,
    events: AtomicU64,
}

impl OpenSubscription {
    /// Returns the position up to which it has got the log.
    pub(crate) fn position(&self) -> u64 {
        let sent_to = self.sent_to.load(Ordering::Relaxed);
        // It waits only when all that was read has been sent.
        sent_to.max(self.progress.position())
    }

    /// Returns how many events were sent.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}

impl Subscriptions {
    /// Returns how many there are, and how many positions the one that is furthest behind has yet to
    /// get. `head` says where the log of a namespace ends, if it is open.
    pub(crate) fn count_and_lag(&self, head: impl Fn(&NamespaceId) -> Option<u64>) -> (usize, u64) {
        let open: Vec<Arc<OpenSubscription>> = self.open.lock().values().cloned().collect();
        let of_one = |same: &[Arc<OpenSubscription>]| {
            let first = same.iter().map(|one| one.position()).min()?;
            Some(head(&same.first()?.namespace)?.saturating_sub(first))
        };
        let lags = open.chunk_by(|a, b| a.namespace == b.namespace);
        (open.len(), lags.filter_map(of_one).max().unwrap_or(0))
    }

    /// Returns how many a namespace has.
    pub(crate) fn count_of(&self, namespace: &NamespaceId) -> u64 {
        count_in(&self.open.lock(), namespace)
    }

    /// Returns at most `limit` subscriptions of a namespace whose ids are higher than `after`.
    pub(crate) fn list(
        &self,
        namespace: &NamespaceId,
        after: u64,
        limit: usize,
    ) -> Vec<Arc<OpenSubscription>> {
        let first = (namespace.clone(), after.saturating_add(1));
        let last = (namespace.clone(), u64::MAX);
        let open = self.open.lock();
        let found = open.range(first..=last).take(limit);
        found.map(|(_, one)| Arc::clone(one)).collect()
    }
}

fn count_in(open: &OpenByNamespace, namespace: &NamespaceId) -> u64 {
    let (first, last) = ((namespace.clone(), 0), (namespace.clone(), u64::MAX));
    open.range(first..=last).count() as u64
}

/// An open subscription, for as long as this lives.
pub(crate) struct Subscriber {
    shared: Arc<Shared>,
    entry: Arc<OpenSubscription>,
}

impl Subscriber {
    /// Notes that somebody follows what `read` selects, if the quota of the namespace allows one more.
    pub(crate) fn new(
        shared: Arc<Shared>,
        namespace: &NamespaceId,
        (protocol, endpoint): (&'static str, &'static str),
        (read, progress): (&Selection, SubscriptionProgress),
    ) -> Result<Self, Error> {
        let subscriptions = &shared.subscriptions;
        let query = query_of(read);
        let entry = Arc::new(OpenSubscription {
            id: subscriptions.last_id.fetch_add(1, Ordering::Relaxed) + 1,
            protocol,
            endpoint,
            since: shared.clock().now(),
            query: (query.len() <= QUERY_BYTES_MAX).then_some(query),
            namespace: namespace.clone(),
            sent_to: AtomicU64::new(0),
            progress,
            events: AtomicU64::new(0),
        });
        let key = (namespace.clone(), entry.id);
        let quotas = shared.namespaces.quota_keeper(namespace);
        let mut open = subscriptions.open.lock();
        let limit = quotas.limit(Quota::Subscriptions);
        if limit.is_some_and(|limit| count_in(&open, namespace) >= limit) {
            return Err(quotas.refuse(Quota::Subscriptions));
        }
        open.insert(key, Arc::clone(&entry));
        drop(open);
        Ok(Self { shared, entry })
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Notes up to which position the log was sent.
    pub(crate) fn reached(&self, position: u64) {
        self.entry.sent_to.store(position, Ordering::Relaxed);
    }

    /// Notes that events were sent.
    pub(crate) fn sent(&self, n_events: usize) {
        let n_events = n_events as u64;
        self.entry.events.fetch_add(n_events, Ordering::Relaxed);
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let key = (self.entry.namespace.clone(), self.entry.id);
        self.shared.subscriptions.open.lock().remove(&key);
    }
}

/// What a read selects, as a query is written over HTTP, with the rest of what narrows it down.
fn query_of(read: &Selection) -> String {
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    match &read.source {
        Source::All => {}
        Source::Category(name) => object.text("category", name),
        Source::Stream(name) => object.text("stream", name),
    }
    put_array(object.field("items"), &read.filter.query.items, put_item);
    if let Some(correlation) = &read.filter.correlation {
        object.text("correlation", correlation);
    }
    if let Some(group) = read.filter.group {
        let mut group_object = ObjectWriter::begin(object.field("consumerGroup"));
        group_object.number("member", group.member);
        group_object.number("size", group.size);
        group_object.end();
    }
    object.end();
    String::from_utf8(out).unwrap_or_default()
}

fn put_item(out: &mut Vec<u8>, item: &QueryItem) {
    let mut object = ObjectWriter::begin(out);
    for (name, names) in [("types", &item.types), ("tags", &item.tags)] {
        if !names.is_empty() {
            put_array(object.field(name), names, |out, name| put_string(out, name));
        }
    }
    object.end();
}

#[cfg(test)]
mod tests {
    use trefoil::{ConsumerGroup, Query};

    use super::*;

    #[test]
    fn what_is_followed_is_told_as_it_is_asked_for() {
        let group = ConsumerGroup::new(1, 3).unwrap();
        let item = QueryItem::any().of_type("A").tagged("x:1").tagged("y:2");
        let read = Selection::category("account")
            .matching(Query::from(item).or(QueryItem::any().tagged("z")))
            .for_group(group);
        let expected = r#"{"category":"account","items":[{"types":["A"],"tags":["x:1","y:2"]},{"tags":["z"]}],"consumerGroup":{"member":1,"size":3}}"#;
        assert_eq!(query_of(&read), expected);
        assert_eq!(query_of(&Selection::all()), r#"{"items":[]}"#);
        let stream = Selection::stream("a-1").correlated_with("b");
        let expected = r#"{"stream":"a-1","items":[],"correlation":"b"}"#;
        assert_eq!(query_of(&stream), expected);
    }
}
