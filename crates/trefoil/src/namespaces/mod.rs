//! Many databases in one home, each behind a token of its own.
//!
//! Which namespaces there are, the entries of the registry say. Databases are opened when they are
//! first used and closed again, least recently used first, when more than
//! [`NamespacesOptions::open_max`] are open.

mod archive;
mod asynchronous;
pub(crate) mod audit;
mod backup;
mod counting;
mod entry;
mod follow;
mod grant;
#[cfg(test)]
mod missing_tests;
mod moving;
mod pool;
#[cfg(test)]
mod pool_tests;
pub(crate) mod quota;
mod registry;
#[cfg(test)]
mod tests;
mod token;
#[cfg(test)]
mod token_tests;
mod tokens;
mod verify;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use trefoil_core::{
    Cause, DEFAULT_NAMESPACE, Error, NamespaceId, Result, Token, is_json_object, limits,
};

pub use audit::{AuditActor, AuditRecord, AuditedAction};
pub(crate) use backup::{check_entry, entry_text, restored_entry};
pub use entry::{NamespaceEntry, NamespaceSettings, NewNamespace};
pub use grant::{Grant, TokenReview};
pub use pool::{LogState, OpenDatabase};
pub use quota::{Quota, QuotaKeeper, Quotas};
pub(crate) use registry::is_made;
pub use token::{MAIN_TOKEN, NewToken, SERVER_TOKEN, TokenEntry};
pub(crate) use tokens::rotate_token;
pub use verify::RegistryReport;
pub(crate) use verify::verify;

use crate::background::{Background, Lane};
use crate::database::host::Host;
use crate::home::{Cluster, Home, LocalHome, MemoryHome};
use crate::stats::TotalStats;
use crate::time::closed::ClosedDeadlines;
use crate::time::timer::Sleeper;
use crate::{Clock, Commands, Database, Options};
use entry::RegistryRecord;
use pool::DatabasePool;
use registry::Registry;
use token::{TokenHash, TokenRecord};

/// The most namespaces that one home may hold.
const NAMESPACES_MAX: usize = 100_000;

/// After how many milliseconds a namespace that could not be opened then is tried again.
const RETRY_PAUSE: u64 = 5_000;

/// The weight of the default namespace: a server without tenants keeps everything in it.
const DEFAULT_CACHE_SHARE: u32 = 64;

/// How namespaces are opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NamespacesOptions {
    /// How each database is opened; its `cache_bytes` do not count.
    pub database: Options,
    /// How many databases may be open at once. Does not matter in memory, where closing one saves
    /// little.
    pub open_max: usize,
    /// The shortest token that a namespace may be given, in bytes. Those that are made here are
    /// longer.
    pub token_bytes_min: usize,
    /// The memory for cached blocks of all open databases together, in bytes: whatever is read the
    /// most has the most of it. Entries of the state that were read recently take an eighth as much
    /// in addition.
    pub cache_bytes: u64,
}

impl Default for NamespacesOptions {
    fn default() -> Self {
        Self {
            database: Options::default(),
            open_max: 256,
            token_bytes_min: limits::TOKEN_BYTES_MIN,
            cache_bytes: 512 * 1024 * 1024,
        }
    }
}

impl NamespacesOptions {
    /// Sets how each database is opened.
    #[must_use]
    pub fn with_database(mut self, options: Options) -> Self {
        self.database = options;
        self
    }

    /// Sets how many databases may be open at once.
    #[must_use]
    pub fn with_open_max(mut self, databases: usize) -> Self {
        self.open_max = databases;
        self
    }

    /// Sets the shortest token that a namespace may be given, in bytes.
    #[must_use]
    pub fn with_token_bytes_min(mut self, bytes: usize) -> Self {
        self.token_bytes_min = bytes;
        self
    }

    /// Sets the memory for cached blocks of all open databases together, in bytes.
    #[must_use]
    pub fn with_cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }
}

