//! The threads that ship: one looks which namespaces have something to ship, a few ship it. Nobody waits
//! for them. What fails is tried again until it works.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use parking_lot::{Condvar, Mutex};
use trefoil::{Error, NamespaceId, Namespaces};
use trefoil_server::ArchiveProgress;

use super::entries::EntryWatch;
use super::shipping::{ShippedLine, ShippedStep, Shipper};
use crate::backups::Repository;

/// How often it is looked whether there is something to ship.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many namespaces are shipped at the same time.
const SHIPPERS: usize = 4;
/// After so many looks the entries of the registry are looked at, ...
const LOOKS_PER_ENTRIES: u64 = 10;
/// ... and after so many what failed is tried again.
const LOOKS_PER_RETRY: u64 = 5;
/// How long a server that is stopped ships what is left.
const STOPPING_PATIENCE: Duration = Duration::from_secs(10);

/// Opens the repository.
type OpenRepository = dyn Fn() -> anyhow::Result<Repository> + Send + Sync;

/// A continuous archive of all namespaces of this process.
pub(crate) struct Archiver {
    shipping: Arc<Shipping>,
    looking: JoinHandle<()>,
    shippers: Vec<JoinHandle<()>>,
}

/// What the threads share.
struct Shipping {
    namespaces: Namespaces,
    open: Box<OpenRepository>,
    repository: OnceLock<Repository>,
    progress: Arc<ArchiveProgress>,
    work: Mutex<ShippingWork>,
    /// Told when there is something to ship, and when it is to end.
    changed: Condvar,
    /// What fails at present.
    failing: Mutex<HashSet<String>>,
}

#[derive(Default)]
struct ShippingWork {
    /// Namespaces that have something to ship, or may have.
    queue: VecDeque<NamespaceId>,
    /// Those in the queue, and those that are being shipped.
    pending: HashSet<NamespaceId>,
    /// Those of which shipping failed, to be tried again.
    failed: HashSet<NamespaceId>,
    /// How far each of them is shipped, as far as that is known.
    lines: HashMap<NamespaceId, ShippedLine>,
    /// Whether nothing more is looked for.
    is_stopping: bool,
    /// Until when what is left is shipped, by the steady clock.
    ends: Option<Duration>,
}

impl ShippingWork {
    fn push(&mut self, id: NamespaceId) {
        if self.pending.insert(id.clone()) {
            self.queue.push_back(id);
        }
    }

    /// Returns whether a log is shipped up to where it ends.
    fn has_shipped(&self, id: &NamespaceId, log: trefoil::LogState) -> bool {
        let is_shipped =
            |line: &ShippedLine| line.generation == log.generation && line.commit >= log.commit;
        self.lines.get(id).is_some_and(is_shipped)
    }
}

impl Archiver {
    /// Starts to ship all namespaces. The repository is opened with `open`, again and again if that fails.
    pub(crate) fn start(
        namespaces: &Namespaces,
        open: Box<OpenRepository>,
        progress: &Arc<ArchiveProgress>,
    ) -> anyhow::Result<Self> {
        let shipping = Arc::new(Shipping {
            namespaces: namespaces.clone(),
            open,
            repository: OnceLock::new(),
            progress: Arc::clone(progress),
            work: Mutex::default(),
            changed: Condvar::new(),
            failing: Mutex::default(),
        });
        let start = |name: &str, run: fn(&Shipping)| {
            let shipping = Arc::clone(&shipping);
            let thread = std::thread::Builder::new().name(name.to_owned());
            let thread = thread.spawn(move || run(&shipping));
            thread.context("cannot start a thread for the archive")
        };
        let shippers = (0..SHIPPERS).map(|_| start("trefoil-ship", Shipping::ship));
        Ok(Self {
            shippers: shippers.collect::<Result<_, _>>()?,
            looking: start("trefoil-archive", Shipping::look)?,
            shipping: Arc::clone(&shipping),
        })
    }

    /// Ships what is left, if that does not take too long, and ends.
    pub(crate) fn stop(self) {
        self.shipping.work.lock().is_stopping = true;
        self.shipping.changed.notify_all();
        join(self.looking);
        let ends = self.shipping.namespaces.clock().steady() + STOPPING_PATIENCE;
        self.shipping.work.lock().ends = Some(ends);
        self.shipping.changed.notify_all();
        self.shippers.into_iter().for_each(join);
        let left = self.shipping.progress.waiting();
        if left > 0 {
            tracing::warn!(
                namespaces = left,
                "not all is archived: the next start goes on"
            );
        }
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the archive panicked");
    }
}

impl Shipping {
    /// Looks for something to ship, until the archiver is stopped.
    fn look(&self) {
        self.expect_all();
        let Some(repository) = self.connect() else {
            return;
        };
        let mut entries = EntryWatch::new(&self.namespaces, repository);
        for n_looks in 0_u64.. {
            let is_retry = n_looks.is_multiple_of(LOOKS_PER_RETRY);
            self.queue_changed(is_retry);
            if n_looks.is_multiple_of(LOOKS_PER_ENTRIES) {
                self.note("entries of the registry", &entries.ship(self.shipped()));
            }
            if self.rest() {
                break;
            }
        }
        // What was written since.
        self.queue_changed(true);
        self.note("entries of the registry", &entries.ship(self.shipped()));
    }

