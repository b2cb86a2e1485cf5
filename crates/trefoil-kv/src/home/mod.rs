//! A home in an engine: the entries of the registry, who owns which namespace, and the small facts
//! beside the logs are objects, and each namespace is a store.
//!
//! Several nodes may have the same home at a time. Each namespace belongs to one of them. [`names`] says
//! where everything is, [`node`] and [`peers`] who is alive, and [`ownership`] who may have what.

mod audit;
mod changes;
mod claim;
mod clock_check;
mod cluster;
mod disk;
mod due;
mod entries;
mod erasing;
mod facts;
mod hex;
#[cfg(test)]
mod move_tests;
mod moves;
mod names;
mod node;
mod objects;
mod ownership;
mod peers;
mod place;
mod placement;
mod release;
#[cfg(test)]
mod simulated_clients;
#[cfg(test)]
mod simulation_tests;
mod small;
mod storages;

#[cfg(test)]
mod take_over_tests;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};
use trefoil::Clock;
use trefoil::home::{Claim, Cluster, EntryChanges, Erasure, Home, Incarnation, Stamp, StoredEntry};
use trefoil_core::{Error, NamespaceId, Result};
use trefoil_storage::BlockCache;
use trefoil_storage::local::missing;

use crate::contract::{KvEngine, KvObjects};
use crate::storage::LogRoom;
use changes::RegistryChanges;
use claim::{Held, KvClaim};
use entries::RegistryEntries;
use moves::Moves;
use node::{Node, NodeId, NodeWord};
use objects::failed;
use ownership::{Acquired, NamespaceOwners, OwnedEpoch};
use peers::Peers;
use place::NodePlace;
use release::{Leaving, Releaser};
use storages::Storages;

/// How often a node sees to its signs of life.
const STEP_EVERY: Duration = Duration::from_millis(250);

/// How long a claim waits for a node that may be dead: until it is certain, and a little more.
const CLAIM_PATIENCE: Duration = Duration::from_secs(12);
/// How often it looks meanwhile whether there is news.
const CLAIM_PAUSE: Duration = Duration::from_millis(50);

/// How a home is used.
#[derive(Debug)]
pub struct KvHomeOptions {
    /// What time it is.
    pub clock: Clock,
    /// Where files of indexes are kept while they are used. It may be emptied while no process uses it. A
    /// node that is started where another one died need not wait for long until it has what was the
    /// other's.
    pub cache_dir: PathBuf,
    /// Whether somebody else calls [`KvHome::step`], so that nothing happens by itself. Then a claim does
    /// not wait for other nodes either. For simulations.
    pub is_driven: bool,
    /// Where the ids of namespaces and of this node begin; `None`: anywhere.
    pub seed: Option<u64>,
}

impl KvHomeOptions {
    /// Returns the usual options.
    pub fn new(cache_dir: impl Into<PathBuf>) -> Self {
        Self {
            clock: Clock::default(),
            cache_dir: cache_dir.into(),
            is_driven: false,
            seed: None,
        }
    }
}