/// What open namespaces keep in memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The index of events and the changed state since the last checkpoints.
    pub unsaved_bytes: u64,
    /// Blocks of the index and the state: cached ones, filters, and what is not in a file yet.
    pub block_bytes: u64,
    /// Entries of the state that were read recently.
    pub entry_bytes: u64,
}

/// The namespaces of one home: a cheap handle that can be cloned and shared.
#[derive(Clone, Debug)]
pub struct Namespaces {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: Registry,
    pool: DatabasePool,
    /// When those that are closed must be opened.
    closed: Arc<ClosedDeadlines>,
    options: NamespacesOptions,
    /// Threads that all databases share.
    background: Arc<Background>,
    /// Held while what others have changed is read.
    following: Mutex<()>,
    /// When it was last written when tokens were used, in milliseconds since 1970.
    uses_written: AtomicU64,
}

impl Namespaces {
    /// Opens a data directory, creating it if it is not there, and locks it: a second process gets
    /// [`Error::Locked`]. Namespaces that ask for it are opened in the background.
    pub fn open(directory: impl AsRef<Path>, options: NamespacesOptions) -> Result<Self> {
        let home = LocalHome::open(directory, options.database.local())?;
        Self::open_in(Arc::new(home), options)
    }

    /// Opens namespaces that live and die with the process.
    pub fn in_memory(options: NamespacesOptions) -> Result<Self> {
        let open_max = match options.open_max {
            0 => 0,
            // As many as there can be: none is ever closed for lack of room.
            _ => NAMESPACES_MAX,
        };
        let options = NamespacesOptions {
            open_max,
            ..options
        };
        Self::open_in(Arc::new(MemoryHome::new()), options)
    }

    /// Opens the namespaces of a home. Those that ask for it are opened in the background.
    pub fn open_in(home: Arc<dyn Home>, options: NamespacesOptions) -> Result<Self> {
        let is_shared = home.is_shared();
        let namespaces = Self::new(home, options)?;
        namespaces.warm()?;
        if is_shared {
            follow::start(&namespaces.inner)?;
        }
        Ok(namespaces)
    }

