//! OpeningAccount namespaces for clients: each once, however many ask for it, and a few at a time.
//!
//! Clients that ask for a namespace while it is being opened hold no thread. So one that takes long to
//! open delays nobody who asks for another one.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::{self, FutureExt as _};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};
use trefoil::{Error, NamespaceId, Namespaces, OpenDatabase, Result};

use crate::limits::OPENINGS_MAX;

/// On whose account a namespace is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OpeningAccount {
    /// If it should not be another node that opens it.
    WhereItBelongs,
    /// Unless another node has it.
    Here,
}

/// An opening that is under way, for all who wait for it.
type SharedOpening = future::Shared<oneshot::Receiver<Result<OpenDatabase>>>;

/// The openings that are under way.
#[derive(Debug)]
pub(crate) struct Openings {
    under_way: Mutex<HashMap<(NamespaceId, OpeningAccount), SharedOpening>>,
    turns: Semaphore,
}

impl Openings {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            under_way: Mutex::default(),
            turns: Semaphore::new(OPENINGS_MAX),
        })
    }

    /// Opens a namespace, or waits for the opening that is under way.
    pub(crate) async fn open(
        self: &Arc<Self>,
        namespaces: &Namespaces,
        id: &NamespaceId,
        account: OpeningAccount,
    ) -> Result<OpenDatabase> {
        let stopped = |_| Err(Error::Closed("the server is being stopped".to_owned()));
        let opening = self.join(namespaces, id, account);
        opening.await.unwrap_or_else(stopped)
    }

    fn join(
        self: &Arc<Self>,
        namespaces: &Namespaces,
        id: &NamespaceId,
        account: OpeningAccount,
    ) -> SharedOpening {
        let key = (id.clone(), account);
        let mut under_way = self.under_way.lock();
        if let Some(opening) = under_way.get(&key) {
            return opening.clone();
        }
        let (reply, opened) = oneshot::channel();
        let opening = opened.shared();
        under_way.insert(key.clone(), opening.clone());
        let (openings, namespaces) = (Arc::clone(self), namespaces.clone());
        // It goes on when those who asked have gone, so that it is over some day.
        tokio::spawn(async move {
            let turn = openings.turns.acquire().await;
            let opened = match account {
                OpeningAccount::WhereItBelongs => namespaces.database_async(&key.0).await,
                OpeningAccount::Here => namespaces.database_here_async(&key.0).await,
            };
            openings.under_way.lock().remove(&key);
            drop(turn);
            // Nobody may wait for it any more.
            let _ = reply.send(opened);
        });
        opening
    }
}

#[cfg(test)]
mod tests {
    use trefoil::{NamespacesOptions, NewNamespace};

    use super::*;

    #[tokio::test]
    async fn a_namespace_is_opened_once_for_all_who_ask() {
        let namespaces = Namespaces::in_memory(NamespacesOptions::default()).unwrap();
        let id = NamespaceId::new("shop").unwrap();
        namespaces.create(&id, NewNamespace::default()).unwrap();
        let openings = Openings::new();
        let first = openings.join(&namespaces, &id, OpeningAccount::Here);
        let second = openings.join(&namespaces, &id, OpeningAccount::Here);
        assert!(first.ptr_eq(&second));
        // Those who leave stop nothing.
        drop(first);
        second.await.unwrap().unwrap();
        assert!(openings.under_way.lock().is_empty());
        assert_eq!(openings.turns.available_permits(), OPENINGS_MAX);
        let nobody = NamespaceId::new("nobody").unwrap();
        for _ in 0..2 {
            let refused = openings
                .open(&namespaces, &nobody, OpeningAccount::Here)
                .await;
            assert!(matches!(refused, Err(Error::NamespaceNotFound(_))));
        }
    }
}
