//! One client: who it is, how it wants to be answered, and what it has begun.

use std::sync::Arc;
use std::time::Instant;

use trefoil::{DEFAULT_NAMESPACE, NamespaceId, OpenDatabase, Watch};

use super::clients::Client;
use super::encoder::Protocol;
use super::failure::of_failure;
use super::metrics::Tally;
use super::multi::Multi;
use super::parser::Trust;
use super::pending::Pending;
use super::wishes::Wishes;
use super::words::{Answer, error};
use crate::Config;
use crate::connections::Guest;
use crate::service::Shared;

/// Whether a client wants replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Replies {
    #[default]
    On,
    Off,
    /// All but the next one.
    SkipNext,
}

/// Keys that a client watches, in a namespace that stays open meanwhile.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) watch: Watch,
    pub(super) database: OpenDatabase,
}

/// One client.
pub(super) struct Session {
    shared: Arc<Shared>,
    pub(super) guest: Arc<Guest>,
    pub(super) client: Arc<Client>,
    protocol: Protocol,
    namespace: Option<NamespaceId>,
    /// The database of the namespace, while requests are being carried out.
    pub(super) database: Option<OpenDatabase>,
    pub(super) pending: Pending,
    pub(super) multi: Option<Multi>,
    pub(super) watched: Option<Watched>,
    /// How all transactions are to be, and the next one.
    pub(super) wishes: Wishes,
    replies: Replies,
    /// Whether the reply of the present request is not wanted.
    pub(super) is_silent: bool,
    /// Whether the connection ends when all is answered.
    pub(super) is_closing: bool,
    pub(super) tally: Tally,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, guest: Arc<Guest>, client: Arc<Client>) -> Self {
        let mut session = Self {
            shared,
            guest,
            client,
            protocol: Protocol::default(),
            namespace: None,
            database: None,
            pending: Pending::default(),
            multi: None,
            watched: None,
            wishes: Wishes::default(),
            replies: Replies::On,
            is_silent: false,
            is_closing: false,
            tally: Tally::default(),
        };
        session.leave();
        session
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.client.known.lock().protocol = protocol;
    }

    /// Whether the client has yet to show who it is.
    pub(super) fn is_stranger(&self) -> bool {
        self.namespace.is_none()
    }

    pub(super) fn trust(&self) -> Trust {
        match self.is_stranger() {
            true => Trust::Stranger,
            false => Trust::Known,
        }
    }

    /// Begins to use a namespace; what was begun in another one is dropped.
    pub(super) fn enter(&mut self, namespace: NamespaceId) {
        let mut known = self.client.known.lock();
        known.namespace = Some(namespace.clone());
        known.is_revoked = false;
        drop(known);
        self.database = None;
        self.watched = None;
        self.guest.share.enter(&namespace);
        self.namespace = Some(namespace);
    }

    /// Goes back to what a client may use that has not shown who it is.
    pub(super) fn leave(&mut self) {
        let resp = self.shared.config.resp.as_ref();
        let is_open = self.shared.config.test_mode || resp.is_some_and(|resp| resp.anonymous);
        let default = NamespaceId::new(DEFAULT_NAMESPACE).ok();
        self.namespace = default.filter(|_| is_open);
        if let Some(namespace) = &self.namespace {
            self.guest.share.enter(namespace);
        }
        self.database = None;
        self.watched = None;
        let mut known = self.client.known.lock();
        known.namespace = self.namespace.clone();
        known.is_revoked = false;
    }

    /// Forgets everything that the client has begun or said.
    pub(super) fn reset(&mut self) {
        self.multi = None;
        self.wishes = Wishes::default();
        self.replies = Replies::On;
        self.is_silent = false;
        self.leave();
        self.set_protocol(Protocol::Two);
        self.client.known.lock().name.clear();
    }

    /// Stops watching keys.
    pub(super) fn unwatch(&mut self) {
        self.watched = None;
    }

    /// Chooses which replies are wanted from now on; all but `On` leave out the present one too.
    pub(super) fn set_replies(&mut self, replies: Replies) {
        // Who wants none at all need not leave out the next one.
        if self.replies == Replies::Off && replies == Replies::SkipNext {
            return;
        }
        self.replies = replies;
        self.is_silent = replies != Replies::On;
    }

    /// A request has come: decides whether its reply is wanted.
    pub(super) fn begin_request(&mut self) {
        self.is_silent = self.replies != Replies::On;
        if self.replies == Replies::SkipNext {
            self.replies = Replies::On;
        }
    }

    /// Counts requests that have come together.
    pub(super) fn count(&self, requests: usize) {
        let total = &self.shared.resp.requests;
        total.fetch_add(requests as u64, std::sync::atomic::Ordering::Relaxed);
        self.shared.metrics.resp.batch.observe(requests as f64);
    }

    /// The clients that this one may know of.
    pub(super) fn fellows(&self) -> Vec<Arc<Client>> {
        self.shared.resp.seen_by(self.namespace.as_ref())
    }

    /// Ends a client. If that is this one, it is answered first.
    pub(super) fn end(&mut self, client: &Client) {
        if client.id == self.client.id {
            self.is_closing = true;
        } else {
            client.killed.cancel();
        }
    }

    /// The database of the client's namespace.
    pub(super) async fn database(&mut self) -> Answer<OpenDatabase> {
        if let Some(database) = &self.database {
            return Ok(database.clone());
        }
        let namespace = self.namespace.as_ref().ok_or_else(not_authenticated)?;
        if self.client.known.lock().is_revoked {
            return Err(error(format!(
                "ERR namespace '{namespace}' was deleted or has another token: authenticate again"
            )));
        }
        let database = self.shared.database(namespace).await;
        let database = database.map_err(|failure| of_failure(&failure))?;
        self.database = Some(database.clone());
        Ok(database)
    }

    /// Everything that has arrived is answered: lets go of the database and leaves word of what the
    /// client does.
    pub(super) fn rest(&mut self, began: Instant) {
        self.database = None;
        self.pending.memory.clear();
        let now = self.leave_word();
        let time = now.saturating_duration_since(began);
        self.tally.flush(&self.shared, time);
    }

    /// Leaves word of what the client does. Answers when that was.
    pub(super) fn leave_word(&self) -> Instant {
        let now = Instant::now();
        let multi = self.multi.as_ref();
        let mut known = self.client.known.lock();
        known.command = self.tally.last();
        known.active = Some(now);
        known.queued = multi.map(Multi::len);
        known.queued_bytes = multi.map_or(0, Multi::bytes);
        known.is_watching = self.watched.is_some();
        now
    }

    /// The name of the client's namespace, which is the user's name to Redis' clients.
    pub(super) fn user(&self) -> String {
        let namespace = self.namespace.as_ref();
        namespace.map_or_else(String::new, NamespaceId::to_string)
    }

    /// Whether a namespace is there, as far as this client may know.
    pub(super) fn knows_user(&self, name: &[u8]) -> bool {
        if !self.is_administrator() {
            return self.user().as_bytes() == name;
        }
        let name = std::str::from_utf8(name).ok();
        name.is_some_and(|name| self.shared.namespaces.entry(name).is_ok())
    }

    pub(super) fn is_administrator(&self) -> bool {
        self.namespace.as_ref().is_some_and(NamespaceId::is_default)
    }
}

impl Session {
    /// The client is no longer one of those that are connected.
    pub(super) fn end_visit(&self) {
        self.shared.resp.leave(&self.client);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end_visit();
    }
}

/// The client has not shown who it is.
pub(super) fn not_authenticated() -> trefoil::Reply {
    error("NOAUTH Authentication required.")
}