/// Namespaces in an engine, as one node has them.
#[derive(Debug)]
pub struct KvHome {
    shared: Arc<HomeShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What a home shares with its claims.
#[derive(Debug)]
struct HomeShared {
    engine: Arc<dyn KvEngine>,
    clock: Clock,
    /// What others are told of this node.
    word: Mutex<NodeWord>,
    cache_dir: PathBuf,
    is_driven: bool,
    rng: Mutex<fastrand::Rng>,
    /// What this is among the nodes: another one when it was declared dead.
    node: RwLock<Arc<Node>>,
    peers: Peers,
    place: NodePlace,
    changes: RegistryChanges,
    /// The namespaces that are claimed in this process.
    held: Mutex<HashSet<Incarnation>>,
    /// What was said to be due when the home was asked, of each namespace.
    said_due: Mutex<HashMap<Incarnation, u64>>,
    storages: Storages,
    /// Made for the first cache that a generation is opened with: all are opened with the same.
    log_room: OnceLock<Arc<LogRoom>>,
    releaser: Releaser,
    moves: Moves,
    is_closed: Mutex<bool>,
    closing: Condvar,
}

impl KvHome {
    /// Opens the home that is in an engine, as another node of it.
    pub fn open(engine: Arc<dyn KvEngine>, options: KvHomeOptions) -> Result<Self> {
        let rng = options
            .seed
            .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let rng = Mutex::new(rng);
        let id = NodeId(rng.lock().u128(..));
        let clock = options.clock;
        let (place, before) = NodePlace::take(&options.cache_dir)?;
        let peers = Peers::new(clock.clone());
        if let Some(before) = before {
            peers.declare_dead(before, engine.objects())?;
        }
        place.note(id)?;
        let word = NodeWord {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: clock.now().millis(),
            ..NodeWord::default()
        };
        let node = Node::join(id, word.clone(), clock.clone(), engine.objects())?;
        let changes = RegistryChanges::open(engine.objects())?;
        let shared = Arc::new(HomeShared {
            releaser: Releaser::start(Arc::clone(&engine), !options.is_driven)?,
            engine,
            peers,
            place,
            changes,
            clock,
            word: Mutex::new(word),
            cache_dir: options.cache_dir,
            is_driven: options.is_driven,
            rng,
            node: RwLock::new(Arc::new(node)),
            held: Mutex::default(),
            said_due: Mutex::default(),
            storages: Storages::default(),
            log_room: OnceLock::new(),
            moves: Moves::default(),
            is_closed: Mutex::new(false),
            closing: Condvar::new(),
        });
        let home = Self {
            thread: Mutex::new(None),
            shared,
        };
        match options.is_driven {
            true => home.shared.clean_up(),
            false => home.start_threads()?,
        }
        Ok(home)
    }

    fn start_threads(&self) -> Result<()> {
        let start = |name: &str, work: fn(&HomeShared)| {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name(name.to_owned());
            let started = thread.spawn(move || work(&shared));
            started.map_err(|error| Error::io("starting a thread", &error))
        };
        // Nobody waits for it: what it does not come to, the next start does.
        start("trefoil-erase", HomeShared::clean_up_now_and_then)?;
        // The signs of life of this node wait for nobody else's.
        start("trefoil-peers", HomeShared::watch_peers)?;
        *self.thread.lock() = Some(start("trefoil-node", HomeShared::live)?);
        Ok(())
    }

    /// Sees to the signs of life and the lease of this node, and looks at the others, as far as it is
    /// time to.
    pub fn step(&self) {
        self.shared.step();
        self.shared.look_around();
    }
}

impl HomeShared {
    fn objects(&self) -> &dyn KvObjects {
        self.engine.objects()
    }

    fn entries(&self) -> RegistryEntries<'_> {
        RegistryEntries(self.objects())
    }

