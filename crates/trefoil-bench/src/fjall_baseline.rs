//! The fjall baseline: everything in an LSM tree, six puts per event, one `fdatasync` per batch.
//!
//! It is given every advantage that stays within "plain": LZ4 as fjall sets it up itself, a cache
//! of 256 MiB, one keyspace per index, versions known in memory instead of read back, and no check
//! of ids.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use trefoil::NewEvent;

use crate::system::{System, Touched};
use crate::workload::{encode, encoded_body};

const CACHE_BYTES: u64 = 256 * 1024 * 1024;
/// Compactions follow each other closely: after this long without one there is none left.
const IDLE: Duration = Duration::from_secs(1);

pub(crate) struct Fjall {
    database: Database,
    durability: Option<PersistMode>,
    bodies: Keyspace,
    streams: Keyspace,
    categories: Keyspace,
    versions: Keyspace,
    tags: Keyspace,
    /// How many events each stream has.
    lengths: HashMap<String, u64>,
    position: u64,
}

impl Fjall {
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let database = Database::builder(directory)
            .cache_size(CACHE_BYTES)
            .open()?;
        let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default);
        let mut fjall = Self {
            bodies: keyspace("bodies")?,
            streams: keyspace("streams")?,
            categories: keyspace("categories")?,
            versions: keyspace("versions")?,
            tags: keyspace("tags")?,
            durability: Some(PersistMode::SyncData),
            lengths: HashMap::new(),
            position: 0,
            database,
        };
        if let Some(last) = fjall.bodies.last_key_value() {
            fjall.position = number(&last.key()?).context("a key is not a position")?;
        }
        Ok(fjall)
    }

    /// Leaves syncing to [`Fjall::sync`].
    pub(crate) fn without_sync_per_batch(mut self) -> Self {
        self.durability = None;
        self
    }

    /// Makes everything durable.
    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }

    /// Writes the memtables out and waits until fjall has nothing more to compact by itself.
    pub(crate) fn settle(&self) -> Result<()> {
        for keyspace in self.keyspaces() {
            keyspace.rotate_memtable_and_wait()?;
        }
        let mut idle_since = Instant::now();
        while idle_since.elapsed() < IDLE {
            if self.database.active_compactions() + self.database.outstanding_flushes() > 0 {
                idle_since = Instant::now();
            }
            std::thread::sleep(IDLE / 20);
        }
        Ok(())
    }

    /// Compacts everything: the best state for reads and for size, which fjall does not reach by
    /// itself.
    pub(crate) fn compact(&self) -> Result<()> {
        self.settle()?;
        for keyspace in self.keyspaces() {
            keyspace.major_compact()?;
        }
        Ok(())
    }

    /// Bytes of all tables and of the indexes among them; the journal does not count.
    pub(crate) fn bytes(&self) -> (u64, Option<u64>) {
        let total: u64 = self
            .keyspaces()
            .iter()
            .map(|keyspace| keyspace.disk_space())
            .sum();
        (total, Some(total - self.bodies.disk_space()))
    }

    fn keyspaces(&self) -> [&Keyspace; 5] {
        [
            &self.bodies,
            &self.streams,
            &self.categories,
            &self.versions,
            &self.tags,
        ]
    }

    /// The body of the event at a position.
    fn touch(&self, position: &[u8], touched: &mut Touched) -> Result<()> {
        let stored = self
            .bodies
            .get(position)?
            .context("an indexed event is missing")?;
        touched.touch(encoded_body(&stored).context("a stored event is cut")?);
        Ok(())
    }
}

impl System for Fjall {
    fn append(&mut self, events: &mut Vec<NewEvent>) -> Result<()> {
        let mut batch = self.database.batch().durability(self.durability);
        for event in events.iter() {
            self.position += 1;
            let position = self.position.to_be_bytes();
            let stream = event.stream.as_deref().unwrap_or_default();
            let length = match self.lengths.get_mut(stream) {
                Some(length) => length,
                None => self.lengths.entry(stream.to_owned()).or_default(),
            };
            let version = length.to_be_bytes();
            let id = event
                .id
                .map_or(u128::from(self.position), |id| id.as_u128());
            let mut body = Vec::with_capacity(512);
            encode(event, id, *length, self.position, &mut body);
            *length += 1;
            batch.insert(&self.bodies, position, body);
            batch.insert(&self.streams, key(stream, version), position);
            batch.insert(&self.categories, key(category(stream), position), "");
            batch.insert(&self.versions, stream, version);
            for tag in &event.tags {
                batch.insert(&self.tags, key(tag, position), "");
            }
        }
        Ok(batch.commit()?)
    }

    fn read_stream(&self, stream: &str, from: u64, limit: usize) -> Result<Touched> {
        let range = key(stream, from.to_be_bytes())..key(stream, [0xff; 8]);
        let mut touched = Touched::default();
        for entry in self.streams.range(range).take(limit) {
            self.touch(&entry.value()?, &mut touched)?;
        }
        Ok(touched)
    }

    fn read_category(&self, category: &str, from: u64, limit: usize) -> Result<Touched> {
        let range = key(category, from.to_be_bytes())..key(category, [0xff; 8]);
        let mut touched = Touched::default();
        for entry in self.categories.range(range).take(limit) {
            let key = entry.key()?;
            let position = key.last_chunk::<8>().context("a key is cut")?;
            self.touch(position, &mut touched)?;
        }
        Ok(touched)
    }
}

fn category(stream: &str) -> &str {
    stream
        .split_once('-')
        .map_or(stream, |(category, _)| category)
}

/// A name, a zero byte that no name of the workload contains, and a big-endian number.
fn key(name: &str, number: [u8; 8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 9);
    key.extend_from_slice(name.as_bytes());
    key.push(0);
    key.extend_from_slice(&number);
    key
}

fn number(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*key.last_chunk()?))
}
