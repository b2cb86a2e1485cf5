//! Who a client is, what it may see, and how it wants to be answered.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trefoil::{DEFAULT_NAMESPACE, Grant, NamespaceId, OpenDatabase};

use super::clients::RespClient;
use super::command::FoundCommand;
use super::criteria::ExecOptions;
use super::encoder::RespVersion;
use super::failure::{of_error, of_failure};
use super::multi::Multi;
use super::parser::Trust;
use super::session::Session;
use super::wishes::Wishes;
use super::words::{ReplyResult, error};
use crate::Config;
use crate::connections::Guest;
use crate::permit;
use crate::service::Shared;
use crate::visits::{NOT_GRANTED, Visit};

/// How often it is noted that a connection uses its token.
const USE_NOTED_EVERY: Duration = Duration::from_secs(60);

/// Whether a client wants replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReplyMode {
    #[default]
    On,
    Off,
    /// All but the next one.
    SkipNext,
}

impl Session {
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns whether a peer sends on what the client asks for.
    pub(super) fn is_of_peer(&self) -> bool {
        self.guest.is_peer
    }

    pub(super) fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(super) fn protocol(&self) -> RespVersion {
        self.protocol
    }

    pub(super) fn set_protocol(&mut self, protocol: RespVersion) {
        self.protocol = protocol;
        self.client.known.lock().protocol = protocol;
    }

    /// Returns whether the client has yet to show who it is.
    pub(super) fn is_stranger(&self) -> bool {
        self.namespace.is_none()
    }

    pub(super) fn trust(&self) -> Trust {
        match self.is_stranger() {
            true => Trust::Stranger,
            false => Trust::Known,
        }
    }

    /// Begins to use a namespace, if its quotas allow that; what was begun in another one is dropped. Returns
    /// whether it may be used: the token may have been revoked meanwhile.
    pub(super) fn enter(&mut self, grant: &Arc<Grant>) -> ReplyResult<bool> {
        self.count_in(grant)?;
        let namespace = grant.namespace().clone();
        self.client.known.lock().namespace = Some(namespace.clone());
        self.visit = Some(self.begin_visit(grant));
        self.database = None;
        self.watched = None;
        self.forget_relay();
        self.namespace = Some(namespace);
        Ok(self.check_not_revoked().is_ok())
    }

    /// Has the connection count as one of a namespace, if its quota allows that.
    fn count_in(&self, grant: &Grant) -> ReplyResult<()> {
        let Guest { share, is_peer, .. } = &*self.guest;
        let entered = self.shared.enter(share, grant, *is_peer);
        entered.map_err(|failure| of_failure(&failure))
    }

    /// Notes now and then that the token is used.
    pub(super) fn note_use(&mut self) {
        if self.began.saturating_sub(self.use_noted) < USE_NOTED_EVERY {
            return;
        }
        self.use_noted = self.began;
        if let Some(visit) = &self.visit {
            self.shared.namespaces.note_lasting_use(visit.grant());
        }
    }

    fn begin_visit(&self, grant: &Arc<Grant>) -> Visit {
        let Shared {
            visits, namespaces, ..
        } = &*self.shared;
        visits.begin(namespaces, grant)
    }

    /// Goes back to what a client may use that has not shown who it is.
    pub(super) fn leave(&mut self) {
        let resp = self.shared.config.resp.as_ref();
        let is_open = self.shared.config.test_mode || resp.is_some_and(|resp| resp.anonymous);
        let default = NamespaceId::new(DEFAULT_NAMESPACE).ok();
        let default = default.filter(|_| is_open);
        let anybody = default.map(|default| self.shared.namespaces.admit_anybody(&default));
        // Everybody is the administrator then, who is not counted.
        let anybody = anybody.filter(|anybody| self.count_in(anybody).is_ok());
        self.namespace = anybody.as_ref().map(|anybody| anybody.namespace().clone());
        self.visit = anybody.map(|anybody| self.begin_visit(&anybody));
        self.database = None;
        self.watched = None;
        self.forget_relay();
        self.client.known.lock().namespace = self.namespace.clone();
    }

    /// Forgets everything that the client has begun or said.
    pub(super) fn reset(&mut self) {
        self.multi = None;
        self.wishes = Wishes::default();
        self.reply_mode = ReplyMode::On;
        self.is_silent = false;
        self.leave();
        self.set_protocol(RespVersion::Two);
        self.client.known.lock().name.clear();
    }