    fn new(home: Arc<dyn Home>, options: NamespacesOptions) -> Result<Self> {
        if options.open_max == 0 {
            return Err(Error::invalid("open_max must be at least 1"));
        }
        options.database.commands.check()?;
        let background = Background::start(options.cache_bytes, options.database.clock.clone())?;
        let closed = Arc::new(ClosedDeadlines::new(Arc::clone(&background.timer)));
        let inner = Inner {
            registry: Registry::open(home)?,
            pool: DatabasePool::new(options.open_max, Arc::clone(&closed)),
            closed,
            background,
            following: Mutex::default(),
            uses_written: AtomicU64::new(options.database.clock.now().millis()),
            options,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Opens the namespaces that want to be open from the start, and from then on those of which
    /// something is due, in the background.
    fn warm(&self) -> Result<()> {
        let mut wanted = self.list()?;
        for (id, due) in self.inner.registry.home.due_times()? {
            // One that cannot be opened would be tried for ever.
            if self.inner.registry.get(id.as_str()).is_ok() {
                self.inner.closed.note(id, due);
            }
        }
        wanted.retain(|entry| entry.settings.warm);
        wanted.truncate(self.inner.options.open_max);
        let inner = Arc::downgrade(&self.inner);
        self.inner.open_in_background(move || {
            open_all(&inner, wanted.into_iter().map(|entry| entry.id));
        });
        self.inner.background.timer.add(&self.inner);
        Ok(())
    }

    /// Opens a namespace of which something is due, cleans that, and frees it.
    fn settle(&self, id: &NamespaceId) -> Result<()> {
        let get = || self.database(id);
        self.inner.pool.look_after(get, Database::settle)
    }

    /// Creates the namespace `default` if it is missing, with `token` or a random one, and returns
    /// its token then. If it is there already, a given token must be the stored one.
    pub fn ensure_default(&self, token: Option<&Token>) -> Result<Option<Token>> {
        let id = NamespaceId::new(DEFAULT_NAMESPACE)?;
        if let Ok(record) = self.inner.registry.get(id.as_str()) {
            return check_default(&record, token);
        }
        let new = NewNamespace {
            description: "Default namespace".to_owned(),
            token: token.cloned(),
            settings: NamespaceSettings {
                cache_share: DEFAULT_CACHE_SHARE,
                ..NamespaceSettings::default()
            },
            ..NewNamespace::default()
        };
        match self.create(&id, new) {
            Ok((_, token)) => Ok(Some(token)),
            // Another process that shares the home was started at the same time.
            Err(Error::NamespaceExists(_)) if self.inner.registry.home.is_shared() => {
                self.inner.registry.read_again(std::slice::from_ref(&id))?;
                check_default(&self.inner.registry.get(id.as_str())?, token)
            }
            Err(error) => Err(error),
        }
    }

    /// Creates a namespace and returns the token that opens it. The token is not stored, only its
    /// hash: it cannot be shown again.
    pub fn create(&self, id: &NamespaceId, new: NewNamespace) -> Result<(NamespaceEntry, Token)> {
        new.validate(id, self.inner.options.token_bytes_min)?;
        let token = match new.token {
            Some(token) => token,
            None => random_token(id)?,
        };
        let now = self.clock().now();
        let record = RegistryRecord {
            entry: NamespaceEntry {
                id: id.clone(),
                description: new.description,
                created: now,
                metadata: new.metadata,
                settings: new.settings,
            },
            tokens: vec![TokenRecord::main(&token, now)],
            is_made: false,
        };
        let entry = record.entry.clone();
        self.inner.registry.insert(record, NAMESPACES_MAX)?;
        Ok((entry, token))
    }

    /// Deletes a namespace with everything in it and returns how many events it had. Handles to
    /// it get [`Error::Closed`] from then on.
    pub fn delete(&self, id: &str) -> Result<u64> {
        let entry = self.entry(id)?;
        // A damaged namespace can be deleted too; it just cannot be counted.
        let events = match self.counts(id) {
            Ok(info) => info.events,
            Err(error @ (Error::NamespaceNotFound(_) | Error::NotOwner { .. })) => {
                return Err(error);
            }
            Err(error) => {
                tracing::warn!(namespace = %entry.id, %error, "deleted without being counted");
                0
            }
        };
        let erase = self
            .inner
            .pool
            .remove(&entry.id, || self.inner.registry.remove(&entry.id))?;
        erase()?;
        Ok(events)
    }

    /// Returns the commands on the state that the databases know.
    pub fn commands(&self) -> &Commands {
        &self.inner.options.database.commands
    }

    /// Returns all namespaces by id.
    pub fn list(&self) -> Result<Vec<NamespaceEntry>> {
        Ok(self.inner.registry.list())
    }

    /// Returns what is known of a namespace without opening it.
    pub fn entry(&self, id: &str) -> Result<NamespaceEntry> {
        self.inner.registry.get(id).map(|record| record.entry)
    }

    /// Returns the database of a namespace, opened if it is not. Blocks the thread while it opens; users
    /// of the same namespace wait for one opening, users of others do not wait. If another process has it,
    /// or should open it, that is [`Error::NotOwner`], with the address of that one.
    ///
    /// Hold what it returns for as long as the database, or a subscription to it, is in use: the
    /// namespace is not closed meanwhile.
    pub fn database(&self, id: &NamespaceId) -> Result<OpenDatabase> {
        self.get_database(id, || self.inner.registry.check_here(id))
    }

    /// As [`Self::database`], but opens the namespace here unless another process has it: for those that
    /// another process has sent here.
    pub fn database_here(&self, id: &NamespaceId) -> Result<OpenDatabase> {
        self.get_database(id, || Ok(()))
    }

    fn get_database(
        &self,
        id: &NamespaceId,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<OpenDatabase> {
        let exists = || self.inner.registry.get(id.as_str()).map(drop);
        let open = || self.inner.open_database(id);
        self.inner.pool.get(id, exists, check, open)
    }

    /// Returns the database of a namespace if it is open, for callers that must not wait for its opening.
    /// Hold what it returns as that of [`Self::database`].
    pub fn opened(&self, id: &NamespaceId) -> Option<OpenDatabase> {
        self.inner.pool.opened(id)
    }

    /// Returns the clock of all namespaces.
    pub fn clock(&self) -> &Clock {
        &self.inner.background.clock
    }

    /// Returns the namespaces that take no writes before they are opened again, and why: after an
    /// I/O error, or because their entry in the registry is damaged.
    pub fn refusing_writes(&self) -> Vec<(NamespaceId, String)> {
        let mut refusing = self.inner.pool.refusing_writes();
        let damaged = self.inner.registry.damaged().into_iter();
        refusing.extend(damaged.map(|(id, error)| (id, error.to_string())));
        refusing
    }

    /// Opens a namespace again, as it needs after an I/O error, see [`Database::reopen`], or after
    /// its entry in the registry was restored.
    pub fn reopen(&self, id: &str) -> Result<()> {
        self.inner.registry.read_damaged(id)?;
        let entry = self.entry(id)?;
        self.database(&entry.id)?.reopen()
    }

    /// Returns what the open namespaces keep in memory.
    pub fn memory_use(&self) -> MemoryUse {
        let background = &self.inner.background;
        MemoryUse {
            unsaved_bytes: background.tail_bytes.load(Ordering::Relaxed) as u64,
            block_bytes: background.block_cache.bytes() + self.inner.pool.held_bytes(),
            entry_bytes: background.read_cache.n_bytes(),
        }
    }

    /// Returns the nodes that share the home, if several processes may.
    pub fn cluster(&self) -> Option<Arc<dyn Cluster>> {
        self.inner.registry.home.cluster()
    }

    /// Returns an error if this process may answer for no namespace at present. Does not wait.
    pub fn check_ready(&self) -> Result<()> {
        self.inner.registry.home.check_ready()
    }

    /// Returns how many bytes may still be written to the home; `None` if there is no limit.
    pub fn free_bytes(&self) -> Result<Option<u64>> {
        self.inner.registry.home.free_bytes()
    }

    /// Returns what all databases have counted since the start, and how much room they take. It asks
    /// the file system.
    pub fn stats(&self) -> TotalStats {
        let background = &self.inner.background;
        let mut stats = background.stats.snapshot();
        (stats.cache_hits, stats.cache_misses) = background.read_cache.hits_and_misses();
        self.inner.pool.add_usage(&mut stats);
        stats
    }

    /// Says in which asynchronous runtime callers wait. Only the first call counts.
    pub fn hosted_by(&self, host: Arc<dyn Host>) {
        // The first one stays.
        let _ = self.inner.background.host.set(host);
    }

    /// Closes every database, also those that are held, and the home.
    pub fn close(&self) -> Result<()> {
        let (began, namespaces) = (self.clock().steady(), self.inner.pool.open_count());
        let closed = self.inner.pool.close(self.clock());
        let elapsed_ms = millis(self.clock().since(began));
        tracing::info!(namespaces, elapsed_ms, "closed");
        self.inner.registry.home.close()?;
        closed
    }
}

impl Sleeper for Inner {
    fn deadline(&self) -> u64 {
        self.closed.first()
    }

    fn wake(self: Arc<Self>, now: u64) {
        while let Some(id) = self.closed.take_due(now) {
            let inner = Arc::downgrade(&self);
            self.open_in_background(move || look_after(&inner, &id));
        }
    }
}

impl Inner {
    /// Has namespaces opened by threads for that.
    fn open_in_background(&self, open: impl FnOnce() + Send + 'static) {
        let tenant = std::ptr::from_ref(self).addr();
        self.background.run(Lane::Open, tenant, open);
    }

    fn open_database(&self, id: &NamespaceId) -> Result<Database> {
        let mut options = self.options.database.clone();
        options.quota_keeper = self.registry.quota_keeper(id).unwrap_or_default();
        let claim = self.registry.claim(id)?;
        let database = Database::open_sharing(claim, &options, Arc::clone(&self.background))?;
        // Before anything is written to it: what the registry does not know of is not missed.
        self.registry.note_made(id)?;
        let recovery = database.recovery();
        tracing::info!(
            namespace = %id,
            head = database.head()?,
            replayed_events = recovery.replayed_events,
            cut_bytes = recovery.cut_bytes,
            elapsed_ms = millis(recovery.elapsed),
            "opened"
        );
        Ok(database)
    }
}

fn open_all(inner: &Weak<Inner>, ids: impl Iterator<Item = NamespaceId>) {
    for id in ids {
        let Some(inner) = inner.upgrade() else {
            return;
        };
        match (Namespaces { inner }).database(&id) {
            // It is another node's.
            Ok(_) | Err(Error::NotOwner { .. }) => {}
            Err(error) => tracing::warn!(namespace = %id, %error, "cannot open"),
        }
    }
}

/// Looks after a namespace of which something is due. If that fails, it is tried again.
fn look_after(inner: &Weak<Inner>, id: &NamespaceId) {
    let Some(inner) = inner.upgrade() else {
        return;
    };
    let namespaces = Namespaces { inner };
    match namespaces.settle(id) {
        Ok(()) | Err(Error::NamespaceNotFound(_) | Error::Closed(_)) => {}
        // Another node sees to it. If it does not, that is noticed when it is looked for next.
        Err(Error::NotOwner { .. }) => {}
        Err(error) => {
            tracing::warn!(namespace = %id, %error, "cannot open what something is due of");
            let again = namespaces.clock().now().millis() + RETRY_PAUSE;
            namespaces.inner.closed.note(id.clone(), again);
        }
    }
}

impl NewNamespace {
    fn validate(&self, id: &NamespaceId, token_bytes_min: usize) -> Result<()> {
        let length = self.description.len();
        if length > limits::NAMESPACE_DESCRIPTION_BYTES_MAX {
            let limit = limits::NAMESPACE_DESCRIPTION_BYTES_MAX;
            return Err(Error::over_limit(
                "namespace description length",
                length,
                limit,
            ));
        }
        if let Some(metadata) = &self.metadata {
            if metadata.len() > limits::NAMESPACE_METADATA_BYTES_MAX {
                let limit = limits::NAMESPACE_METADATA_BYTES_MAX;
                return Err(Error::over_limit(
                    "namespace metadata",
                    metadata.len(),
                    limit,
                ));
            }
            if !is_json_object(metadata.as_bytes()) {
                return Err(Error::invalid("namespace metadata must be a JSON object"));
            }
        }
        if let Some(token) = &self.token {
            check_token(token, id, token_bytes_min)?;
        }
        self.settings.validate()
    }
}

/// Checks a token that a namespace is to have.
fn check_token(token: &Token, id: &NamespaceId, bytes_min: usize) -> Result<()> {
    let length = token.reveal().len();
    match token.namespace() {
        Some(other) if other != id.as_str() => Err(Error::invalid(format!(
            "Token is for namespace '{other}', not '{id}'"
        ))),
        None if length < bytes_min => Err(Error::invalid(format!(
            "the given token has {length} bytes, it needs at least {bytes_min}"
        ))),
        _ => Ok(()),
    }
}

/// Returns nothing, or an error if the default namespace that is there has another token.
fn check_default(record: &RegistryRecord, token: Option<&Token>) -> Result<Option<Token>> {
    match token {
        Some(token) if !record.has_main(&TokenHash::of(token)) => Err(Error::invalid(
            "the given token is not the token of the existing namespace 'default'",
        )),
        _ => Ok(None),
    }
}

fn random_token(id: &NamespaceId) -> Result<Token> {
    let mut secret = [0; 32];
    fill_random(&mut secret)?;
    Ok(Token::from_secret(id, &secret))
}

fn fill_random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| {
        Error::failed(
            "ask the operating system for random bytes",
            Cause::new(error),
        )
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
