//! Handing namespaces to other processes that share the home: all of them when this one is stopped, and a
//! few at a time when it has more than its share.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use trefoil_core::{Error, NamespaceId, Result};

use super::{Inner, Namespaces};
use crate::background::task::on_own_thread;

/// How many namespaces are handed over at the same time.
const MOVED_AT_ONCE: usize = 8;
/// How often is looked whether what keeps namespaces here is over.
const PAUSE: Duration = Duration::from_millis(20);

impl Namespaces {
    /// Hands all namespaces to other processes, if there are others, and opens none any more that
    /// another one can have. Whoever asks for one is told where it is. What takes several steps, such as an import,
    /// may take this long to finish; all of it together takes little longer. Returns how many were
    /// handed over. The rest stays open.
    pub fn drain(&self, patience: Duration) -> Result<usize> {
        let Some(cluster) = self.cluster() else {
            return Ok(0);
        };
        if !cluster.leave()? {
            return Ok(0);
        }
        let (clock, began) = (self.clock(), self.clock().steady());
        let mut n_moved = 0;
        loop {
            let is_urgent = clock.since(began) >= patience;
            let ids = match is_urgent {
                true => self.inner.pool.all_ids(),
                false => self.inner.pool.movable(),
            };
            let is_tried = !ids.is_empty();
            let n_more = self.inner.hand_over(ids, is_urgent);
            n_moved += n_more;
            let n_open = self.inner.pool.open_count();
            let has_nobody = is_tried && n_more == 0;
            if n_open == 0 || is_urgent || has_nobody {
                let elapsed_ms = super::millis(clock.since(began));
                tracing::info!(
                    n_moved,
                    n_open,
                    elapsed_ms,
                    "handed namespaces to other nodes"
                );
                return Ok(n_moved);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The async form of [`Self::drain`].
    pub async fn drain_async(&self, patience: Duration) -> Result<usize> {
        let namespaces = self.clone();
        on_own_thread(move || namespaces.drain(patience)).await
    }
}

impl Inner {
    /// Hands namespaces to other processes. Returns how many were.
    fn hand_over(&self, ids: Vec<NamespaceId>, is_urgent: bool) -> usize {
        let n_threads = ids.len().min(MOVED_AT_ONCE);
        let (queue, n_moved) = (Mutex::new(ids.into_iter()), Mutex::new(0));
        let work = || {
            loop {
                let Some(id) = queue.lock().next() else {
                    return;
                };
                match self.pool.hand_over(&id, is_urgent) {
                    Ok(is_moved) => *n_moved.lock() += usize::from(is_moved),
                    Err(error) => {
                        tracing::warn!(namespace = %id, %error, "was closed with an error");
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..n_threads {
                scope.spawn(work);
            }
        });
        n_moved.into_inner()
    }

    /// Takes what others have handed to this process, and hands a few namespaces to others if there are
    /// more here than should be.
    pub(super) fn share(self: &Arc<Self>) {
        let Some(cluster) = self.registry.home.cluster() else {
            return;
        };
        for id in cluster.gifts() {
            let inner = Arc::downgrade(self);
            self.open_in_background(move || {
                let Some(inner) = inner.upgrade() else {
                    return;
                };
                match (Namespaces { inner }).database_here(&id) {
                    // Somebody else has it by now, or it is gone.
                    Ok(_) | Err(Error::NotOwner { .. } | Error::NamespaceNotFound(_)) => {}
                    Err(error) => tracing::warn!(namespace = %id, %error, "cannot open"),
                }
            });
        }
        let surplus = cluster.surplus();
        if surplus > 0 {
            let mut ids = self.pool.movable();
            ids.truncate(surplus);
            self.hand_over(ids, false);
        }
    }
}
