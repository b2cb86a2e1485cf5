//! How tables of maps that are written to are laid out, also of maps that earlier versions made.
//!
//! The newest tables (level 0) are small. Their filters and indexes are in memory as a whole, which is
//! little. Those of all other tables are blocks of 4 KiB that are cached like blocks of entries, so a
//! map of any size takes no more memory than the cache has, and a lookup reads what it needs.
//!
//! fjall keeps the options of a keyspace in keyspace 0 and never changes them. So they are changed there,
//! before the database is opened: tables that are written from then on have the new layout.

use std::path::Path;

use fjall::KeyspaceCreateOptions;
use fjall::config::{PartitioningPolicy, PinningPolicy};
use lsm_tree::{AbstractTree as _, Config, Guard as _, SeqNo, SequenceNumberCounter};

/// Whether filters and indexes are split into blocks, in level 0 and in all others.
const IS_PARTITIONED: [bool; 2] = [false, true];
/// Those that are not are always in memory: a table of an earlier version has one of a megabyte.
const IS_PINNED: [bool; 1] = [true];
/// What a map keeps in memory before it writes a table. Little, because hundreds of namespaces may
/// be open; batches are large, so that tables are too where much is written.
pub(super) const MEMTABLE_BYTES: u64 = 2 * 1024 * 1024;

/// The options of new maps.
pub(super) fn map_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .filter_block_partitioning_policy(PartitioningPolicy::new(IS_PARTITIONED))
        .index_block_partitioning_policy(PartitioningPolicy::new(IS_PARTITIONED))
        .filter_block_pinning_policy(PinningPolicy::new(IS_PINNED))
        .index_block_pinning_policy(PinningPolicy::new(IS_PINNED))
        .max_memtable_size(MEMTABLE_BYTES)
}

