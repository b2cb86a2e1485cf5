//! The bytes of a string: with its key if it is short, in chunks if it is long.
//!
//! A chunk is an element of a collection, at its number. What is missing of it, at its end or as a
//! whole, is zeros. So a part of a long string is read and changed without the rest of it, and a
//! bitmap takes as much room as there are bits set in it. A string that was long once stays in
//! chunks until it is replaced.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use bytes::Bytes;
use trefoil_core::Direction;

use crate::error::{CommandError, Result, WRONG_TYPE};
use crate::keyspace::{Keyspace, damaged};
use crate::layout::STRING_BYTES_MAX;
use crate::meta::{Meta, StoredValue};

/// Bytes of a chunk, and of the longest string that has none.
const CHUNK_BYTES: usize = 4096;

const CHUNK: u64 = CHUNK_BYTES as u64;

const TOO_LONG: CommandError =
    CommandError::refused("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

/// Checks how long a string is to become.
fn check_len(len: u64) -> Result<()> {
    match len > STRING_BYTES_MAX as u64 {
        true => Err(TOO_LONG),
        false => Ok(()),
    }
}

/// A string under a key: where its bytes are, and when the key expires.
#[derive(Debug, Clone)]
pub struct StoredString {
    pub(crate) expires: Option<u64>,
    bytes: StringPlace,
}

#[derive(Debug, Clone)]
enum StringPlace {
    Short(Bytes),
    Long { id: u64, len: u64 },
}

impl StoredString {
    /// A string without bytes under a key that does not expire.
    pub const EMPTY: Self = Self {
        expires: None,
        bytes: StringPlace::Short(Bytes::new()),
    };

    /// Returns the string that a key holds, which must hold one.
    pub(crate) fn of(meta: Meta) -> Result<Self> {
        let bytes = match meta.value {
            StoredValue::String(bytes) => StringPlace::Short(bytes),
            StoredValue::LongString { id, len } => StringPlace::Long { id, len },
            StoredValue::SmallHash(_) | StoredValue::Collection(_) => return Err(WRONG_TYPE),
        };
        let expires = meta.expires;
        Ok(Self { expires, bytes })
    }

    /// Returns how many bytes it has.
    pub(crate) fn len(&self) -> u64 {
        match &self.bytes {
            StringPlace::Short(bytes) => bytes.len() as u64,
            StringPlace::Long { len, .. } => *len,
        }
    }

    /// Returns what is remembered of its key if that expires at another time.
    pub(crate) fn into_meta(self, expires: Option<u64>) -> Meta {
        let value = match self.bytes {
            StringPlace::Short(bytes) => StoredValue::String(bytes),
            StringPlace::Long { id, len } => StoredValue::LongString { id, len },
        };
        Meta { expires, value }
    }
}

/// Returns the place of a chunk; there are far fewer than 2^32.
fn place(number: u64) -> [u8; 4] {
    (number as u32).to_be_bytes()
}

fn read_place(place: &[u8]) -> Result<u64> {
    let bytes = place.try_into().map_err(|_| damaged("a chunk"))?;
    Ok(u64::from(u32::from_be_bytes(bytes)))
}

/// A chunk that is there: where its bytes are in the string, and as many of them as are stored.
pub(crate) type Chunk = (u64, Bytes);

impl Keyspace<'_> {
    /// Returns the string under a key, which must hold one if it is there.
    pub fn string(&self, key: &[u8]) -> Result<Option<StoredString>> {
        self.find(key)?.map(StoredString::of).transpose()
    }

    /// Returns all bytes of the string under a key, which must hold one if it is there.
    pub(crate) fn string_bytes(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let Some(text) = self.string(key)? else {
            return Ok(None);
        };
        match text.bytes {
            StringPlace::Short(bytes) => Ok(Some(bytes)),
            _ => self.read(&text).map(Some),
        }
    }

    /// Returns all bytes of a string.
    pub fn read(&self, text: &StoredString) -> Result<Bytes> {
        self.read_range(text, 0..text.len())
    }

    /// Returns some bytes of a string, which are zeros behind its end.
    pub(crate) fn read_range(&self, text: &StoredString, range: Range<u64>) -> Result<Bytes> {
        if let StringPlace::Short(bytes) = &text.bytes
            && range.end <= bytes.len() as u64
        {
            return Ok(bytes.slice(range.start as usize..range.end as usize));
        }
        self.hold((range.end - range.start) as usize)?;
        let mut read = vec![0; (range.end - range.start) as usize];
        for chunk in self.chunks(text, range.clone()) {
            let (at, bytes) = chunk?;
            let to = (at - range.start) as usize;
            read[to..to + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(read.into())
    }

    /// Returns the stored bytes in a range of a string, chunk by chunk; all that is between them is
    /// zeros.
    pub(crate) fn chunks<'s>(
        &'s self,
        text: &StoredString,
        range: Range<u64>,
    ) -> Box<dyn Iterator<Item = Result<Chunk>> + 's> {
        match &text.bytes {
            StringPlace::Short(bytes) => Box::new(clip(0, bytes, &range).map(Ok).into_iter()),
            StringPlace::Long { id, .. } => {
                let (first, end) = (range.start / CHUNK, range.end.div_ceil(CHUNK));
                let (from, to) = (place(first), place(end));
                let elements = self.elements(*id, &from, Some(&to), Direction::Forwards);
                Box::new(elements.filter_map(move |element| {
                    let read = element.and_then(|(at, bytes)| Ok((read_place(&at)?, bytes)));
                    match read {
                        Ok((number, bytes)) => clip(number, &bytes, &range).map(Ok),
                        Err(failure) => Some(Err(failure)),
                    }
                }))
            }
        }
    }

    /// Gives a key a string and its time of expiry, whatever it had before.
    pub fn put_string(&mut self, key: &Bytes, bytes: &[u8], expires: Option<u64>) -> Result<()> {
        let len = bytes.len() as u64;
        self.put_parts(key, len, expires, |_, part| {
            // A copy, so that no chunk keeps the memory of all of them.
            let part = &bytes[part.start as usize..part.end as usize];
            Ok(Bytes::copy_from_slice(part))
        })
    }

    /// Gives a key a string that is made part by part, whatever it had before.
    pub(crate) fn put_parts(
        &mut self,
        key: &Bytes,
        len: u64,
        expires: Option<u64>,
        mut make: impl FnMut(&Self, Range<u64>) -> Result<Bytes>,
    ) -> Result<()> {
        check_len(len)?;
        let value = if len <= CHUNK {
            StoredValue::String(make(self, 0..len)?)
        } else {
            let id = self.new_id();
            for number in 0..len.div_ceil(CHUNK) {
                let begin = number * CHUNK;
                let part = make(self, begin..len.min(begin + CHUNK))?;
                if let Some(chunk) = without_end(&part) {
                    self.set_element(id, &place(number), Some(chunk))?;
                }
            }
            StoredValue::LongString { id, len }
        };
        self.put(key, &Meta { expires, value })
    }
}

