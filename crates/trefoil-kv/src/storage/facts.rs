//! The small facts of a generation: where the log ends, which maps there are, what the snapshot is, and
//! what does not count.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use trefoil_core::{Result, put_bytes, put_varint, take_bytes, take_varint};
use trefoil_storage::{LogEnd, Snapshot};

use super::errors::damaged;
use super::keys::{Tag, letter_of, number_of, own_part};
use super::store::OpenStore;

/// The version of the layout, which the end of the log carries.
const FORMAT_VERSION: u64 = 1;

/// Where the log ends, and how many bytes were ever appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EndFact {
    pub(super) end: LogEnd,
    pub(super) n_bytes: u64,
}

/// How much room is taken, as far as the end does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct UsageFact {
    /// The bytes of the log that were dropped since.
    pub(super) dropped_bytes: u64,
    /// About how many bytes the maps have that are written to: those of the snapshot and of what was
    /// written since.
    pub(super) map_bytes: u64,
    /// Whether a map has had a value that is in parts.
    pub(super) has_long_entries: bool,
}

/// How far blocks of items were packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PackedFact {
    /// Those that begin after this position may still become larger.
    pub(super) position: u64,
    /// How many bytes had ever been appended when all were packed that there were.
    pub(super) n_bytes: u64,
}

/// What the snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SnapshotFact {
    pub(super) number: u64,
    pub(super) info: Snapshot,
    pub(super) n_blocks: u64,
}

/// A file of a map that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunFile {
    /// Where it is in the directory of the map.
    pub(super) path: String,
    pub(super) n_bytes: u64,
    /// The XXH3 of its bytes.
    pub(super) check: u64,
}

/// Tells all maps apart that were ever loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunId {
    /// The epoch of the writer that loaded it.
    pub(super) epoch: u64,
    pub(super) number: u64,
}

/// What is known of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MapFact {
    /// Its entries are in the store, under this number.
    Written(u64),
    /// Its files are objects.
    Loaded { run: RunId, files: Vec<RunFile> },
}

/// Changes of maps that count, and may not all be made yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RedoFact {
    pub(super) number: u64,
    pub(super) n_parts: u64,
}

/// What does not count: it is left over, or not complete yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GarbageFact {
    /// What lies beyond the end of the log, and parts of long values with these numbers.
    BeyondEnd(Range<u64>),
    /// GroupParts of long values with these numbers.
    Rests(Range<u64>),
    /// The entries of the map with this number.
    Entries(u64),
    /// The snapshot with this number.
    Snapshot(u64),
    /// The parts of changes with this number.
    Redo(u64),
    /// The objects of a map.
    Objects(RunId),
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct StoredFacts {
    /// `None` if nothing was ever stored.
    pub(super) end: Option<EndFact>,
    /// Whether the generation is being erased.
    pub(super) is_erased: bool,
    pub(super) usage: UsageFact,
    pub(super) maps: BTreeMap<String, MapFact>,
    pub(super) snapshot: Option<SnapshotFact>,
    /// Up to which commit records were merged.
    pub(super) merged: u64,
    pub(super) packed: PackedFact,
    pub(super) redo: Option<RedoFact>,
    /// By number.
    pub(super) garbage: Vec<(u64, GarbageFact)>,
}

fn numbers(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    numbers
        .iter()
        .for_each(|number| put_varint(&mut out, *number));
    out
}

/// Takes numbers, and nothing else.
fn take_numbers<const N: usize>(mut content: &[u8]) -> Option<[u64; N]> {
    let mut out = [0; N];
    for number in &mut out {
        *number = take_varint(&mut content)?;
    }
    content.is_empty().then_some(out)
}

impl EndFact {
    pub(super) fn encode(&self) -> Vec<u8> {
        numbers(&[
            FORMAT_VERSION,
            self.end.commit,
            self.end.position,
            self.n_bytes,
        ])
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let [version, commit, position, n_bytes] = take_numbers(content)?;
        let end = LogEnd { commit, position };
        (version == FORMAT_VERSION).then_some(Self { end, n_bytes })
    }
}

impl UsageFact {
    pub(super) fn encode(&self) -> Vec<u8> {
        let has_long_entries = u64::from(self.has_long_entries);
        numbers(&[self.dropped_bytes, self.map_bytes, has_long_entries])
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let [dropped_bytes, map_bytes, has_long_entries] = take_numbers(content)?;
        Some(Self {
            dropped_bytes,
            map_bytes,
            has_long_entries: has_long_entries != 0,
        })
    }
}

impl PackedFact {
    pub(super) fn encode(&self) -> Vec<u8> {
        numbers(&[self.position, self.n_bytes])
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let [position, n_bytes] = take_numbers(content)?;
        Some(Self { position, n_bytes })
    }
}

impl SnapshotFact {
    pub(super) fn encode(&self) -> Vec<u8> {
        let Snapshot {
            commit,
            entries,
            bytes,
        } = self.info;
        numbers(&[self.number, commit, entries, bytes, self.n_blocks])
    }

    pub(super) fn decode(content: &[u8]) -> Option<Self> {
        let [number, commit, entries, bytes, n_blocks] = take_numbers(content)?;
        let info = Snapshot {
            commit,
            entries,
            bytes,
        };
        Some(Self {
            number,
            info,
            n_blocks,
        })
    }
}

impl RedoFact {
    pub(super) fn encode(&self) -> Vec<u8> {
        numbers(&[self.number, self.n_parts])
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let [number, n_parts] = take_numbers(content)?;
        Some(Self { number, n_parts })
    }
}