    fn owners(&self, incarnation: Incarnation, node: NodeId) -> NamespaceOwners<'_> {
        NamespaceOwners {
            objects: self.objects(),
            incarnation,
            node,
        }
    }

    /// Returns where files of a namespace are cached.
    fn cache_dir(&self, incarnation: Incarnation) -> PathBuf {
        self.cache_dir.join(format!("{:032x}", incarnation.0))
    }

    /// Tells other nodes that an entry was changed, or may have been.
    fn tell_change<T>(&self, id: &NamespaceId, changed: Result<T>) -> Result<T> {
        if let Ok(_) | Err(Error::Unknown { .. }) = changed {
            self.changes.tell(self.objects(), id);
        }
        changed
    }

    fn new_id(&self) -> u128 {
        self.rng.lock().u128(..)
    }

    /// Lives until the home is closed.
    fn live(&self) {
        let mut is_closed = self.is_closed.lock();
        while !*is_closed {
            drop(is_closed);
            self.step();
            is_closed = self.is_closed.lock();
            if !*is_closed {
                self.closing.wait_for(&mut is_closed, STEP_EVERY);
            }
        }
    }

    fn step(&self) {
        let node = self.node();
        node.step(|| self.told(), self.objects());
        self.releaser.releases.tell_again();
        self.changes.tell_again(self.objects());
        if node.is_dead()
            && !*self.is_closed.lock()
            && let Err(error) = self.join_again()
        {
            tracing::warn!(%error, "cannot join the cluster again yet");
        }
    }

    /// Returns the room for blocks of logs, which is beside this cache.
    fn log_room(&self, cache: &BlockCache) -> &Arc<LogRoom> {
        let room = || Arc::new(LogRoom::beside(cache));
        self.log_room.get_or_init(room)
    }

    fn watch_peers(&self) {
        let mut is_closed = self.is_closed.lock();
        while !*is_closed {
            drop(is_closed);
            self.look_around();
            is_closed = self.is_closed.lock();
            if !*is_closed {
                self.closing.wait_for(&mut is_closed, STEP_EVERY);
            }
        }
    }

    /// Looks at the other nodes, if it is time to.
    fn look_around(&self) {
        if let Err(error) = self.peers.watch(self.node().id, self.objects()) {
            tracing::warn!(%error, "cannot look at the other nodes");
        }
    }

    fn node(&self) -> Arc<Node> {
        Arc::clone(&self.node.read())
    }

    /// Goes on as another node.
    fn join_again(&self) -> Result<()> {
        let id = NodeId(self.new_id());
        self.place.note(id)?;
        let node = Node::join(id, self.told(), self.clock.clone(), self.objects())?;
        *self.node.write() = Arc::new(node);
        Ok(())
    }

    /// Takes a namespace for this node, and waits if the node that has it may be dead.
    fn acquire(
        &self,
        id: &NamespaceId,
        incarnation: Incarnation,
    ) -> Result<(Arc<Node>, OwnedEpoch, Option<NodeId>)> {
        let began = self.clock.steady();
        loop {
            let node = self.node();
            if !node.has_lease() {
                return Err(elsewhere(id, None));
            }
            match self.owners(incarnation, node.id).acquire(&self.peers)? {
                Acquired::Owned(epoch, dead) => return Ok((node, epoch, dead)),
                Acquired::Elsewhere(owner) => return Err(elsewhere(id, owner)),
                Acquired::Later(_) if self.is_driven => return Err(elsewhere(id, None)),
                Acquired::Later(_) if self.clock.since(began) > CLAIM_PATIENCE => {
                    return Err(elsewhere(id, None));
                }
                Acquired::Later(owner) => self.wait_for(owner),
            }
        }
    }

    /// Waits until there may be news of a node that is silent. Many may wait for it at the same time, so
    /// nothing is asked of the store meanwhile: the thread that looks at all nodes does that.
    fn wait_for(&self, owner: Option<NodeId>) {
        let began = self.clock.steady();
        let patience = owner.map_or(CLAIM_PAUSE, |owner| self.peers.patience(owner));
        loop {
            std::thread::sleep(CLAIM_PAUSE);
            let is_decided = owner.is_none_or(|owner| self.peers.is_decided(owner));
            if is_decided || self.clock.since(began) >= patience {
                return;
            }
        }
    }

    /// Claims a namespace that is marked as held.
    fn claim(self: &Arc<Self>, id: &NamespaceId, incarnation: Incarnation) -> Result<KvClaim> {
        let (node, epoch, dead) = self.acquire(id, incarnation)?;
        let known = facts::change(self.objects(), incarnation, epoch.number, |_| {})?;
        let said = self.said_due.lock().remove(&incarnation);
        let name = |at| names::due(at, incarnation);
        if let Some(said) = said.filter(|said| known.due.map(name) != Some(name(*said))) {
            // It was left behind when a node died.
            due::forget(self.objects(), incarnation, said)?;
        }
        Ok(KvClaim {
            home: Arc::clone(self),
            id: id.clone(),
            incarnation,
            node,
            is_over: AtomicBool::new(false),
            successor: Mutex::default(),
            dead_since: Mutex::new(dead.and_then(|dead| self.peers.dead_since(dead))),
            held: Mutex::new(Held {
                epoch: Some(epoch),
                is_released: false,
                is_used: false,
                store: None,
                opened: Vec::new(),
            }),
        })
    }

    /// Lets a namespace go.
    fn release(&self, leaving: Leaving) {
        let incarnation = leaving.incarnation;
        self.releaser.release(leaving);
        self.held.lock().remove(&incarnation);
    }

    /// Lets a namespace go, and returns when others may have it.
    fn release_now(&self, leaving: Leaving) {
        let incarnation = leaving.incarnation;
        self.releaser.release_now(leaving);
        self.held.lock().remove(&incarnation);
    }

    fn read_due(&self, until: Option<u64>) -> Result<Vec<(NamespaceId, u64)>> {
        let all = due::read_until(self.objects(), until)?;
        let mut said = self.said_due.lock();
        said.extend(all.iter().map(|due| (due.incarnation, due.at)));
        drop(said);
        Ok(all.into_iter().map(|due| (due.namespace, due.at)).collect())
    }
}

/// Returns the error of who asks for a namespace that another node has.
fn elsewhere(id: &NamespaceId, owner: Option<String>) -> Error {
    Error::NotOwner {
        namespace: id.to_string(),
        owner,
    }
}