/// Returns the bytes without the zeros at their end, unless they are nothing but zeros.
fn without_end(bytes: &Bytes) -> Option<Bytes> {
    let end = bytes.iter().rposition(|byte| *byte != 0)?;
    Some(bytes.slice(..=end))
}

/// Returns what a chunk has of a range, if anything.
fn clip(number: u64, bytes: &Bytes, range: &Range<u64>) -> Option<Chunk> {
    let begin = number * CHUNK;
    let len = bytes.len() as u64;
    let from = range.start.saturating_sub(begin);
    let to = range.end.saturating_sub(begin).min(len);
    (from < to).then(|| (begin + from, bytes.slice(from as usize..to as usize)))
}

/// A string that is being changed: what was read or written of it, until it is saved.
#[derive(Debug)]
pub struct StringDraft {
    text: StoredString,
    len: u64,
    chunks: BTreeMap<u64, Drafted>,
}

#[derive(Debug, Default)]
struct Drafted {
    bytes: Vec<u8>,
    is_changed: bool,
}

impl StringDraft {
    /// Begins to change a string, or a new one.
    pub fn new(text: Option<StoredString>) -> Self {
        let text = text.unwrap_or(StoredString::EMPTY);
        let len = text.len();
        let chunks = BTreeMap::new();
        Self { text, len, chunks }
    }

