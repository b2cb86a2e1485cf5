//! Making, listing, replacing and revoking the tokens of namespaces.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trefoil_core::limits::{TOKEN_BYTES_MIN, TOKENS_PER_NAMESPACE_MAX};
use trefoil_core::{
    DEFAULT_NAMESPACE, Error, NamespaceId, Permission, Result, Scope, Timestamp, Token,
};

use super::audit::note_command;
use super::entry::RegistryRecord;
use super::grant::{Grant, TokenReview};
use super::registry::Registry;
use super::token::{MAIN_TOKEN, NewToken, SERVER_TOKEN, TokenEntry, TokenHash, TokenRecord};
use super::{Inner, Namespaces, check_token, random_token};
use crate::background::Lane;
use crate::home::Home;

/// How often is written when tokens were used.
const USES_WRITTEN_EVERY: Duration = Duration::from_secs(60 * 60);

impl Namespaces {
    /// Returns what a token grants; `None` if there is no such token, or it has expired. Takes the same
    /// path and time in all cases.
    pub fn admit(&self, token: &Token) -> Option<Arc<Grant>> {
        let given = TokenHash::of(token);
        let grant = self.inner.registry.grant(&given);
        let stored = grant.as_ref().and_then(|grant| grant.hash);
        let matches = stored.unwrap_or(TokenHash::NOBODY).matches(&given);
        let now = self.clock().now();
        let is_right = |grant: &Arc<Grant>| {
            let named = token.namespace();
            let names_it = named.is_none_or(|named| named == grant.namespace().as_str());
            matches && names_it && !grant.is_expired(now)
        };
        let grant = grant.filter(is_right)?;
        self.note_use(&grant);
        Some(grant)
    }

    /// Returns what is granted to everybody where no token is needed: everything.
    pub fn admit_anybody(&self, id: &NamespaceId) -> Arc<Grant> {
        self.inner.registry.open_grant(id)
    }

    /// Returns the namespace that `token` opens, see [`Self::admit`].
    pub fn authenticate(&self, token: &Token) -> Option<NamespaceId> {
        let grant = self.admit(token);
        grant.map(|grant| grant.namespace().clone())
    }