impl Home for KvHome {
    fn entries(&self) -> Result<Vec<(String, Result<StoredEntry>)>> {
        self.shared.entries().read_all()
    }

    fn entry(&self, id: &NamespaceId) -> Result<Option<StoredEntry>> {
        self.shared.entries().read(&names::entry(id))
    }

    fn create(&self, id: &NamespaceId, bytes: &[u8]) -> Result<Stamp> {
        let incarnation = Incarnation(self.shared.new_id());
        let created = self.shared.entries().create(id, incarnation, bytes);
        self.shared.tell_change(id, created)
    }

    fn replace(&self, id: &NamespaceId, old: Stamp, bytes: &[u8]) -> Result<Option<Stamp>> {
        let replaced = self.shared.entries().replace(id, old, bytes);
        self.shared.tell_change(id, replaced)
    }

    fn delete(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<Erasure> {
        let shared = Arc::clone(&self.shared);
        shared.entries().check(id, incarnation)?;
        let note = small::encode(&id.as_str(), b"")?;
        let noted = shared.objects().create(&names::erase(incarnation), note);
        noted.map_err(failed("deleting a namespace"))?;
        shared.tell_change(id, shared.entries().bury(id, incarnation))?;
        shared.forget_due(incarnation)?;
        let id = id.clone();
        Ok(Box::new(move || match shared.erase(&id, incarnation) {
            // It learns of the deletion, and lets it go.
            Err(Error::NotOwner { .. }) => Ok(()),
            erased => erased,
        }))
    }

    fn claim(
        &self,
        id: &NamespaceId,
        incarnation: Incarnation,
        must_exist: bool,
    ) -> Result<Arc<dyn Claim>> {
        let shared = &self.shared;
        shared.entries().check(id, incarnation)?;
        shared.check_staying(id, incarnation)?;
        let place = PathBuf::from(names::namespace(incarnation));
        let known = facts::read(shared.objects(), incarnation)?;
        if must_exist && !known.is_some_and(|known| known.is_made) {
            return Err(missing(&place, "the namespace is missing"));
        }
        if !shared.held.lock().insert(incarnation) {
            return Err(Error::Locked { path: place });
        }
        let claimed = shared.claim(id, incarnation);
        let claimed = claimed.inspect_err(|_| {
            shared.held.lock().remove(&incarnation);
        });
        Ok(Arc::new(claimed?))
    }

    fn has_storage(&self, id: &NamespaceId) -> Result<bool> {
        let Some(entry) = self.entry(id)? else {
            return Ok(false);
        };
        let known = facts::read(self.shared.objects(), entry.stamp.incarnation)?;
        Ok(known.is_some_and(|known| known.is_made))
    }

    fn due_times(&self) -> Result<Vec<(NamespaceId, u64)>> {
        self.shared.read_due(None)
    }

    fn due_until(&self, until: u64) -> Result<Vec<(NamespaceId, u64)>> {
        self.shared.read_due(Some(until))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn check_here(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<()> {
        self.shared.check_here(id, incarnation)
    }

    fn cluster(&self) -> Option<Arc<dyn Cluster>> {
        let shared: Arc<dyn Cluster> = self.shared.clone();
        Some(shared)
    }

    fn check_ready(&self) -> Result<()> {
        match self.shared.node().has_lease() {
            true => Ok(()),
            false => Err(Error::Closed("this node has no lease".to_owned())),
        }
    }

    fn changed_entries(&self) -> Result<EntryChanges> {
        self.shared.changes.read(self.shared.objects())
    }

    fn append_audit(&self, record: &str) -> Result<u64> {
        audit::append(self.shared.objects(), record)
    }

    fn read_audit(&self, before: u64, limit: usize) -> Result<Vec<(u64, String)>> {
        audit::read(self.shared.objects(), before, limit)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn close(&self) -> Result<()> {
        if std::mem::replace(&mut *self.shared.is_closed.lock(), true) {
            return Ok(());
        }
        self.shared.closing.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // If it panicked, the lease has ended by itself.
            let _ = thread.join();
        }
        self.shared.releaser.close();
        let left = self.shared.node().leave(self.shared.objects());
        self.shared.place.leave();
        left
    }
}

impl Drop for KvHome {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "others have the namespaces when this node is silent for long");
        }
    }
}
