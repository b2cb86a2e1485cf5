//! `KvStorage` over the engine in memory.

mod clearing;
mod conformance;
mod crashes;
mod damage;
mod databases;
mod large;
mod outcomes;
mod runs;
mod seeds;
mod seen;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trefoil_core::Result;
use trefoil_kv::contract::{Kv, KvEngine as _, KvLimits};
use trefoil_kv::memory::{MemoryEngine, MemoryOptions};
use trefoil_kv::{KvStorage, KvStorageOptions};
use trefoil_storage::{Group, Items, Label, Record, Storage};

/// So little that nothing fits into one batch.
const TINY: KvLimits = KvLimits {
    key_bytes: 64,
    value_bytes: 256,
    batch_bytes: 1024,
};

/// One namespace in an engine, which can be opened again and again.
struct Place {
    engine: MemoryEngine,
    directory: tempfile::TempDir,
    epoch: AtomicU64,
}

impl Place {
    fn new() -> Self {
        Self::with(MemoryOptions::default())
    }

    fn tiny() -> Self {
        Self::with(tiny())
    }

    fn with(options: MemoryOptions) -> Self {
        Self {
            engine: MemoryEngine::new(options),
            directory: tempfile::tempdir().unwrap(),
            epoch: AtomicU64::new(0),
        }
    }

    /// Opens the store, and takes it from whoever has it.
    fn take_over(&self, engine: &MemoryEngine) -> (Arc<dyn Kv>, u64) {
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        (engine.open("namespace", epoch).unwrap(), epoch)
    }

    fn open(&self) -> KvStorage {
        self.open_in(self.directory.path()).unwrap()
    }

    /// Opens the namespace with this directory for its cache.
    fn open_in(&self, cache: &Path) -> Result<KvStorage> {
        let (kv, epoch) = self.take_over(&self.engine);
        open(&self.engine, kv, epoch, cache)
    }
}

fn tiny() -> MemoryOptions {
    MemoryOptions {
        limits: TINY,
        ..MemoryOptions::default()
    }
}

fn open(engine: &MemoryEngine, kv: Arc<dyn Kv>, epoch: u64, cache: &Path) -> Result<KvStorage> {
    let options = KvStorageOptions {
        epoch,
        ..KvStorageOptions::new("objects/", cache)
    };
    KvStorage::open(Arc::new(engine.clone()), kv, &options, &|_| Ok(0))
}

/// A record of one commit.
fn record(commit: u64, position: u64, bodies: &[&[u8]], changes: &[u8]) -> Record {
    let mut items = Items::default();
    for (number, body) in bodies.iter().enumerate() {
        let label = Label {
            flags: number as u8,
            word: commit,
        };
        items.push(label, body);
    }
    Record {
        first_commit: commit,
        n_commits: 1,
        first_position: position,
        items,
        commits: format!("commit {commit}").into_bytes(),
        changes: changes.to_vec(),
        changes_dropped: false,
    }
}

fn append(storage: &KvStorage, records: Vec<Record>) -> Result<()> {
    storage.append(&Group { records }).wait()
}

fn replayed(storage: &KvStorage) -> Vec<Record> {
    let mut records = Vec::new();
    let replay = storage.replay(0, &mut |record| {
        records.push(record.clone());
        Ok(())
    });
    replay.unwrap();
    records
}

fn items(storage: &KvStorage, positions: &[u64]) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut visit = |item: trefoil_storage::StoredItem| {
        found.push((item.position, item.bytes.to_vec()));
        std::ops::ControlFlow::Continue(())
    };
    storage.read(positions, &mut visit).unwrap();
    found
}

/// Bytes that do not compress.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| rng.u8(..)).collect()
}