    /// Stops watching keys.
    pub(super) fn unwatch(&mut self) {
        self.watched = None;
        self.unwatch_there();
    }

    /// Chooses which replies are wanted from now on; all but `On` leave out the present one too.
    pub(super) fn set_reply_mode(&mut self, mode: ReplyMode) {
        // A client that wants no replies at all need not skip the next one.
        if self.reply_mode == ReplyMode::Off && mode == ReplyMode::SkipNext {
            return;
        }
        self.reply_mode = mode;
        self.is_silent = mode != ReplyMode::On;
    }

    /// Begins a request: decides whether its reply is wanted.
    pub(super) fn begin_request(&mut self) {
        self.is_silent = self.reply_mode != ReplyMode::On;
        if self.reply_mode == ReplyMode::SkipNext {
            self.reply_mode = ReplyMode::On;
        }
    }

    /// The clients that this one may know of.
    pub(super) fn fellows(&self) -> Vec<Arc<RespClient>> {
        let namespace = self.namespace.as_ref();
        self.shared.resp.seen_by(namespace, self.is_administrator())
    }

    /// Ends a client. If that is this one, it is answered first.
    pub(super) fn end(&mut self, client: &RespClient) {
        if client.id == self.client.id {
            self.is_closing = true;
        } else {
            client.killed.cancel();
        }
    }

    /// Refuses a client whose namespace is not its own any more.
    pub(super) fn check_not_revoked(&self) -> ReplyResult<()> {
        let clock = self.shared.clock();
        match self
            .visit
            .as_ref()
            .is_some_and(|visit| visit.is_over(clock))
        {
            false => Ok(()),
            true => Err(error(format!(
                "ERR namespace '{}' was deleted, or {NOT_GRANTED}: authenticate again",
                self.user()
            ))),
        }
    }

    /// Refuses a command that the token of the client does not permit.
    pub(super) fn permit(&self, found: FoundCommand, words: &[Bytes]) -> ReplyResult<()> {
        let Some(visit) = self
            .visit
            .as_ref()
            .filter(|_| found.is_permitted_by_token())
        else {
            return Ok(());
        };
        self.check_not_revoked()?;
        let permitted = self
            .shared
            .resp
            .catalogue
            .permit(visit.grant(), found, words);
        permitted.map_err(|failure| of_error(&failure))
    }

    /// Refuses conditions of an `EXEC` that the token of the client does not permit.
    pub(super) fn permit_exec(&self, options: &ExecOptions) -> ReplyResult<()> {
        let Some(visit) = &self.visit else {
            return Ok(());
        };
        let permitted = permit::conditions(visit.grant(), &options.conditions)
            .and_then(|()| permit::guards(visit.grant(), &options.guards));
        permitted.map_err(|failure| of_error(&failure))
    }

    /// The database of the client's namespace.
    pub(super) async fn database(&mut self) -> ReplyResult<OpenDatabase> {
        if let Some(database) = &self.database {
            return Ok(database.clone());
        }
        let namespace = self.namespace.as_ref().ok_or_else(not_authenticated)?;
        self.check_not_revoked()?;
        let database = self
            .shared
            .database(namespace, &self.trace, self.guest.is_peer);
        let database = database.await;
        let database = database.map_err(|failure| of_failure(&failure))?;
        let database = database.traced(&self.trace);
        self.database = Some(database.clone());
        Ok(database)
    }

    /// Records what the client does, for `CLIENT LIST`. Returns the time of it by the steady clock.
    pub(super) fn record_activity(&self) -> Duration {
        let now = self.shared.clock().steady();
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

    /// Returns whether a namespace is there, as far as this client may know.
    pub(super) fn knows_user(&self, name: &[u8]) -> bool {
        if !self.is_administrator() {
            return self.user().as_bytes() == name;
        }
        let name = std::str::from_utf8(name).ok();
        name.is_some_and(|name| self.shared.namespaces.entry(name).is_ok())
    }

    pub(super) fn is_administrator(&self) -> bool {
        let visit = self.visit.as_ref();
        visit.is_some_and(|visit| visit.grant().is_server_admin())
    }

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
