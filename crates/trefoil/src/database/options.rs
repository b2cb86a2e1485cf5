//! What can be chosen when a database is opened.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use trefoil_core::limits::EVENT_DATA_BYTES_DEFAULT;
use trefoil_seats::SEATS;
use trefoil_state::{Application, Commands};
use trefoil_storage::LocalOptions;
use trefoil_storage::local::disk::{Disk, RealDisk};

use crate::Clock;
use crate::namespaces::quota::QuotaKeeper;

/// How a database is opened. The defaults suit a server with a few busy namespaces.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The largest `data` of one event, in bytes.
    pub event_data_bytes_max: usize,
    /// Memory for cached blocks of the index and the state, in bytes. Entries of the state that were
    /// read recently take an eighth as much in addition.
    pub cache_bytes: u64,
    /// How many events the index keeps in memory before it is moved to disk.
    pub tail_events_max: usize,
    /// The size to which segments of the log grow, in bytes.
    pub segment_bytes_max: u64,
    /// How many of the newest full segments stay uncompressed.
    pub plain_segments: usize,
    /// For how long a transaction that has an id is remembered.
    pub commit_id_retention: Duration,
    /// The commands on the state: those of Redis, and those of applications. Unless changed, seats
    /// are the only application.
    pub commands: Commands,
    /// Where changes to the files of the log go; tests put a failing disk here.
    #[doc(hidden)]
    pub disk: Arc<dyn Disk>,
    /// What time it is. Databases that share their threads share the clock of the first.
    pub clock: Clock,
    /// Whom to tell how far opening has read the log.
    pub(crate) listener: Option<ReplayListener>,
    /// What keeps the namespace to its quotas.
    pub(crate) quota_keeper: Arc<QuotaKeeper>,
}

/// Called with the commit that opening a database has come to in the log, and with the last one.
#[derive(Clone)]
pub(crate) struct ReplayListener(pub(crate) Arc<dyn Fn(u64, u64) + Send + Sync>);

impl std::fmt::Debug for ReplayListener {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ReplayListener")
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            event_data_bytes_max: EVENT_DATA_BYTES_DEFAULT,
            cache_bytes: 64 * 1024 * 1024,
            tail_events_max: 256 * 1024,
            segment_bytes_max: 64 * 1024 * 1024,
            plain_segments: 4,
            commit_id_retention: Duration::from_secs(24 * 60 * 60),
            commands: default_commands().clone(),
            disk: Arc::new(RealDisk),
            clock: Clock::default(),
            listener: None,
            quota_keeper: Arc::default(),
        }
    }
}

impl Options {
    /// Returns how storages in directories are opened.
    pub(crate) fn local(&self) -> LocalOptions {
        LocalOptions {
            segment_bytes_max: self.segment_bytes_max,
            plain_segments: self.plain_segments,
            disk: Arc::clone(&self.disk),
            stopwatch: Arc::new(self.clock.clone()),
            ..LocalOptions::default()
        }
    }

    /// Sets whom to tell how far opening has read the log: the commit it has come to, and the last
    /// one. Opening takes long if the index is lost.
    #[must_use]
    pub fn with_replay_listener(mut self, tell: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        self.listener = Some(ReplayListener(Arc::new(tell)));
        self
    }

    /// Sets the largest `data` of one event, in bytes.
    #[must_use]
    pub fn with_event_data_bytes_max(mut self, bytes: usize) -> Self {
        self.event_data_bytes_max = bytes;
        self
    }

    /// Sets the memory for cached blocks, in bytes.
    #[must_use]
    pub fn with_cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets how many events the index keeps in memory before it is moved to disk.
    #[must_use]
    pub fn with_tail_events_max(mut self, events: usize) -> Self {
        self.tail_events_max = events;
        self
    }

    /// Sets the size to which segments of the log grow, in bytes.
    #[must_use]
    pub fn with_segment_bytes_max(mut self, bytes: u64) -> Self {
        self.segment_bytes_max = bytes;
        self
    }

    /// Sets how many of the newest full segments stay uncompressed.
    #[must_use]
    pub fn with_plain_segments(mut self, segments: usize) -> Self {
        self.plain_segments = segments;
        self
    }

    /// Sets for how long a transaction that has an id is remembered.
    #[must_use]
    pub fn with_commit_id_retention(mut self, retention: Duration) -> Self {
        self.commit_id_retention = retention;
        self
    }

    /// Sets where changes to the files of the log go.
    #[doc(hidden)]
    #[must_use]
    pub fn with_disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Sets what tells the time.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Adds an application: its commands, and what falls due.
    #[must_use]
    pub fn with_application(mut self, application: &'static Application) -> Self {
        self.commands = self.commands.with(application);
        self
    }
}

fn default_commands() -> &'static Commands {
    static COMMANDS: LazyLock<Commands> = LazyLock::new(|| Commands::redis().with(&SEATS));
    &COMMANDS
}
