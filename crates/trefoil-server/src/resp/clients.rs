//! The clients that are connected: what is known of each, and how one is told to go.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use trefoil::{Clock, Commands, NamespaceId};

use super::command::Catalogue;
use super::encoder::RespVersion;
use super::metrics::RespMetrics;
use super::session::Session;
use super::usage::CommandUsage;

/// All clients of the server, and counts since it began.
#[derive(Debug)]
pub(crate) struct RespClients {
    by_id: Mutex<BTreeMap<u64, Arc<RespClient>>>,
    /// How many there have been.
    pub(super) accepted: AtomicU64,
    /// How many were turned away.
    pub(super) refused: AtomicU64,
    /// How many requests they have sent.
    pub(super) requests: AtomicU64,
    clock: Clock,
    /// When the server began, by the steady clock.
    began: Duration,
    /// All commands.
    pub(crate) catalogue: Catalogue,
    /// What is counted of each command.
    pub(super) usage: CommandUsage,
    /// What had been counted of everything else when that was reset.
    before: Mutex<Totals>,
}

/// What is counted of all clients together.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) requests: u64,
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) errors: u64,
}

impl RespClients {
    /// No clients yet, who may use these commands.
    pub(crate) fn new(commands: &Commands, clock: Clock) -> Self {
        let catalogue = Catalogue::new(commands);
        Self {
            by_id: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            began: clock.steady(),
            clock,
            usage: CommandUsage::new(catalogue.names()),
            catalogue,
            before: Mutex::default(),
        }
    }

    /// Returns for how long the server has been running.
    pub(super) fn uptime(&self) -> Duration {
        self.clock.since(self.began)
    }

    /// A client has connected. `killed` ends its connection.
    pub(super) fn enter(
        &self,
        address: SocketAddr,
        local: SocketAddr,
        descriptor: RawFd,
        killed: &CancellationToken,
    ) -> Arc<RespClient> {
        let id = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(RespClient {
            id,
            address,
            local,
            connected: self.clock.steady(),
            clock: self.clock.clone(),
            unread: AtomicUsize::new(0),
            unsent: AtomicUsize::new(0),
            descriptor,
            killed: killed.clone(),
            known: Mutex::default(),
        });
        self.by_id.lock().insert(id, Arc::clone(&client));
        client
    }

    /// A client has gone.
    pub(super) fn leave(&self, client: &RespClient) {
        self.by_id.lock().remove(&client.id);
    }

    fn totals(&self, metrics: &RespMetrics) -> Totals {
        Totals {
            accepted: self.accepted.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            received: metrics.received.get(),
            sent: metrics.sent.get(),
            errors: metrics.errors.total(),
        }
    }

    /// What was counted since the server began, or since that was reset.
    pub(super) fn statistics(&self, metrics: &RespMetrics) -> Totals {
        let (now, before) = (self.totals(metrics), *self.before.lock());
        Totals {
            accepted: now.accepted.saturating_sub(before.accepted),
            refused: now.refused.saturating_sub(before.refused),
            requests: now.requests.saturating_sub(before.requests),
            received: now.received.saturating_sub(before.received),
            sent: now.sent.saturating_sub(before.sent),
            errors: now.errors.saturating_sub(before.errors),
        }
    }

    /// Begins to count anew. What `/metrics` tells goes on.
    pub(super) fn reset_statistics(&self, metrics: &RespMetrics) {
        *self.before.lock() = self.totals(metrics);
        self.usage.reset();
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_id.lock().len()
    }

    /// The clients that a client of this namespace may know of, the oldest first: those of its
    /// namespace, or everybody for the administrator of the server.
    pub(super) fn seen_by(
        &self,
        namespace: Option<&NamespaceId>,
        is_admin: bool,
    ) -> Vec<Arc<RespClient>> {
        let is_seen = |client: &&Arc<RespClient>| {
            is_admin || client.known.lock().namespace.as_ref() == namespace
        };
        let clients = self.by_id.lock();
        clients.values().filter(is_seen).cloned().collect()
    }
}

