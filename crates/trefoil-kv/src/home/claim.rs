//! A namespace that this node has: its facts, its store, and the generations in it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use trefoil::home::{Claim, FIRST_GENERATION, Facts, Incarnation, OpenedGeneration};
use trefoil_core::{Error, NamespaceId, Result};
use trefoil_storage::{BlockCache, ReadReach};

use super::node::Node;
use super::objects::failed;
use super::ownership::{NamespaceOwners, OwnedEpoch};
use super::placement::NodeCandidate;
use super::release::Leaving;
use super::{HomeShared, due, elsewhere, facts, names};
use crate::contract::Kv;
use crate::storage::{KvStorage, KvStorageOptions, erase_generation, generations};

/// A namespace in the hands of this node.
#[derive(Debug)]
pub(super) struct KvClaim {
    pub(super) home: Arc<HomeShared>,
    pub(super) id: NamespaceId,
    pub(super) incarnation: Incarnation,
    /// The node that this was when it claimed the namespace.
    pub(super) node: Arc<Node>,
    /// Whether it was released, or another node has it.
    pub(super) is_over: AtomicBool,
    /// The node that should have it next, once it was chosen.
    pub(super) successor: Mutex<Option<NodeCandidate>>,
    /// Since when its last owner is known to be dead, by the steady clock, until it is open here.
    pub(super) dead_since: Mutex<Option<Duration>>,
    pub(super) held: Mutex<Held>,
}

/// What a claim holds.
#[derive(Debug)]
pub(super) struct Held {
    /// `None` once it was released, or lost.
    pub(super) epoch: Option<OwnedEpoch>,
    pub(super) is_released: bool,
    /// Whether a store was opened with that epoch: the next one needs another.
    pub(super) is_used: bool,
    pub(super) store: Option<ClaimedStore>,
    /// The generations that were opened in it.
    pub(super) opened: Vec<(u64, Weak<KvStorage>)>,
}

/// The store, open.
#[derive(Debug, Clone)]
pub(super) struct ClaimedStore {
    kv: Arc<dyn Kv>,
    /// With which it was opened.
    epoch: u64,
    is_lost: Arc<AtomicBool>,
}

impl ClaimedStore {
    fn new(kv: Arc<dyn Kv>, epoch: u64) -> Self {
        let is_lost = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_lost);
        kv.on_lost(Box::new(move || told.store(true, Ordering::SeqCst)));
        Self { kv, epoch, is_lost }
    }
}

fn released() -> Error {
    Error::Closed("the namespace was released".to_owned())
}

impl KvClaim {
    fn owners(&self) -> NamespaceOwners<'_> {
        self.home.owners(self.incarnation, self.node.id)
    }

    /// Returns the epoch of this claim, if it still counts as far as this node knows.
    fn epoch(&self) -> Result<u64> {
        let held = self.held.lock();
        let epoch = held.epoch.as_ref().ok_or_else(released)?;
        match self.node.is_dead() {
            true => Err(facts::lost()),
            false => Ok(epoch.number),
        }
    }

    fn change(&self, change: impl Fn(&mut facts::NamespaceFacts)) -> Result<facts::NamespaceFacts> {
        let epoch = self.epoch()?;
        facts::change(self.home.objects(), self.incarnation, epoch, change)
    }

    /// Returns the store, open. If `is_needed` does not say that it must stay, it is opened again, with
    /// the next epoch: after a write of which nobody knows whether it was made, that is how one finds
    /// out.
    fn store(
        &self,
        held: &mut Held,
        is_needed: impl FnOnce(&Held) -> bool,
    ) -> Result<ClaimedStore> {
        let epoch = held.epoch.clone().ok_or_else(released)?;
        if let Some(open) = held.store.take() {
            if !open.is_lost.load(Ordering::SeqCst) && is_needed(held) {
                held.store = Some(open.clone());
                return Ok(open);
            }
            // Whatever it says, it is of no more use.
            let _ = open.kv.close();
        }
        let epoch = match std::mem::replace(&mut held.is_used, true) {
            true => self.next_epoch(held, &epoch)?,
            false => epoch.number,
        };
        let opened = self
            .home
            .engine
            .open(&names::store(self.incarnation), epoch);
        let kv = opened.map_err(failed("opening a namespace"))?;
        let store = ClaimedStore::new(kv, epoch);
        held.store = Some(store.clone());
        Ok(store)
    }

    fn next_epoch(&self, held: &mut Held, epoch: &OwnedEpoch) -> Result<u64> {
        held.epoch = self.owners().take(epoch.number + 1)?;
        let Some(next) = held.epoch.as_ref().map(|epoch| epoch.number) else {
            self.is_over.store(true, Ordering::SeqCst);
            return Err(facts::lost());
        };
        facts::change(self.home.objects(), self.incarnation, next, |_| {})?;
        Ok(next)
    }

    /// Makes sure that it is known that there is a generation before one is made.
    fn expect(&self, generation: u64) -> Result<()> {
        let known = self.change(|facts| facts.is_made = true)?;
        let possible = known.generation..=known.generation + 1;
        match possible.contains(&generation) {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "generation {generation}, where {} counts",
                known.generation
            ))),
        }
    }
}