    /// Notes that what was granted is used.
    pub fn note_use(&self, grant: &Grant) {
        let now = self.clock().now();
        grant.note_use(now);
        let written = self.inner.uses_written.load(Ordering::Relaxed);
        let every = u64::try_from(USES_WRITTEN_EVERY.as_millis()).unwrap_or(u64::MAX);
        let is_due = now.millis().saturating_sub(written) >= every;
        let writes = |is_due: bool| {
            is_due && { &self.inner.uses_written }
                .compare_exchange(written, now.millis(), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        };
        if writes(is_due) {
            let inner = Arc::downgrade(&self.inner);
            let tenant = std::ptr::from_ref(&*self.inner).addr();
            self.inner.background.run(Lane::Open, tenant, move || {
                if let Some(inner) = inner.upgrade() {
                    inner.write_uses();
                }
            });
        }
    }

    /// Notes that what was granted a while ago is still used. The entry may have been changed since then, and
    /// has other grants now.
    pub fn note_lasting_use(&self, grant: &Grant) {
        let hash = grant.hash.as_ref();
        if let Some(current) = hash.and_then(|hash| self.inner.registry.grant(hash)) {
            self.note_use(&current);
        }
    }

    /// Returns until when a grant counts, see [`Grant::until`]; `None` if it does not any more.
    pub fn still_granted(&self, grant: &Grant) -> Option<Timestamp> {
        self.inner.registry.still_granted(grant)
    }

    /// Has `listener`, which must not wait, told when tokens of a namespace may have been made, replaced
    /// or revoked, by this process or another one. Only the first call counts.
    pub fn on_token_change(&self, listener: impl Fn(&TokenReview<'_>) + Send + Sync + 'static) {
        self.inner.registry.listen(Box::new(listener));
    }

    /// Makes a token of a namespace and returns it. It is not stored, only its hash: it cannot be shown
    /// again.
    pub fn create_token(&self, id: &str, new: NewToken) -> Result<(TokenEntry, Token)> {
        let now = self.clock().now();
        new.validate(now)?;
        let registry = &self.inner.registry;
        let id = registry.get(id)?.entry.id;
        let token = given_or_random(new.token.clone(), &id, self.token_bytes_min())?;
        let made = TokenRecord::new(new, &token, now);
        registry.change(&id, |record| {
            if record.token(&made.entry.name).is_ok() {
                return Err(Error::TokenExists(made.entry.name.clone()));
            }
            add(registry, record, made.clone())
        })?;
        Ok((made.entry, token))
    }

    /// Returns the tokens of a namespace, in the order in which they were made.
    pub fn tokens(&self, id: &str) -> Result<Vec<TokenEntry>> {
        let record = self.inner.registry.get(id)?;
        let grants = self.inner.registry.grants(&record);
        let now = self.clock().now();
        let entry = |token: TokenRecord| {
            let mut entry = token.entry;
            let used = grants.iter().filter(|grant| grant.token() == entry.name);
            entry.last_used = used.filter_map(|grant| grant.last_used()).max();
            entry.previous_expires = entry.previous_expires.filter(|expires| *expires > now);
            entry
        };
        Ok(record.tokens.into_iter().map(entry).collect())
    }

    /// Replaces a token by another one, `token` or a random one, and returns that. The one before opens
    /// the namespace for as long as `overlap` says.
    pub fn replace_token(
        &self,
        id: &str,
        name: &str,
        token: Option<Token>,
        overlap: Duration,
    ) -> Result<Token> {
        let registry = &self.inner.registry;
        let id = registry.get(id)?.entry.id;
        let token = given_or_random(token, &id, self.token_bytes_min())?;
        let until = overlap_end(self.clock().now(), overlap)?;
        registry.change(&id, |record| {
            record.token(name)?;
            replace(registry, record, name, &token, until)
        })?;
        Ok(token)
    }

    /// Revokes a token: it opens nothing any more.
    pub fn revoke_token(&self, id: &str, name: &str) -> Result<()> {
        let registry = &self.inner.registry;
        let id = registry.get(id)?.entry.id;
        registry.change(&id, |record| {
            record.token(name)?;
            record.tokens.retain(|token| token.entry.name != name);
            Ok(())
        })
    }

    /// Gives a namespace another main token, `token` or a random one, and returns it. From then on the
    /// one that it had opens nothing. If it had none, it has one again.
    pub fn rotate_token(&self, id: &str, token: Option<Token>) -> Result<Token> {
        let bytes_min = self.token_bytes_min();
        rotate(
            &self.inner.registry,
            id,
            token,
            bytes_min,
            self.clock().now(),
        )
    }

    /// Makes the token that administers the server, if there is none: `token`, or a random one. Returns
    /// it then. If there is one already, a given token must be that one.
    pub fn ensure_admin(&self, token: Option<&Token>) -> Result<Option<Token>> {
        let registry = &self.inner.registry;
        let id = registry.get(DEFAULT_NAMESPACE)?.entry.id;
        let is_server = |token: &&TokenRecord| token.entry.is_server;
        let is_other = |stored: &TokenRecord| {
            let given = token.map(TokenHash::of);
            given.is_some_and(|given| !stored.hash.matches(&given))
        };
        let other = || Error::invalid("the given admin token is not the one that the server has");
        let stored = registry.get(DEFAULT_NAMESPACE)?;
        if let Some(stored) = stored.tokens.iter().find(is_server) {
            return match is_other(stored) {
                true => Err(other()),
                false => Ok(None),
            };
        }
        let made_of = given_or_random(token.cloned(), &id, self.token_bytes_min())?;
        let permission = Permission {
            scopes: [Scope::Admin].into_iter().collect(),
            ..Permission::ALL
        };
        let new = NewToken::new(SERVER_TOKEN, permission);
        let mut made = TokenRecord::new(new, &made_of, self.clock().now());
        made.entry.is_server = true;
        registry.change(&id, |record| {
            let stored = record.tokens.iter().find(is_server);
            match stored.map(|stored| stored.hash.matches(&made.hash)) {
                None => add(registry, record, made.clone()),
                // Another node was started with the same one at the same time.
                Some(true) => Ok(()),
                Some(false) => Err(other()),
            }
        })?;
        Ok(Some(made_of))
    }

    fn token_bytes_min(&self) -> usize {
        self.inner.options.token_bytes_min
    }
}

impl Inner {
    /// Writes when the tokens were used that were used since that was last written.
    fn write_uses(&self) {
        for entry in self.registry.list() {
            let Ok(record) = self.registry.get(entry.id.as_str()) else {
                continue;
            };
            let grants = self.registry.grants(&record);
            let used = |token: &TokenRecord| {
                let grants = grants
                    .iter()
                    .filter(|grant| grant.token() == token.entry.name);
                grants.filter_map(|grant| grant.last_used()).max()
            };
            let is_new = |token: &TokenRecord| used(token) > token.entry.last_used;
            if !record.tokens.iter().any(is_new) {
                continue;
            }
            let noted = self.registry.change(&entry.id, |record| {
                for token in &mut record.tokens {
                    token.entry.last_used = token.entry.last_used.max(used(token));
                }
                Ok(())
            });
            if let Err(error) = noted {
                tracing::warn!(namespace = %entry.id, %error, "cannot note when tokens were used");
            }
        }
    }
}

/// Gives a namespace another main token in a home that no process has open. No namespace is opened for
/// it.
pub(crate) fn rotate_token(
    home: Arc<dyn Home>,
    id: &str,
    token: Option<Token>,
    now: Timestamp,
) -> Result<Token> {
    let registry = Registry::open(home)?;
    let namespace = registry.get(id)?.entry.id;
    note_command(&*registry.home, now, "ns.token", &namespace, None)?;
    rotate(&registry, id, token, TOKEN_BYTES_MIN, now)
}

fn rotate(
    registry: &Registry,
    id: &str,
    token: Option<Token>,
    bytes_min: usize,
    now: Timestamp,
) -> Result<Token> {
    let id = registry.get(id)?.entry.id;
    let token = given_or_random(token, &id, bytes_min)?;
    registry.change(&id, |record| {
        let has_main = record.token(MAIN_TOKEN).is_ok();
        match has_main {
            true => replace(registry, record, MAIN_TOKEN, &token, None),
            false => add(registry, record, TokenRecord::main(&token, now)),
        }
    })?;
    Ok(token)
}

fn given_or_random(token: Option<Token>, id: &NamespaceId, bytes_min: usize) -> Result<Token> {
    let token = match token {
        Some(token) => token,
        None => random_token(id)?,
    };
    check_token(&token, id, bytes_min)?;
    Ok(token)
}

/// Until when the token counts that is replaced now; `None` if it does not.
fn overlap_end(now: Timestamp, overlap: Duration) -> Result<Option<Timestamp>> {
    if overlap.is_zero() {
        return Ok(None);
    }
    let nanos = i64::try_from(overlap.as_nanos()).ok();
    let until = nanos.and_then(|nanos| now.0.checked_add(nanos));
    let until = until.ok_or_else(|| Error::invalid("the overlap is too long"))?;
    Ok(Some(Timestamp(until)))
}

fn add(registry: &Registry, record: &mut RegistryRecord, token: TokenRecord) -> Result<()> {
    registry.check_unused(&token.hash, &record.entry.id)?;
    let count = record.tokens.len() + 1;
    if count > TOKENS_PER_NAMESPACE_MAX {
        let what = "number of tokens of the namespace";
        return Err(Error::over_limit(what, count, TOKENS_PER_NAMESPACE_MAX));
    }
    record.tokens.push(token);
    Ok(())
}

fn replace(
    registry: &Registry,
    record: &mut RegistryRecord,
    name: &str,
    token: &Token,
    until: Option<Timestamp>,
) -> Result<()> {
    let hash = TokenHash::of(token);
    if record.token(name)?.hash.matches(&hash) {
        return Ok(());
    }
    registry.check_unused(&hash, &record.entry.id)?;
    let stored = record.token_mut(name)?;
    stored.previous = until.map(|_| stored.hash);
    stored.entry.previous_expires = until;
    stored.hash = hash;
    Ok(())
}