impl MapFact {
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Written(number) => *number,
            Self::Loaded { run, .. } => run.number,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Written(number) => numbers(&[0, *number]),
            Self::Loaded { run, files } => {
                let mut out = numbers(&[1, run.number, run.epoch, files.len() as u64]);
                for file in files {
                    put_bytes(&mut out, file.path.as_bytes());
                    put_varint(&mut out, file.n_bytes);
                    put_varint(&mut out, file.check);
                }
                out
            }
        }
    }

    fn decode(mut content: &[u8]) -> Option<Self> {
        let content = &mut content;
        let (kind, number) = (take_varint(content)?, take_varint(content)?);
        if kind == 0 {
            return Some(Self::Written(number));
        }
        let epoch = take_varint(content)?;
        let run = RunId { epoch, number };
        let mut files = Vec::new();
        for _ in 0..take_varint(content)? {
            files.push(RunFile {
                path: String::from_utf8(take_bytes(content)?.to_vec()).ok()?,
                n_bytes: take_varint(content)?,
                check: take_varint(content)?,
            });
        }
        Some(Self::Loaded { run, files })
    }
}

impl GarbageFact {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::BeyondEnd(rests) => numbers(&[0, rests.start, rests.end]),
            Self::Rests(rests) => numbers(&[1, rests.start, rests.end]),
            Self::Entries(number) => numbers(&[2, *number, 0]),
            Self::Snapshot(number) => numbers(&[3, *number, 0]),
            Self::Redo(number) => numbers(&[4, *number, 0]),
            Self::Objects(run) => numbers(&[5, run.number, run.epoch]),
        }
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let [kind, number, end] = take_numbers(content)?;
        Some(match kind {
            0 => Self::BeyondEnd(number..end),
            1 => Self::Rests(number..end),
            2 => Self::Entries(number),
            3 => Self::Snapshot(number),
            4 => Self::Redo(number),
            5 => Self::Objects(RunId { epoch: end, number }),
            _ => return None,
        })
    }

    /// Returns the highest number that it speaks of.
    fn last_number(&self) -> u64 {
        match self {
            Self::BeyondEnd(rests) | Self::Rests(rests) => rests.end,
            Self::Entries(number)
            | Self::Snapshot(number)
            | Self::Redo(number)
            | Self::Objects(RunId { number, .. }) => *number,
        }
    }
}

impl StoredFacts {
    /// Reads them.
    pub(super) fn read(store: &OpenStore) -> Result<Self> {
        let mut facts = Self::default();
        store.walk(&*store.kv, store.keys.facts(), &mut |key, value| {
            let content = store.cells.settled(&*store.kv, &key, &value)?;
            let noted = facts.note(&key, &content);
            noted.ok_or_else(|| damaged(&key, "this fact is of another version, or damaged"))
        })?;
        facts.note_numbers(store);
        Ok(facts)
    }

    fn note(&mut self, key: &Bytes, content: &[u8]) -> Option<()> {
        match letter_of(key) {
            letter if letter == Tag::End as u8 => self.end = Some(EndFact::decode(content)?),
            letter if letter == Tag::Erased as u8 => self.is_erased = true,
            letter if letter == Tag::Usage as u8 => self.usage = UsageFact::decode(content)?,
            letter if letter == Tag::Snapshot as u8 => {
                self.snapshot = Some(SnapshotFact::decode(content)?);
            }
            letter if letter == Tag::Merged as u8 => [self.merged] = take_numbers(content)?,
            letter if letter == Tag::Packed as u8 => self.packed = PackedFact::decode(content)?,
            letter if letter == Tag::Redo as u8 => self.redo = Some(RedoFact::decode(content)?),
            letter if letter == Tag::Garbage as u8 => {
                let garbage = GarbageFact::decode(content)?;
                self.garbage.push((number_of(key), garbage));
            }
            letter if letter == Tag::Map as u8 => {
                let name = String::from_utf8(own_part(key).to_vec()).ok()?;
                self.maps.insert(name, MapFact::decode(content)?);
            }
            _ => return None,
        }
        Some(())
    }

    /// Tells the store which numbers are taken.
    fn note_numbers(&self, store: &OpenStore) {
        let maps = self.maps.values().map(MapFact::number);
        let garbage = self.garbage.iter();
        let garbage = garbage.flat_map(|(number, garbage)| [*number, garbage.last_number()]);
        let snapshot = self.snapshot.iter().map(|snapshot| snapshot.number);
        let redo = self.redo.iter().map(|redo| redo.number);
        let all = maps.chain(garbage).chain(snapshot).chain(redo);
        all.for_each(|number| store.note_number(number));
    }
}

/// Returns the content that says up to which commit records were merged.
pub(super) fn encode_merged(commit: u64) -> Vec<u8> {
    numbers(&[commit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back() {
        let files = vec![RunFile {
            path: "tables/1".to_owned(),
            n_bytes: 12,
            check: u64::MAX,
        }];
        let run = RunId {
            epoch: 9,
            number: 4,
        };
        for fact in [MapFact::Written(3), MapFact::Loaded { run, files }] {
            assert_eq!(MapFact::decode(&fact.encode()), Some(fact));
        }
        for fact in [
            GarbageFact::BeyondEnd(3..9),
            GarbageFact::Rests(9..10),
            GarbageFact::Entries(1),
            GarbageFact::Snapshot(2),
            GarbageFact::Redo(3),
            GarbageFact::Objects(run),
        ] {
            assert_eq!(GarbageFact::decode(&fact.encode()), Some(fact));
        }
        let usage = UsageFact {
            dropped_bytes: 1,
            map_bytes: 2,
            has_long_entries: true,
        };
        assert_eq!(UsageFact::decode(&usage.encode()), Some(usage));
    }
}