    /// Returns the names of the namespaces of which something was shipped.
    fn shipped(&self) -> Vec<String> {
        let work = self.work.lock();
        work.lines.keys().map(ToString::to_string).collect()
    }

    /// Opens the repository; `None` if the archiver was stopped before that worked.
    fn connect(&self) -> Option<&Repository> {
        loop {
            let opened = (self.open)();
            self.note("anything", &opened);
            if let Ok(repository) = opened {
                return Some(self.repository.get_or_init(|| repository));
            }
            for _ in 0..LOOKS_PER_RETRY {
                if self.rest() {
                    return None;
                }
            }
        }
    }

    /// Waits. Returns whether the archiver is to stop.
    fn rest(&self) -> bool {
        let until = self.namespaces.clock().steady() + LOOK_EVERY;
        let mut work = self.work.lock();
        while !work.is_stopping {
            let left = until.saturating_sub(self.namespaces.clock().steady());
            if left.is_zero() {
                break;
            }
            self.changed.wait_for(&mut work, left);
        }
        work.is_stopping
    }

    /// Notes whether something could be archived. The log says that it fails once, until it works again.
    fn note<T>(&self, what: &str, done: &anyhow::Result<T>) {
        match done {
            Ok(_) => {
                if self.failing.lock().remove(what) {
                    tracing::info!("the archive works again: {what}");
                }
            }
            Err(error) => {
                self.progress.count_failure();
                if self.failing.lock().insert(what.to_owned()) {
                    let error = format!("{error:#}");
                    tracing::warn!(
                        error,
                        "cannot archive {what}: it is tried again until it works"
                    );
                }
            }
        }
    }

    /// Nothing is known of what was shipped before this process: all namespaces are looked at once.
    fn expect_all(&self) {
        let listed = self.namespaces.list().unwrap_or_default();
        let now = self.namespaces.clock().now().millis();
        let mut work = self.work.lock();
        for entry in listed {
            self.progress.expect(&entry.id, now);
            work.push(entry.id);
        }
    }

    /// Queues namespaces whose log has grown, and those to be tried again.
    fn queue_changed(&self, is_retry: bool) {
        let now = self.namespaces.clock().now().millis();
        let logs = self.namespaces.logs();
        let mut work = self.work.lock();
        for (id, log) in logs {
            if !work.has_shipped(&id, log) {
                self.progress.expect(&id, now);
                if !work.failed.contains(&id) {
                    work.push(id);
                }
            }
        }
        if is_retry {
            for id in std::mem::take(&mut work.failed) {
                work.push(id);
            }
        }
        drop(work);
        self.progress.looked(now);
        self.changed.notify_all();
    }

    /// Ships what is queued, until the archiver is stopped and nothing is left.
    fn ship(&self) {
        while let Some((id, mut line)) = self.next() {
            let Some(repository) = self.repository.get() else {
                return;
            };
            let shipper = Shipper {
                namespaces: &self.namespaces,
                repository,
                progress: &self.progress,
            };
            let shipped = shipper.step(&id, &mut line);
            self.finish(id, line, &shipped);
        }
    }

    /// Waits for the next namespace; `None` if there will be none, or no time is left.
    fn next(&self) -> Option<(NamespaceId, Option<ShippedLine>)> {
        let mut work = self.work.lock();
        loop {
            if let Some(ends) = work.ends {
                let is_late = ends <= self.namespaces.clock().steady();
                if is_late || self.repository.get().is_none() || work.queue.is_empty() {
                    return None;
                }
            }
            // Before the repository is open, nothing can be shipped.
            let id = match self.repository.get() {
                Some(_) => work.queue.pop_front(),
                None => None,
            };
            if let Some(id) = id {
                let line = work.lines.remove(&id);
                return Some((id, line));
            }
            self.changed.wait(&mut work);
        }
    }

    /// Notes what became of a namespace.
    fn finish(
        &self,
        id: NamespaceId,
        line: Option<ShippedLine>,
        shipped: &anyhow::Result<ShippedStep>,
    ) {
        let is_elsewhere = shipped.as_ref().err().is_some_and(is_elsewhere);
        if !is_elsewhere {
            self.note(&format!("namespace '{id}'"), shipped);
        }
        let mut work = self.work.lock();
        if let Some(line) = line.filter(|_| !is_elsewhere) {
            work.lines.insert(id.clone(), line);
        }
        match shipped {
            Ok(ShippedStep { has_more: true }) => work.queue.push_back(id),
            Ok(_) => {
                work.pending.remove(&id);
                self.progress.done(&id);
            }
            Err(_) => {
                work.pending.remove(&id);
                match is_elsewhere {
                    true => self.progress.forget(&id),
                    false => {
                        work.failed.insert(id);
                    }
                }
            }
        }
        drop(work);
        self.changed.notify_all();
    }
}

/// Returns whether an error says that the namespace is another server's by now, or was deleted.
fn is_elsewhere(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref();
    matches!(
        cause,
        Some(Error::NotOwner { .. } | Error::NamespaceNotFound(_))
    )
}
