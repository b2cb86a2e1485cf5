//! The values: each with a checksum, some compressed, and long ones in parts.
//!
//! The seed of a checksum is the hash of the key, so that no value is taken for that of another key. The
//! parts of a long value have a number that no other value has ever had: whoever reads the value reads
//! its parts or finds that they are gone, and never those of another one.

use bytes::Bytes;
use trefoil_core::{Result, put_varint, take_varint};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::contract::{KvLimits, KvRead};

use super::compression::{compress, decompress};
use super::errors::{damaged, failed};
use super::keys::{GenerationKeys, Tag};

/// The bytes of a checksum.
const CHECK_BYTES: usize = 4;
/// What a value takes besides its bytes, at most: the checksum, its length, a number and a count.
const OVERHEAD_BYTES: usize = CHECK_BYTES + 3 * 10;
/// What is left for other things in a batch with one part of a value in it.
const BATCH_OVERHEAD_BYTES: usize = 256;
/// Content below this is not worth compressing.
const COMPRESSED_BYTES_MIN: usize = 64;
/// The longest content, as a guard against lengths that are wrong.
const CONTENT_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Bit of a value's length: it is compressed.
const COMPRESSED: u64 = 1;
/// Bit of a value's length: it has parts elsewhere.
const IN_PARTS: u64 = 2;

/// Whether content is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Zstd,
}

/// GenerationKeys and their new values.
pub(super) type Puts = Vec<(Bytes, Bytes)>;

/// The parts of a long value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) number: u64,
    pub(super) n_parts: u64,
}

/// Makes values and reads them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cells {
    pub(super) keys: GenerationKeys,
    /// The bytes of one part of a value.
    part_bytes: usize,
}

fn check(key: &[u8], bytes: &[u8]) -> [u8; CHECK_BYTES] {
    (xxh3_64_with_seed(bytes, xxh3_64(key)) as u32).to_le_bytes()
}

fn seal(key: &[u8], mut value: Vec<u8>) -> Bytes {
    let sum = check(key, &value[CHECK_BYTES..]);
    value[..CHECK_BYTES].copy_from_slice(&sum);
    value.into()
}

/// Returns what a value says once its checksum is known to be right.
fn unseal<'a>(key: &[u8], value: &'a [u8]) -> Option<&'a [u8]> {
    let (sum, bytes) = value.split_at_checked(CHECK_BYTES)?;
    (sum == check(key, bytes)).then_some(bytes)
}

/// What a value says about its content.
struct CellHead {
    n_bytes: u64,
    is_compressed: bool,
    rest: Option<Rest>,
}

impl CellHead {
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let length = take_varint(bytes)?;
        let rest = match length & IN_PARTS != 0 {
            true => Some(Rest {
                number: take_varint(bytes)?,
                n_parts: take_varint(bytes)?,
            }),
            false => None,
        };
        Some(Self {
            n_bytes: length >> 2,
            is_compressed: length & COMPRESSED != 0,
            rest,
        })
    }
}

impl Cells {
    /// Returns what makes values for an engine with these limits; `None` if it takes too little.
    pub(super) fn new(keys: GenerationKeys, limits: KvLimits) -> Option<Self> {
        let in_batch = limits
            .batch_bytes
            .checked_sub(limits.key_bytes + BATCH_OVERHEAD_BYTES)?;
        let part_bytes = limits.value_bytes.min(in_batch);
        (part_bytes >= 2 * OVERHEAD_BYTES).then_some(Self { keys, part_bytes })
    }

    /// Makes the value of a key, and adds it to `puts`, before its parts: as long as they are there,
    /// they are found. `number` is asked for a new number if the value is long.
    pub(super) fn put(
        &self,
        puts: &mut Puts,
        key: Bytes,
        content: &[u8],
        packing: Packing,
        number: impl FnOnce() -> u64,
    ) -> Result<()> {
        let is_tried = packing == Packing::Zstd && content.len() >= COMPRESSED_BYTES_MIN;
        let compressed = match is_tried {
            true => compress(content)?.filter(|stored| stored.len() < content.len()),
            false => None,
        };
        let mut length = (content.len() as u64) << 2;
        if compressed.is_some() {
            length |= COMPRESSED;
        }
        let stored = compressed.as_deref().unwrap_or(content);
        let mut value = vec![0; CHECK_BYTES];
        if stored.len() + OVERHEAD_BYTES <= self.part_bytes {
            put_varint(&mut value, length);
            value.extend_from_slice(stored);
            let value = seal(&key, value);
            puts.push((key, value));
            return Ok(());
        }
        let (number, part_bytes) = (number(), self.part_bytes - CHECK_BYTES);
        let parts = stored.chunks(part_bytes);
        put_varint(&mut value, length | IN_PARTS);
        put_varint(&mut value, number);
        put_varint(&mut value, parts.len() as u64);
        let value = seal(&key, value);
        puts.push((key, value));
        for (part, bytes) in (0..).zip(parts) {
            let key = self.keys.part(Tag::Rest, number, part);
            let value = seal(&key, [&[0; CHECK_BYTES], bytes].concat());
            puts.push((key, value));
        }
        Ok(())
    }

    /// Makes the value of a key that is never long.
    pub(super) fn short(&self, key: &[u8], content: &[u8]) -> Bytes {
        let mut value = vec![0; CHECK_BYTES];
        put_varint(&mut value, (content.len() as u64) << 2);
        value.extend_from_slice(content);
        seal(key, value)
    }

