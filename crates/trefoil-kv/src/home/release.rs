//! Letting namespaces go: their stores are closed and other nodes are told, on a thread for that,
//! because nobody who releases a namespace may wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use trefoil::home::Incarnation;
use trefoil_core::{Error, Result};

use super::node::NodeId;
use super::ownership::{NamespaceOwners, OwnedEpoch};
use crate::contract::{Kv, KvEngine};

/// A namespace that is being let go.
pub(super) struct Leaving {
    pub(super) incarnation: Incarnation,
    pub(super) node: NodeId,
    /// `None` if another node has it.
    pub(super) epoch: Option<OwnedEpoch>,
    pub(super) store: Option<Arc<dyn Kv>>,
    /// Who should have it next.
    pub(super) successor: Option<NodeId>,
}

/// What other nodes are told.
#[derive(Debug, Clone)]
struct ReleasedEpoch {
    node: NodeId,
    epoch: OwnedEpoch,
    successor: Option<NodeId>,
}

/// What is being let go.
#[derive(Debug)]
pub(super) struct Releases {
    engine: Arc<dyn KvEngine>,
    /// How many are under way of each namespace.
    under_way: Mutex<HashMap<Incarnation, usize>>,
    settled: Condvar,
    /// What other nodes could not be told: it is tried again, because they take it for this node's
    /// otherwise.
    untold: Mutex<HashMap<Incarnation, ReleasedEpoch>>,
}

impl Releases {
    fn perform(&self, leaving: Leaving) {
        let Leaving {
            incarnation,
            node,
            epoch,
            store,
            successor,
        } = leaving;
        // What was durable stays, and what was not is of no use to anybody.
        let closed = store.map_or(Ok(()), |store| store.close());
        if let Err(error) = closed {
            tracing::warn!(?error, "cannot close a store");
        }
        if let Some(epoch) = epoch {
            let released = ReleasedEpoch {
                node,
                epoch,
                successor,
            };
            self.tell(incarnation, released);
        }
        let mut under_way = self.under_way.lock();
        if let Some(count) = under_way.get_mut(&incarnation) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&incarnation);
            }
        }
        drop(under_way);
        self.settled.notify_all();
    }

    /// Tells other nodes that they may have a namespace.
    fn tell(&self, incarnation: Incarnation, released: ReleasedEpoch) {
        let owners = NamespaceOwners {
            objects: self.engine.objects(),
            incarnation,
            node: released.node,
        };
        if let Err(error) = owners.release(&released.epoch, released.successor) {
            tracing::warn!(%error, "cannot tell others yet that they may have a namespace");
            self.untold.lock().insert(incarnation, released);
        }
    }

    /// Tries again what failed.
    pub(super) fn tell_again(&self) {
        let untold = std::mem::take(&mut *self.untold.lock());
        for (incarnation, released) in untold {
            self.tell(incarnation, released);
        }
    }

    /// Waits until nothing of a namespace is being let go.
    pub(super) fn settle(&self, incarnation: Incarnation) {
        let mut under_way = self.under_way.lock();
        while under_way.contains_key(&incarnation) {
            self.settled.wait(&mut under_way);
        }
    }
}

/// Lets namespaces go.
#[derive(Debug)]
pub(super) struct Releaser {
    pub(super) releases: Arc<Releases>,
    /// `None` if they are let go on the thread that asks, as in a simulation.
    thread: Mutex<Option<(Sender<Leaving>, JoinHandle<()>)>>,
}

impl Releaser {
    pub(super) fn start(engine: Arc<dyn KvEngine>, has_thread: bool) -> Result<Self> {
        let releases = Arc::new(Releases {
            engine,
            under_way: Mutex::default(),
            settled: Condvar::new(),
            untold: Mutex::default(),
        });
        let start = || -> Result<_> {
            let (sender, leaving) = channel();
            let worker = Arc::clone(&releases);
            let thread = std::thread::Builder::new()
                .name("trefoil-release".to_owned())
                .spawn(move || work(&worker, &leaving))
                .map_err(|error| Error::io("starting a thread", &error))?;
            Ok((sender, thread))
        };
        let thread = has_thread.then(start).transpose()?;
        Ok(Self {
            releases,
            thread: Mutex::new(thread),
        })
    }

    /// Lets a namespace go, and returns when others may have it.
    pub(super) fn release_now(&self, leaving: Leaving) {
        self.begin(leaving.incarnation);
        self.releases.perform(leaving);
    }

    fn begin(&self, incarnation: Incarnation) {
        let mut under_way = self.releases.under_way.lock();
        *under_way.entry(incarnation).or_default() += 1;
    }

    /// Lets a namespace go, and does not wait.
    pub(super) fn release(&self, leaving: Leaving) {
        self.begin(leaving.incarnation);
        let thread = self.thread.lock();
        let unsent = match &*thread {
            Some((sender, _)) => sender.send(leaving).err().map(|unsent| unsent.0),
            None => Some(leaving),
        };
        drop(thread);
        if let Some(leaving) = unsent {
            self.releases.perform(leaving);
        }
    }

    /// Waits until everything has been let go.
    pub(super) fn close(&self) {
        let thread = self.thread.lock().take();
        if let Some((sender, thread)) = thread {
            drop(sender);
            // If it panicked, others have its namespaces when this node is gone.
            let _ = thread.join();
        }
    }
}

fn work(releases: &Releases, leaving: &Receiver<Leaving>) {
    while let Ok(leaving) = leaving.recv() {
        releases.perform(leaving);
    }
}