/// The same as fjall stores them, in the order of their names.
fn stored_options() -> [(&'static str, Vec<u8>); 5] {
    let policy = |levels: &[bool]| {
        let mut stored = vec![levels.len() as u8];
        stored.extend(levels.iter().map(|level| u8::from(*level)));
        stored
    };
    [
        ("filter_block_partitioning_policy", policy(&IS_PARTITIONED)),
        ("filter_block_pinning_policy", policy(&IS_PINNED)),
        ("index_block_partitioning_policy", policy(&IS_PARTITIONED)),
        ("index_block_pinning_policy", policy(&IS_PINNED)),
        ("max_memtable_size", MEMTABLE_BYTES.to_le_bytes().into()),
    ]
}

/// Gives all keyspaces of a database that is not open these options. `keyspaces` is the directory in which
/// they are.
pub(super) fn update(keyspaces: &Path) -> lsm_tree::Result<()> {
    let dir = keyspaces.join("0");
    if !dir.exists() {
        return Ok(());
    }
    let next = SequenceNumberCounter::default();
    let tree = Config::new(dir, next.clone(), SequenceNumberCounter::default()).open()?;
    next.fetch_max(tree.get_highest_seqno().map_or(0, |last| last + 1));
    let mut changes = Vec::new();
    for name in tree.prefix(b"n", SeqNo::MAX, None) {
        let name = name.key()?;
        for (option, value) in stored_options() {
            let key = [b"c", &name[1..], option.as_bytes()].concat();
            if tree.get(&key, SeqNo::MAX)?.as_deref() != Some(value.as_slice()) {
                changes.push((key, value));
            }
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    let mut ingestion = tree.ingestion()?;
    for (key, value) in changes {
        ingestion.write(key, value)?;
    }
    ingestion.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fjall::{Database, PersistMode};

    use super::super::written::WrittenMaps;
    use super::*;
    use crate::{Batch, BlockCache};

    /// Returns the filters and the indexes that are always in memory, in bytes.
    fn pinned(keyspace: &fjall::Keyspace) -> usize {
        keyspace.tree.pinned_filter_size() + keyspace.tree.pinned_block_index_size()
    }

    /// How many tables are written so that at least four are merged: the first of a map may just move down.
    const PARTS: u32 = 5;

    fn write_table(keyspace: &fjall::Keyspace) {
        keyspace.rotate_memtable_and_wait().unwrap();
    }

    /// Waits until at most one table is left in level 0.
    fn wait_for_merge(keyspace: &fjall::Keyspace) {
        for _ in 0..60_000 {
            if keyspace.l0_table_count() <= 1 {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("never merged");
    }

    #[test]
    fn maps_of_earlier_versions_get_these_options() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Database::builder(dir.path()).open().unwrap();
        let fill = |keyspace: &fjall::Keyspace| {
            for part in 0..PARTS {
                for key in (part..100_000).step_by(PARTS as usize) {
                    keyspace.insert(key.to_be_bytes(), [0; 8]).unwrap();
                }
                write_table(keyspace);
            }
            wait_for_merge(keyspace);
        };
        let before = open();
        for name in ["one", "two"] {
            let keyspace = before
                .keyspace(name, KeyspaceCreateOptions::default)
                .unwrap();
            fill(&keyspace);
            assert!(pinned(&keyspace) < 16_384, "{}", pinned(&keyspace));
        }
        before.persist(PersistMode::SyncAll).unwrap();
        drop(before);

        for _ in 0..2 {
            update(&dir.path().join("keyspaces")).unwrap();
        }
        let database = open();
        let policy = PartitioningPolicy::new(IS_PARTITIONED);
        for name in ["one", "two"] {
            let keyspace = database.keyspace(name, || unreachable!()).unwrap();
            assert_eq!(keyspace.config.filter_block_partitioning_policy, policy);
            assert_eq!(keyspace.config.index_block_partitioning_policy, policy);
            assert!(pinned(&keyspace) > 100_000, "whole filters stay in memory");
            fill(&keyspace);
            assert!(pinned(&keyspace) < 64 * 1024, "new ones are in blocks");
            assert_eq!(keyspace.len().unwrap(), 100_000);
        }
        let made = database.keyspace("three", map_options).unwrap();
        assert_eq!(made.config.filter_block_partitioning_policy, policy);
    }

    /// Returns how many bytes this thread has read from files so far.
    fn bytes_read() -> u64 {
        let counts = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        let line = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
        line.unwrap().parse().unwrap()
    }

    #[test]
    fn a_lookup_reads_a_few_blocks_however_large_the_map() {
        const KEYS: u32 = 200_000;
        let dir = tempfile::tempdir().unwrap();
        let cache = BlockCache::new(256 * 1024);
        let maps = WrittenMaps::open(dir.path().join("written"), &cache).unwrap();
        let maps = Arc::new(maps);
        let key = |number: u32| number.wrapping_mul(0x9e37_79b1).to_be_bytes();
        for part in 0..PARTS {
            let mut batch = Batch::default();
            for number in (part..KEYS).step_by(PARTS as usize) {
                batch.put("map", key(2 * number), [7; 32]);
            }
            maps.write(&batch).unwrap();
            let database = maps.database().unwrap();
            write_table(&maps.keyspace(&database, "map").unwrap());
        }
        let database = maps.database().unwrap();
        wait_for_merge(&maps.keyspace(&database, "map").unwrap());
        let map = maps.map("map").unwrap().unwrap();
        let read_by = |is_there: u32| {
            let before = bytes_read();
            for number in (0..KEYS).step_by(200) {
                let found = map.get(&key(2 * number + 1 - is_there)).unwrap();
                assert_eq!(found.is_some(), is_there == 1);
            }
            (bytes_read() - before) / u64::from(KEYS / 200)
        };
        let (missing, present) = (read_by(0), read_by(1));
        // A block of the filter; and of the index, and of entries.
        assert!(missing < 6 * 1024, "{missing} bytes for a missing key");
        assert!(present < 16 * 1024, "{present} bytes for a key");
        // The filter of a table that is left in level 0.
        assert!(
            maps.held_bytes() < 160 * 1024,
            "{} bytes",
            maps.held_bytes()
        );
    }
}