    /// Returns the content of a value. The parts of a long one are read, too; `None` if they are
    /// gone: the value has been replaced.
    pub(super) fn content(
        &self,
        read: &dyn KvRead,
        key: &[u8],
        value: &Bytes,
    ) -> Result<Option<Bytes>> {
        let wrong = || damaged(key, "the value is not what was written");
        let mut bytes = unseal(key, value).ok_or_else(wrong)?;
        let head = CellHead::take(&mut bytes).ok_or_else(wrong)?;
        let stored = match head.rest {
            None => value.slice(value.len() - bytes.len()..),
            Some(rest) => match self.parts(read, rest)? {
                Some(stored) => stored,
                None => return Ok(None),
            },
        };
        let n_bytes = Some(head.n_bytes).filter(|n_bytes| *n_bytes <= CONTENT_BYTES_MAX);
        let n_bytes = n_bytes.ok_or_else(wrong)? as usize;
        let content = match head.is_compressed {
            true => decompress(&stored, n_bytes).ok_or_else(wrong)?.into(),
            false => stored,
        };
        match content.len() == n_bytes {
            true => Ok(Some(content)),
            false => Err(wrong()),
        }
    }

    /// Returns the content of a value that nobody replaces while it is read.
    pub(super) fn settled(&self, read: &dyn KvRead, key: &[u8], value: &Bytes) -> Result<Bytes> {
        let content = self.content(read, key, value)?;
        content.ok_or_else(|| damaged(key, "parts of the value are missing"))
    }

    fn parts(&self, read: &dyn KvRead, rest: Rest) -> Result<Option<Bytes>> {
        let keys = self.part_keys(rest);
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let found = read.get(&keys).map_err(failed("reading a long value"))?;
        let mut stored = Vec::with_capacity(found.iter().flatten().map(Bytes::len).sum());
        for (key, value) in keys.into_iter().zip(found) {
            let Some(value) = value else {
                return Ok(None);
            };
            let bytes = unseal(key, &value);
            let wrong = || damaged(key, "a part of a value is not what was written");
            stored.extend_from_slice(bytes.ok_or_else(wrong)?);
        }
        Ok(Some(stored.into()))
    }

    /// Returns the keys of the parts of a long value.
    pub(super) fn part_keys(&self, rest: Rest) -> Vec<Bytes> {
        let key = |part| self.keys.part(Tag::Rest, rest.number, part);
        (0..rest.n_parts).map(key).collect()
    }

    /// Returns where the parts of a value are, if it is a long one.
    pub(super) fn rest(&self, key: &[u8], value: &[u8]) -> Result<Option<Rest>> {
        let head = unseal(key, value).and_then(|mut bytes| CellHead::take(&mut bytes));
        let head = head.ok_or_else(|| damaged(key, "the value is not what was written"))?;
        Ok(head.rest)
    }

    /// Returns how many bytes of content fit into one part.
    pub(super) fn part_bytes(&self) -> usize {
        self.part_bytes - OVERHEAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use trefoil_core::Error;

    use crate::contract::KvEngine as _;
    use crate::memory::MemoryEngine;

    use super::*;

    const LIMITS: KvLimits = KvLimits {
        key_bytes: 64,
        value_bytes: 128,
        batch_bytes: 1024,
    };

    /// What is read of `content` once it was stored.
    fn round(content: &[u8], packing: Packing, spoil: impl Fn(&mut Puts)) -> Result<Bytes> {
        let cells = Cells::new(GenerationKeys::of(1), LIMITS).unwrap();
        let key = cells.keys.numbered(Tag::Items, 5);
        let mut puts = Vec::new();
        cells
            .put(&mut puts, key.clone(), content, packing, || 9)
            .unwrap();
        assert!(puts.iter().all(|(_, value)| value.len() <= 128));
        spoil(&mut puts);
        let value = puts[0].1.clone();
        let kv = MemoryEngine::default().open("store", 1).unwrap();
        let changes = puts.into_iter().map(|(key, value)| (key, Some(value)));
        let changes = changes.collect();
        kv.commit(
            crate::contract::KvBatch { changes },
            Box::new(|done| done.unwrap()),
        );
        cells.settled(&*kv, &key, &value)
    }

    #[test]
    fn values_of_any_length_come_back() {
        let text: Vec<u8> = (0..5000_u32).map(|n| ((n * n) >> 3) as u8).collect();
        for length in [0, 1, 63, 64, 90, 128, 129, 1000, 5000] {
            for packing in [Packing::Plain, Packing::Zstd] {
                let content = &text[..length];
                assert_eq!(round(content, packing, |_| ()).unwrap(), content);
            }
        }
    }

    #[test]
    fn a_value_that_was_changed_or_is_not_whole_is_damage() {
        let text = vec![7; 1000];
        let spoiled: [&dyn Fn(&mut Puts); 4] = [
            &|puts| puts[0].1 = Bytes::from_static(b"abc"),
            &|puts| drop(puts.remove(1)),
            &|puts| {
                let value = puts[1].1.clone();
                puts[1].1 = std::mem::replace(&mut puts[2].1, value);
            },
            &|puts| {
                let mut bytes = puts[1].1.to_vec();
                bytes[20] ^= 1;
                puts[1].1 = bytes.into();
            },
        ];
        for (number, spoil) in spoiled.into_iter().enumerate() {
            let read = round(&text, Packing::Plain, spoil);
            assert!(matches!(read, Err(Error::Damaged(_))), "{number}: {read:?}");
        }
    }
}