    /// Returns how many bytes it has.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Makes it at least so long.
    pub fn grow(&mut self, len: u64) -> Result<()> {
        check_len(len)?;
        self.len = self.len.max(len);
        Ok(())
    }

    /// Reads bytes, which are zeros where there are none.
    pub fn read(
        &mut self,
        keyspace: &Keyspace<'_>,
        mut at: u64,
        mut into: &mut [u8],
    ) -> Result<()> {
        while !into.is_empty() {
            let from = (at % CHUNK) as usize;
            let n = into.len().min(CHUNK_BYTES - from);
            let (part, rest) = into.split_at_mut(n);
            let stored = &self.chunk(keyspace, at / CHUNK)?.bytes;
            let stored = stored.get(from..).unwrap_or_default();
            let n_stored = stored.len().min(n);
            part[..n_stored].copy_from_slice(&stored[..n_stored]);
            part[n_stored..].fill(0);
            into = rest;
            at += n as u64;
        }
        Ok(())
    }

    /// Writes bytes. What lies between them and the end, if they lie behind it, becomes zeros.
    pub fn write(&mut self, keyspace: &Keyspace<'_>, mut at: u64, mut bytes: &[u8]) -> Result<()> {
        self.grow(at.saturating_add(bytes.len() as u64))?;
        while !bytes.is_empty() {
            let from = (at % CHUNK) as usize;
            let n = bytes.len().min(CHUNK_BYTES - from);
            let (part, rest) = bytes.split_at(n);
            let chunk = self.chunk(keyspace, at / CHUNK)?;
            if chunk.bytes.len() < from + n {
                chunk.bytes.resize(from + n, 0);
            }
            let stored = &mut chunk.bytes[from..from + n];
            chunk.is_changed |= stored != part;
            stored.copy_from_slice(part);
            bytes = rest;
            at += n as u64;
        }
        Ok(())
    }

    /// Gives it to a key, if it differs from what it was. The key expires when it did before.
    pub fn save(mut self, keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<()> {
        let is_longer = self.len != self.text.len();
        if !is_longer && !self.chunks.values().any(|chunk| chunk.is_changed) {
            return Ok(());
        }
        let expires = self.text.expires;
        let is_short = matches!(self.text.bytes, StringPlace::Short(_));
        if is_short && self.text.len() > 0 {
            self.chunk(keyspace, 0)?.is_changed = true;
        }
        let len = self.len;
        if is_short && len <= CHUNK {
            let mut bytes = self.chunks.remove(&0).unwrap_or_default().bytes;
            bytes.resize(len as usize, 0);
            let value = StoredValue::String(bytes.into());
            return keyspace.put(key, &Meta { expires, value });
        }
        let id = match self.text.bytes {
            StringPlace::Short(_) => keyspace.new_id(),
            StringPlace::Long { id, .. } => id,
        };
        for (number, chunk) in self.chunks {
            if chunk.is_changed {
                let bytes = without_end(&chunk.bytes.into());
                keyspace.set_element(id, &place(number), bytes)?;
            }
        }
        let value = StoredValue::LongString { id, len };
        keyspace.put(key, &Meta { expires, value })
    }

    /// Returns the chunk of this number, read when it is first needed.
    fn chunk(&mut self, keyspace: &Keyspace<'_>, number: u64) -> Result<&mut Drafted> {
        match self.chunks.entry(number) {
            Entry::Occupied(chunk) => Ok(chunk.into_mut()),
            Entry::Vacant(vacant) => {
                let stored = match &self.text.bytes {
                    StringPlace::Short(bytes) if number == 0 => Some(bytes.clone()),
                    StringPlace::Short(_) => None,
                    StringPlace::Long { id, .. } => keyspace.element(*id, &place(number))?,
                };
                let bytes = stored.map_or_else(Vec::new, Vec::from);
                let is_changed = false;
                Ok(vacant.insert(Drafted { bytes, is_changed }))
            }
        }
    }
}