impl KvClaim {
    /// Returns the error of who asks for it here when it is another's.
    fn elsewhere(&self) -> Error {
        let successor = self.successor.lock();
        elsewhere(
            &self.id,
            successor.as_ref().map(|chosen| chosen.address.clone()),
        )
    }

    /// Ends the claim. Returns what is to be let go, the first time.
    fn end(&self) -> Option<Leaving> {
        self.is_over.store(true, Ordering::SeqCst);
        let mut held = self.held.lock();
        if std::mem::replace(&mut held.is_released, true) {
            return None;
        }
        let leaving = Leaving {
            incarnation: self.incarnation,
            node: self.node.id,
            epoch: held.epoch.take(),
            store: held.store.take().map(|store| store.kv),
            successor: self.successor.lock().as_ref().map(|chosen| chosen.id),
        };
        drop(held);
        self.node.forget(self.incarnation);
        self.home.note_used(self.incarnation);
        Some(leaving)
    }

    fn options(&self, generation: u64, store: &ClaimedStore) -> KvStorageOptions {
        let objects = names::namespace(self.incarnation);
        let cache_dir = self.home.cache_dir(self.incarnation);
        KvStorageOptions {
            generation,
            epoch: store.epoch,
            ..KvStorageOptions::new(objects, cache_dir)
        }
    }
}

impl Drop for KvClaim {
    fn drop(&mut self) {
        self.release();
    }
}

impl Claim for KvClaim {
    fn facts(&self) -> Result<Facts> {
        self.epoch()?;
        let found = facts::read(self.home.objects(), self.incarnation)?;
        Ok(Facts {
            generation: found.map_or(FIRST_GENERATION, |found| found.generation),
            due: found.and_then(|found| found.due),
        })
    }

    fn open(
        &self,
        generation: u64,
        cache: &Arc<BlockCache>,
        reach: &ReadReach<'_>,
    ) -> Result<OpenedGeneration> {
        self.expect(generation)?;
        self.home
            .storages
            .wait_for_last(self.incarnation, generation);
        let mut held = self.held.lock();
        held.opened
            .retain(|(_, storage)| storage.strong_count() > 0);
        let store = self.store(&mut held, |held| {
            held.opened.iter().any(|(other, _)| *other != generation)
        })?;
        let options = KvStorageOptions {
            cache: Arc::clone(cache),
            log_room: Arc::clone(self.home.log_room(cache)),
            ..self.options(generation, &store)
        };
        let engine = Arc::clone(&self.home.engine);
        let storage = Arc::new(KvStorage::open(engine, store.kv, &options, reach)?);
        held.opened.push((generation, Arc::downgrade(&storage)));
        self.home
            .storages
            .note(self.incarnation, generation, &storage);
        if let Some(since) = self.dead_since.lock().take() {
            self.home
                .moves
                .note_taken_over(self.home.clock.since(since));
        }
        Ok(OpenedGeneration {
            storage,
            cut_bytes: 0,
            place: PathBuf::from(format!("{}{generation}", options.objects)),
        })
    }

    fn switch(&self, generation: u64) -> Result<()> {
        self.change(|facts| {
            if generation == facts.generation + 1 {
                facts.generation = generation;
            }
        })
        .map(drop)
    }

    fn remove_others(&self) -> Result<()> {
        let known = self.change(|_| {})?;
        if !known.is_made {
            return Ok(());
        }
        let store = self.store(&mut self.held.lock(), |_| true)?;
        let there = generations(store.kv.as_ref())?.into_iter();
        for generation in there.filter(|there| *there != known.generation) {
            let engine = Arc::clone(&self.home.engine);
            let kv = Arc::clone(&store.kv);
            erase_generation(engine, kv, &self.options(generation, &store))?;
        }
        Ok(())
    }

    fn set_due(&self, due: Option<u64>) -> Result<()> {
        let objects = self.home.objects();
        let before = facts::read(objects, self.incarnation)?;
        let before = before.and_then(|facts| facts.due);
        self.epoch()?;
        // What is due is known somewhere at any time, and perhaps twice.
        if let Some(at) = due {
            due::note(objects, &self.id, self.incarnation, at)?;
        }
        self.change(|facts| facts.due = due)?;
        let name = |at| names::due(at, self.incarnation);
        match before.filter(|before| due.map(name) != Some(name(*before))) {
            Some(before) => due::forget(objects, self.incarnation, before),
            None => Ok(()),
        }
    }

    fn check_held(&self) -> Result<()> {
        match !self.is_over.load(Ordering::SeqCst) && self.node.has_lease() {
            true => Ok(()),
            false => Err(self.elsewhere()),
        }
    }

    fn is_lost(&self) -> bool {
        self.is_over.load(Ordering::SeqCst) || self.node.is_dead()
    }

    fn on_lost(&self, notify: Box<dyn FnOnce() + Send>) {
        self.node.on_death(self.incarnation, notify);
    }

    fn choose_successor(&self) -> Option<Error> {
        let chosen = self.home.choose_successor(self.incarnation)?;
        *self.successor.lock() = Some(chosen);
        Some(self.elsewhere())
    }

    fn release(&self) {
        if let Some(leaving) = self.end() {
            self.home.release(leaving);
        }
    }

    fn hand_over(&self) {
        if let Some(leaving) = self.end() {
            let successor = leaving.successor;
            self.home.release_now(leaving);
            self.home.note_moved(&self.id, successor);
        }
    }
}
