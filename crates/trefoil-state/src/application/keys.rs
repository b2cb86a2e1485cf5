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

#[cfg(test)]
mod tests {
    use trefoil_core::{Error, NewEvent};

    use super::*;
    use crate::keyspace::CommandMoment;
    use crate::space::MemorySpace;

    /// Runs what an application does on keys without anything in them.
    fn with_keyspace(act: impl FnOnce(&mut Keyspace<'_>) -> Result<()>) {
        let mut space = MemorySpace::default();
        let moment = CommandMoment {
            now: 1000,
            position: 7,
            ..CommandMoment::default()
        };
        let keyspace = Keyspace::new(&mut space, moment).unwrap();
        act(&mut keyspace.to_change(Commands::redis(), 100)).unwrap();
    }

    #[test]
    fn commands_of_redis_and_fields_are_the_same_data() {
        with_keyspace(|keyspace| {
            let key = Bytes::from_static(b"hash");
            keyspace.set_fields(&key, &[("a", "1".into()), ("b", "2".into())])?;
            keyspace.run(&[b"hincrby", &key, b"a", b"4"])?;
            keyspace.remove_fields(&key, ["b", "c"].into_iter())?;
            let hash = keyspace.hash(&key)?.unwrap();
            assert_eq!(hash.get(b"a")?, Some("5".into()));
            assert_eq!(hash.get(b"b")?, None);
            assert_eq!(hash.all().count(), 1);
            keyspace.expire_key(&key, 2000)?;
            assert_eq!(keyspace.run(&[b"PTTL", &key])?, Reply::Integer(1000));
            assert_eq!(keyspace.keys().collect::<Result<Vec<_>>>()?, [key]);
            Ok(())
        });
    }

    #[test]
    fn what_is_no_command_of_redis_or_fails_is_refused() {
        with_keyspace(|keyspace| {
            for words in [&[&b"NONSENSE"[..]][..], &[b"GET"], &[]] {
                let refused = keyspace.run(words);
                assert!(
                    matches!(refused, Err(CommandError::Refused(_))),
                    "{words:?}"
                );
            }
            keyspace.run(&[b"SET", b"text", b"x"])?;
            assert!(keyspace.run(&[b"INCR", b"text"]).is_err());
            assert!(keyspace.hash(b"text").is_err());
            Ok(())
        });
    }

    #[test]
    fn events_are_checked_and_get_the_next_positions() {
        with_keyspace(|keyspace| {
            let event = |data: &str| NewEvent::new("stock-1", "Sold", data.to_owned());
            assert_eq!(keyspace.append_event(event("{}"))?, 7);
            assert_eq!(keyspace.append_event(event("{}"))?, 8);
            let broken = keyspace.append_event(event("{"));
            assert!(matches!(
                broken,
                Err(CommandError::Engine(Error::Invalid(_)))
            ));
            let large = keyspace.append_event(event(&format!("\"{}\"", "x".repeat(100))));
            let is_too_large = |error: &Error| matches!(error, Error::DataTooLarge { .. });
            assert!(matches!(large, Err(CommandError::Engine(error)) if is_too_large(&error)));
            assert_eq!(keyspace.take_events().len(), 2);
            Ok(())
        });
    }
}