/// A client that is connected.
#[derive(Debug)]
pub(super) struct RespClient {
    pub(super) id: u64,
    pub(super) address: SocketAddr,
    pub(super) local: SocketAddr,
    clock: Clock,
    /// When it connected, by the steady clock.
    connected: Duration,
    /// Bytes of a request that has not arrived whole.
    pub(super) unread: AtomicUsize,
    /// Bytes of replies that it has yet to take.
    pub(super) unsent: AtomicUsize,
    /// The number of its socket.
    descriptor: RawFd,
    /// Cancelled when another client ends this one.
    pub(super) killed: CancellationToken,
    pub(super) known: Mutex<ClientFacts>,
}

/// What changes about a client.
#[derive(Debug, Default)]
pub(super) struct ClientFacts {
    pub(super) name: String,
    pub(super) library: String,
    pub(super) library_version: String,
    pub(super) namespace: Option<NamespaceId>,
    pub(super) protocol: RespVersion,
    /// The last command, and when it came, by the steady clock.
    pub(super) command: &'static str,
    pub(super) active: Option<Duration>,
    /// How many commands wait for `EXEC`, if any do, and about how many bytes they take.
    pub(super) queued: Option<usize>,
    pub(super) queued_bytes: usize,
    pub(super) is_watching: bool,
}

impl ClientFacts {
    fn command_or_none(&self) -> &'static str {
        match self.command {
            "" => "NULL",
            command => command,
        }
    }
}

impl RespClient {
    /// A line as `CLIENT LIST` has it, of what is true here.
    pub(super) fn line(&self) -> String {
        let known = self.known.lock();
        let age = self.clock.since(self.connected).as_secs();
        let active = known.active.unwrap_or(self.connected);
        let idle = self.clock.since(active).as_secs();
        let flags = if known.queued.is_some() { "x" } else { "N" };
        let queued = known
            .queued
            .map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX));
        let user = known.namespace.as_ref().map_or("", NamespaceId::as_str);
        let unread = self.unread.load(Ordering::Relaxed);
        let unsent = self.unsent.load(Ordering::Relaxed);
        let held = unread + known.queued_bytes + unsent;
        let mut line = String::with_capacity(384);
        // Writing into a string does not fail.
        let _ = write!(
            line,
            "id={} addr={} laddr={} fd={} name={} age={age} idle={idle} flags={flags} db=0 sub=0 psub=0 \
             ssub=0 multi={queued} watch={} qbuf={unread} qbuf-free=0 argv-mem=0 multi-mem={} rbs=0 \
             rbp=0 obl={unsent} oll=0 omem={unsent} tot-mem={} events=r cmd={} user={user} redir=-1 resp={} \
             lib-name={} lib-ver={}",
            self.id,
            self.address,
            self.local,
            self.descriptor,
            known.name,
            u8::from(known.is_watching),
            known.queued_bytes,
            size_of::<Session>() + size_of::<Self>() + held,
            known.command_or_none(),
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
        let clients = RespClients::new(Commands::redis(), Clock::default());
        let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let names = ["default", "a", "b", "a"].map(|name| NamespaceId::new(name).unwrap());
        let entered = names.clone().map(|name| {
            let client = clients.enter(address, address, 7, &CancellationToken::new());
            client.known.lock().namespace = Some(name);
            client
        });
        let seen = |name: &NamespaceId| {
            let seen = clients.seen_by(Some(name), name.is_default());
            seen.iter().map(|client| client.id).collect::<Vec<_>>()
        };
        assert_eq!(seen(&names[0]), [1, 2, 3, 4]);
        assert_eq!(seen(&names[1]), [2, 4]);
        clients.leave(&entered[3]);
        assert_eq!(seen(&names[1]), [2]);
    }
}
