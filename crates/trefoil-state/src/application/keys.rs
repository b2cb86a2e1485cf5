//! What the commands of applications read and change.
//!
//! Any command of Redis can be run on the keys. Fields of hashes can also be read and written
//! without that detour, and strings in parts: see [`StringDraft`](crate::StringDraft).

use bytes::Bytes;

use crate::command::Commands;
use crate::command::hash::{Hash, HashChange, HashField};
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

impl<'a> Keyspace<'a> {
    /// Runs a command of Redis, written as its words, as a part of the running command.
    pub fn run(&mut self, words: &[&[u8]]) -> Result<Reply> {
        let words = words.iter().map(|word| Bytes::copy_from_slice(word));
        let call = Commands::redis().call(words.collect());
        call.ok_or(CommandError::refused("ERR unknown command"))??
            .run(self)
    }

    /// Returns the hash under a key; `None` if the key is not there.
    pub fn hash<'k>(&'k self, key: &[u8]) -> Result<Option<HashReader<'k, 'a>>> {
        let hash = Hash::find(self, key)?;
        Ok(hash.map(|hash| HashReader {
            keyspace: self,
            hash,
        }))
    }

    /// Gives fields of the hash under a key their values.
    pub fn set_fields(&mut self, key: &Bytes, fields: &[(&str, Bytes)]) -> Result<()> {
        let mut change = HashChange::existing_or_new(self, key)?;
        for (name, value) in fields {
            let before = change.get(name.as_bytes())?;
            let after = HashField::plain(value.clone());
            change.replace(name.as_bytes(), before.as_ref(), &after)?;
        }
        change.save()
    }

    /// Removes fields of the hash under a key. A hash without fields is removed.
    pub fn remove_fields<'n>(
        &mut self,
        key: &Bytes,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<()> {
        let Some(mut change) = HashChange::existing(self, key)? else {
            return Ok(());
        };
        for name in names {
            if let Some(before) = change.get(name.as_bytes())? {
                change.remove(name.as_bytes(), &before)?;
            }
        }
        change.save()
    }

    /// Lets a key expire at a time, in milliseconds since 1970.
    pub fn expire_key(&mut self, key: &Bytes, time: u64) -> Result<()> {
        let Some(mut meta) = self.find(key)? else {
            return Ok(());
        };
        meta.expires = Some(time);
        self.put(key, &meta)
    }

    /// Returns all keys that have not expired, in no order.
    pub fn keys(&self) -> impl Iterator<Item = Result<Bytes>> + '_ {
        self.keys_from(0).map(|key| key.map(|(key, _)| key))
    }
}

/// A hash, to read.
#[derive(Debug)]
pub struct HashReader<'k, 'a> {
    keyspace: &'k Keyspace<'a>,
    hash: Hash,
}

impl HashReader<'_, '_> {
    /// Returns the value of a field.
    pub fn get(&self, field: &[u8]) -> Result<Option<Bytes>> {
        let field = self.hash.get(self.keyspace, field)?;
        Ok(field.map(|field| field.value))
    }

    /// Returns all fields and their values, in no order.
    pub fn all(&self) -> impl Iterator<Item = Result<(Bytes, Bytes)>> + '_ {
        let fields = self.hash.all(self.keyspace);
        fields.map(|field| field.map(|(name, field)| (name, field.value)))
    }
}
