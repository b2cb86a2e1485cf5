//! The clients that are connected: what is known of each, and how one is told to go.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use trefoil::NamespaceId;

use super::encoder::Protocol;

/// All clients of the server, and counts since it began.
#[derive(Debug)]
pub(crate) struct Clients {
    by_id: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// How many there have been.
    pub(super) accepted: AtomicU64,
    /// How many were turned away.
    pub(super) refused: AtomicU64,
    /// How many requests they have sent.
    pub(super) requests: AtomicU64,
    /// How many namespaces were taken from those who used them.
    revocations: AtomicU64,
    pub(super) began: Instant,
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            by_id: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            revocations: AtomicU64::new(0),
            began: Instant::now(),
        }
    }
}

impl Clients {
    /// A client has connected.
    pub(super) fn enter(&self, address: SocketAddr, local: SocketAddr) -> Arc<Client> {
        let id = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client {
            id,
            address,
            local,
            connected: Instant::now(),
            killed: CancellationToken::new(),
            known: Mutex::default(),
        });
        self.by_id.lock().insert(id, Arc::clone(&client));
        client
    }

    /// A client has gone.
    pub(super) fn leave(&self, client: &Client) {
        self.by_id.lock().remove(&client.id);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_id.lock().len()
    }

    /// The clients that a client of this namespace may know of, the oldest first: those of its
    /// namespace, or everybody for the administrator.
    pub(super) fn seen_by(&self, namespace: Option<&NamespaceId>) -> Vec<Arc<Client>> {
        let is_admin = namespace.is_some_and(NamespaceId::is_default);
        let is_seen =
            |client: &&Arc<Client>| is_admin || client.known.lock().namespace.as_ref() == namespace;
        let clients = self.by_id.lock();
        clients.values().filter(is_seen).cloned().collect()
    }

    /// Changes whenever a namespace is taken from those who used it.
    pub(super) fn revocations(&self) -> u64 {
        self.revocations.load(Ordering::SeqCst)
    }

    /// A namespace is gone: whoever used it may not use another one that is given its name.
    pub(crate) fn revoke(&self, namespace: &NamespaceId) {
        self.revocations.fetch_add(1, Ordering::SeqCst);
        for client in self.by_id.lock().values() {
            let mut known = client.known.lock();
            known.is_revoked |= known.namespace.as_ref() == Some(namespace);
        }
    }
}

/// A client that is connected.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u64,
    pub(super) address: SocketAddr,
    pub(super) local: SocketAddr,
    connected: Instant,
    /// Cancelled when another client ends this one.
    pub(super) killed: CancellationToken,
    pub(super) known: Mutex<Known>,
}

/// What changes about a client.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) library: String,
    pub(super) library_version: String,
    pub(super) namespace: Option<NamespaceId>,
    /// Whether its namespace was deleted.
    pub(super) is_revoked: bool,
    pub(super) protocol: Protocol,
    /// The last command, and when it came.
    pub(super) command: &'static str,
    pub(super) active: Option<Instant>,
    /// How many commands wait for `EXEC`, if any do.
    pub(super) queued: Option<usize>,
    pub(super) is_watching: bool,
}

impl Client {
    /// A line as `CLIENT LIST` has it, of what is true here.
    pub(super) fn line(&self) -> String {
        let known = self.known.lock();
        let age = self.connected.elapsed().as_secs();
        let active = known.active.unwrap_or(self.connected);
        let idle = active.elapsed().as_secs();
        let flags = if known.queued.is_some() { "x" } else { "N" };
        let queued = known
            .queued
            .map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX));
        let user = known.namespace.as_ref().map_or("", NamespaceId::as_str);
        let mut line = String::with_capacity(256);
        // Writing into a string does not fail.
        let _ = write!(
            line,
            "id={} addr={} laddr={} name={} age={age} idle={idle} flags={flags} db=0 sub=0 psub=0 \
             ssub=0 multi={queued} watch={} cmd={} user={user} redir=-1 resp={} lib-name={} \
             lib-ver={}",
            self.id,
            self.address,
            self.local,
            known.name,
            u8::from(known.is_watching),
            known.command,
            known.protocol.number(),
            known.library,
            known.library_version,
        );
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_see_their_own_namespace_and_the_administrator_sees_all() {
        let clients = Clients::default();
        let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let names = ["default", "a", "b", "a"].map(|name| NamespaceId::new(name).unwrap());
        let entered = names.clone().map(|name| {
            let client = clients.enter(address, address);
            client.known.lock().namespace = Some(name);
            client
        });
        let seen = |name: &NamespaceId| {
            let seen = clients.seen_by(Some(name));
            seen.iter().map(|client| client.id).collect::<Vec<_>>()
        };
        assert_eq!(seen(&names[0]), [1, 2, 3, 4]);
        assert_eq!(seen(&names[1]), [2, 4]);
        clients.revoke(&names[1]);
        clients.leave(&entered[3]);
        assert_eq!(seen(&names[1]), [2]);
        let revoked = entered.map(|client| client.known.lock().is_revoked);
        assert_eq!(revoked, [false, true, false, true]);
    }
}
