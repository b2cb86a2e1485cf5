//! What a client may do that has shown a token.

use std::sync::atomic::{AtomicI64, Ordering};

use trefoil_core::{Denial, Error, NamespaceId, Permission, Result, Scope, Source, Timestamp};

use super::registry::Registry;
use super::token::{MAIN_TOKEN, TokenHash, TokenRecord};
use crate::home::Incarnation;

/// What the holder of a token may do with a namespace.
#[derive(Debug)]
pub struct Grant {
    namespace: NamespaceId,
    token: String,
    permission: Permission,
    expires: Option<Timestamp>,
    is_server_admin: bool,
    /// The namespace that had the id when this was granted; `None` if there was none yet.
    pub(super) incarnation: Option<Incarnation>,
    /// `None` if no token was needed.
    pub(super) hash: Option<TokenHash>,
    /// When the token was used last, in nanoseconds since 1970; 0: not yet.
    used: AtomicI64,
}

/// What is called the token where none is needed.
const NO_TOKEN: &str = "";

/// A use of a token within this many nanoseconds of the last one is not noted.
const USE_GRAIN: i64 = 1_000_000_000;

impl Grant {
    /// Returns what a token grants under one of its hashes.
    pub(super) fn of_token(
        namespace: &NamespaceId,
        incarnation: Incarnation,
        token: &TokenRecord,
        hash: TokenHash,
    ) -> Self {
        let entry = &token.entry;
        let expires = match token.previous {
            Some(previous) if previous == hash => match entry.expires {
                Some(expires) => entry.previous_expires.map(|until| until.min(expires)),
                None => entry.previous_expires,
            },
            _ => entry.expires,
        };
        let is_main = namespace.is_default() && entry.name == MAIN_TOKEN;
        Self {
            namespace: namespace.clone(),
            token: entry.name.clone(),
            permission: entry.permission.clone(),
            expires,
            is_server_admin: entry.is_server || is_main,
            incarnation: Some(incarnation),
            hash: Some(hash),
            used: AtomicI64::new(entry.last_used.map_or(0, |time| time.0)),
        }
    }

    /// Returns what is granted where no token is needed.
    pub(super) fn open(namespace: &NamespaceId, incarnation: Option<Incarnation>) -> Self {
        Self {
            is_server_admin: namespace.is_default(),
            namespace: namespace.clone(),
            token: NO_TOKEN.to_owned(),
            permission: Permission::ALL,
            expires: None,
            incarnation,
            hash: None,
            used: AtomicI64::new(0),
        }
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &NamespaceId {
        &self.namespace
    }

    /// Returns the name of the token; empty if none was needed.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns what the token permits.
    pub fn permission(&self) -> &Permission {
        &self.permission
    }

    /// Returns from when on nothing is granted: in the last year that there is if that is never.
    pub fn until(&self) -> Timestamp {
        self.expires.unwrap_or(Timestamp(i64::MAX))
    }

    /// Returns whether the holder administers the server with all namespaces.
    pub fn is_server_admin(&self) -> bool {
        self.is_server_admin
    }

    /// Returns whether it grants nothing any more at this time.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.until() <= now
    }

    /// Returns when the token was used last.
    pub(super) fn last_used(&self) -> Option<Timestamp> {
        let used = self.used.load(Ordering::Relaxed);
        (used > 0).then_some(Timestamp(used))
    }

    /// Notes that the token is used.
    pub(super) fn note_use(&self, now: Timestamp) {
        // Many threads would change what all of them read.
        if now.0 >= self.used.load(Ordering::Relaxed).saturating_add(USE_GRAIN) {
            self.used.fetch_max(now.0, Ordering::Relaxed);
        }
    }

    /// Takes over when the token was used last.
    pub(super) fn note_uses_of(&self, before: &Self) {
        let used = before.used.load(Ordering::Relaxed);
        self.used.fetch_max(used, Ordering::Relaxed);
    }

    fn check(&self, is_permitted: bool, denial: impl FnOnce() -> Denial) -> Result<()> {
        match is_permitted {
            true => Ok(()),
            false => Err(Error::Forbidden {
                token: self.token.clone(),
                denial: denial(),
            }),
        }
    }

    /// Refuses what needs a scope that the token does not have.
    pub fn require(&self, scope: Scope) -> Result<()> {
        let is_permitted = self.permission.scopes.contains(scope);
        self.check(is_permitted, || Denial::Scope(scope))
    }

    /// Refuses a token with prefixes, because something goes beyond what they may name.
    pub fn require_unconfined(&self) -> Result<()> {
        self.check(!self.permission.is_confined(), || Denial::Unnamed)
    }

    /// Refuses a stream; `None` is an event without one, which others see as well.
    pub fn require_stream(&self, stream: Option<&str>) -> Result<()> {
        match stream {
            None => self.require_unconfined(),
            Some(name) => {
                let is_permitted = self.permission.permits_stream(name);
                self.check(is_permitted, || Denial::Stream(shown(name)))
            }
        }
    }

    /// Refuses to list the streams whose names begin with this.
    pub fn require_streams_with(&self, start: &str) -> Result<()> {
        let permission = &self.permission;
        let is_permitted = match start {
            "" => !permission.is_confined(),
            start => permission.permits_streams_with(start),
        };
        self.check(is_permitted, || Denial::Unnamed)
    }

    /// Refuses to read or follow the events of a source.
    pub fn require_source(&self, source: &Source) -> Result<()> {
        match source {
            Source::All => self.require_unconfined(),
            Source::Category(name) | Source::Stream(name) => self.require_stream(Some(name)),
        }
    }

    /// Refuses a key.
    pub fn require_key(&self, key: &[u8]) -> Result<()> {
        let denial = || Denial::Key(shown(&String::from_utf8_lossy(key)));
        self.check(self.permission.permits_key(key), denial)
    }
}

/// So many characters of a name are repeated by an error.
const SHOWN_CHARS_MAX: usize = 100;

fn shown(name: &str) -> String {
    name.chars().take(SHOWN_CHARS_MAX).collect()
}

/// What has become of the tokens of a namespace, told to who has clients that use them.
#[derive(Debug)]
pub struct TokenReview<'a> {
    /// The namespace.
    pub namespace: &'a NamespaceId,
    pub(super) registry: &'a Registry,
}

impl TokenReview<'_> {
    /// Returns until when a grant of before counts, see [`Grant::until`]; `None` if it does not any more.
    pub fn still_granted(&self, grant: &Grant) -> Option<Timestamp> {
        self.registry.still_granted(grant)
    }
}
