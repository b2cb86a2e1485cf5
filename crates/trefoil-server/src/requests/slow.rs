//! The last slow requests of each namespace, which `SLOWLOG` shows.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use trefoil::{NamespaceId, Timestamp};

/// So many are kept for a namespace, as in Redis.
pub(crate) const SLOW_REQUESTS_MAX: usize = 128;
/// So many bytes are kept for all namespaces.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// About how much memory a request takes besides its words.
const REQUEST_BYTES: usize = 256;

/// A request that was slow.
#[derive(Debug, Clone)]
pub(crate) struct SlowRequest {
    /// Its number among those of its namespace.
    pub(crate) id: u64,
    /// When it ended.
    pub(crate) time: Timestamp,
    pub(crate) elapsed: Duration,
    /// Its words, as far as they are shown.
    pub(crate) words: Vec<Bytes>,
    /// The address of the client, and the name that it gave itself.
    pub(crate) address: String,
    pub(crate) client: String,
}

impl SlowRequest {
    fn n_bytes(&self) -> usize {
        let words = self.words.iter().map(Bytes::len).sum::<usize>();
        REQUEST_BYTES + words + self.address.len() + self.client.len()
    }
}

#[derive(Debug, Default)]
struct SlowOfNamespace {
    /// How many there were.
    n_requests: u64,
    requests: VecDeque<SlowRequest>,
}

#[derive(Debug, Default)]
struct SlowState {
    namespaces: HashMap<NamespaceId, SlowOfNamespace>,
    n_bytes: usize,
}

impl SlowState {
    fn forget_oldest(&mut self, namespace: &NamespaceId) -> bool {
        let kept = self.namespaces.get_mut(namespace);
        let oldest = kept.and_then(|kept| kept.requests.pop_front());
        self.n_bytes -= oldest.as_ref().map_or(0, SlowRequest::n_bytes);
        oldest.is_some()
    }

    /// Returns the namespace that has the most requests.
    fn largest(&self) -> Option<NamespaceId> {
        let kept = self.namespaces.iter();
        let largest = kept.max_by_key(|(_, kept)| kept.requests.len())?;
        Some(largest.0.clone())
    }
}

/// The last slow requests of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct SlowRequests(Mutex<SlowState>);

impl SlowRequests {
    /// Adds a request to those of its namespace. Its number is chosen here.
    pub(crate) fn add(&self, namespace: &NamespaceId, mut request: SlowRequest) {
        let mut state = self.0.lock();
        let n_bytes = request.n_bytes();
        let kept = state.namespaces.entry_ref(namespace).or_default();
        request.id = kept.n_requests;
        kept.n_requests += 1;
        kept.requests.push_back(request);
        let is_full = kept.requests.len() > SLOW_REQUESTS_MAX;
        state.n_bytes += n_bytes;
        if is_full {
            state.forget_oldest(namespace);
        }
        while state.n_bytes > BYTES_MAX {
            let Some(largest) = state.largest() else {
                return;
            };
            if !state.forget_oldest(&largest) {
                return;
            }
        }
    }

    /// Returns the last requests of a namespace, the newest first.
    pub(crate) fn last(&self, namespace: &NamespaceId, n_max: usize) -> Vec<SlowRequest> {
        let state = self.0.lock();
        let Some(kept) = state.namespaces.get(namespace) else {
            return Vec::new();
        };
        kept.requests.iter().rev().take(n_max).cloned().collect()
    }

    /// Returns how many requests of a namespace are kept.
    pub(crate) fn count(&self, namespace: &NamespaceId) -> usize {
        let state = self.0.lock();
        let kept = state.namespaces.get(namespace);
        kept.map_or(0, |kept| kept.requests.len())
    }

    /// Forgets the requests of a namespace. Their numbers are not used again.
    pub(crate) fn reset(&self, namespace: &NamespaceId) {
        let mut state = self.0.lock();
        while state.forget_oldest(namespace) {}
    }

    /// Forgets a namespace that is gone.
    pub(crate) fn remove(&self, namespace: &NamespaceId) {
        self.reset(namespace);
        self.0.lock().namespaces.remove(namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize) -> SlowRequest {
        SlowRequest {
            id: 0,
            time: Timestamp::default(),
            elapsed: Duration::from_secs(1),
            words: vec![Bytes::from(vec![b'x'; bytes])],
            address: String::new(),
            client: String::new(),
        }
    }

    #[test]
    fn the_last_ones_are_kept_for_each_namespace() {
        let [one, other] = ["one", "other"].map(|id| NamespaceId::new(id).unwrap());
        let slow = SlowRequests::default();
        for _ in 0..200 {
            slow.add(&one, request(1));
        }
        slow.add(&other, request(1));
        let ids = |namespace| -> Vec<u64> {
            let last = slow.last(namespace, 3);
            last.iter().map(|request| request.id).collect()
        };
        assert_eq!(ids(&one), [199, 198, 197]);
        assert_eq!(ids(&other), [0]);
        assert_eq!((slow.count(&one), slow.count(&other)), (128, 1));
        slow.reset(&one);
        slow.add(&one, request(1));
        assert_eq!((ids(&one), slow.count(&other)), (vec![200], 1));
        slow.remove(&one);
        slow.add(&one, request(1));
        assert_eq!(ids(&one), [0], "another namespace of the same name");
    }

    #[test]
    fn memory_is_bounded() {
        let slow = SlowRequests::default();
        for number in 0..10_000 {
            let namespace = NamespaceId::new(&format!("n{}", number % 100)).unwrap();
            slow.add(&namespace, request(4000));
        }
        let state = slow.0.lock();
        let kept = state.namespaces.values();
        let requests = kept.flat_map(|kept| &kept.requests);
        let n_bytes: usize = requests.map(SlowRequest::n_bytes).sum();
        assert_eq!(n_bytes, state.n_bytes);
        assert!(n_bytes <= BYTES_MAX && n_bytes > BYTES_MAX / 2);
    }
}
