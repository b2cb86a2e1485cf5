//! Removing what is no longer there for anybody: keys and fields that have expired, holds that
//! have run out, and garbage.

use bytes::Bytes;
use trefoil_core::Direction;

use crate::failure::{Failure, Result};
use crate::keyspace::{Keyspace, damaged};
use crate::layout;
use crate::seats::end_hold;

/// An entry that says that something expires.
#[derive(Debug)]
pub(crate) struct Expiry {
    pub(crate) name: Bytes,
    /// Milliseconds since 1970.
    pub(crate) time: u64,
    /// A key, fields of it, or a hold.
    pub(crate) what: u8,
    pub(crate) key: Bytes,
}

/// What a round of cleaning did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleaned {
    /// About how many entries were removed.
    pub n: usize,
    /// Whether nothing more is due.
    pub is_done: bool,
    /// When something expires next, in milliseconds since 1970.
    pub next: Option<u64>,
}

impl Keyspace<'_> {
    /// Removes what is due, up to about `n_max` entries of it.
    pub fn clean(&mut self, n_max: usize) -> trefoil_core::Result<Cleaned> {
        let cleaned = self.clean_expired(n_max).and_then(|mut n| {
            if n < n_max {
                n += self.clean_garbage(n_max - n)?;
            }
            let next = self.first_expiry(&[])?.map(|expiry| expiry.time);
            Ok(Cleaned {
                n,
                is_done: n < n_max,
                next,
            })
        });
        cleaned.map_err(Failure::into_error)
    }

    /// What expires, in the order of time, from an entry on.
    pub(crate) fn expiries(&self, from: &[u8]) -> impl Iterator<Item = Result<Expiry>> + '_ {
        let epoch = self.root.epoch;
        let prefix = layout::expiry_prefix(epoch);
        let end = layout::after_prefix(&prefix);
        let from = from.max(&prefix);
        let entries = self.space.scan(from, &end, Direction::Forwards);
        entries.map(move |entry| {
            let (name, _) = entry?;
            let expiry = layout::read_expiry(epoch, &name);
            let (time, what, key) = expiry.ok_or_else(|| damaged("an expiry"))?;
            Ok(Expiry {
                name,
                time,
                what,
                key,
            })
        })
    }

    fn first_expiry(&self, from: &[u8]) -> Result<Option<Expiry>> {
        self.expiries(from).next().transpose()
    }

    fn clean_expired(&mut self, n_max: usize) -> Result<usize> {
        let mut n = 0;
        // What was removed is not passed again.
        let mut from = Bytes::new();
        while n < n_max
            && let Some(expiry) = self.first_expiry(&from)?
            && expiry.time <= self.now()
        {
            let Expiry {
                name,
                time,
                what,
                key,
            } = expiry;
            from.clone_from(&name);
            let n_removed = match what {
                layout::FIELDS_EXPIRE => self.purge_fields(&key, n_max - n)?,
                layout::HOLD_EXPIRES => end_hold(self, &key, time)?,
                _ => self.remove_expired(&key)?,
            };
            if n_removed == 0 {
                // Nothing of the key expires then, whatever the entry says.
                self.space.set(name, None)?;
            }
            n += n_removed.max(1);
        }
        Ok(n)
    }

    fn clean_garbage(&mut self, n_max: usize) -> Result<usize> {
        let mut n = 0;
        while n < n_max {
            let first = {
                self.space
                    .scan(&[layout::GARBAGE], GARBAGE_END, Direction::Forwards)
            }
            .next()
            .transpose()?;
            let Some((name, _)) = first else {
                break;
            };
            let prefix = layout::read_garbage(&name);
            let end = layout::after_prefix(&prefix);
            let entries = self.space.scan(&prefix, &end, Direction::Forwards);
            let entries: Vec<Bytes> = entries
                .take(n_max - n)
                .map(|entry| entry.map(|(name, _)| name))
                .collect::<trefoil_core::Result<_>>()?;
            let is_all = entries.len() < n_max - n;
            n += entries.len() + usize::from(is_all);
            for entry in entries {
                self.space.set(entry, None)?;
            }
            if is_all {
                self.space.set(name, None)?;
            }
        }
        Ok(n)
    }
}

/// After the names of all garbage entries.
const GARBAGE_END: &[u8] = &[layout::GARBAGE + 1];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    fn clean(world: &mut World, n_max: usize) -> Cleaned {
        let mut keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
        keyspace.clean(n_max).unwrap()
    }

    /// Cleans in rounds of so many entries until nothing more is due. Answers how many it took.
    fn clean_all(world: &mut World, n_max: usize) -> usize {
        let is_done = |world: &mut World| {
            let before = world.entries.len();
            let cleaned = clean(world, n_max);
            let n = before - world.entries.len();
            assert!(n <= n_max + 2, "{n} entries at once");
            cleaned.is_done
        };
        1 + (0..1000).take_while(|_| !is_done(world)).count()
    }

    #[test]
    fn what_has_expired_is_removed_and_what_has_not_stays() {
        let mut world = World::default();
        world.check(&[
            ("SET a 1 PX 10", "+OK"),
            ("SET b 1 PX 20", "+OK"),
            ("RPUSH c x y z", ":3"),
            ("PEXPIRE c 10", ":1"),
            ("SET d 1", "+OK"),
            ("HSET h f 1 g 2", ":2"),
            ("HPEXPIRE h 15 FIELDS 1 f", "[:1]"),
        ]);
        let before = world.entries.clone();
        let cleaned = clean(&mut world, 100);
        assert_eq!(cleaned.next, Some(10));
        assert_eq!((cleaned.n, cleaned.is_done), (0, true));
        assert_eq!(world.entries, before);
        world.moment.now = 15;
        world.check(&[("DBSIZE", ":5")]);
        let cleaned = clean(&mut world, 100);
        assert_eq!((cleaned.next, cleaned.is_done), (Some(20), true));
        world.check(&[
            ("DBSIZE", ":3"),
            ("HGETALL h", "%[g=2]"),
            ("DEL b d h", ":3"),
        ]);
        let cleaned = clean(&mut world, 100);
        assert_eq!((cleaned.next, cleaned.is_done), (None, true));
        assert_eq!(world.entries.len(), 1, "the root");
    }

    #[test]
    fn garbage_goes_in_rounds() {
        let mut world = World::default();
        let many: Vec<String> = (0..95).map(|n| n.to_string()).collect();
        world.run(&format!("SADD a {}", many.join(" ")));
        world.check(&[
            ("DEL a", ":1"),
            ("SETBIT b 4294967295 1", ":0"),
            ("SET b 1", "+OK"),
        ]);
        assert_eq!(clean_all(&mut world, 10), 10, "98 entries");
        assert_eq!(world.left().len(), 1);
        assert_eq!(world.entries.len(), 2, "the root and a key");
        world.run(&format!("SADD a {}", many.join(" ")));
        world.check(&[
            ("SET c 1 EX 5", "+OK"),
            ("FLUSHALL", "+OK"),
            ("SET b 2", "+OK"),
        ]);
        clean_all(&mut world, 7);
        assert_eq!(world.entries.len(), 2, "the root and a key");
        world.check(&[("GET b", "2"), ("DBSIZE", ":1")]);
    }

    #[test]
    fn an_expiry_that_no_longer_holds_removes_nothing() {
        let mut world = World::default();
        world.check(&[("SET a 1 PX 10", "+OK"), ("SET b 1 PX 10", "+OK")]);
        // What a key expired at is gone with it; these two are put back as if they were not.
        let stale = [layout::expiry(0, 5, 0, b"a"), layout::expiry(0, 5, 1, b"a")];
        for name in stale.iter().cloned() {
            world.entries.insert(name, Bytes::new());
        }
        world.moment.now = 9;
        let cleaned = clean(&mut world, 100);
        assert_eq!((cleaned.n, cleaned.next), (2, Some(10)));
        world.check(&[("GET a", "1")]);
        world.moment.now = 10;
        assert_eq!(clean(&mut world, 1).next, Some(10), "one of two");
        assert_eq!(clean(&mut world, 1).next, None);
        clean_all(&mut world, 10);
        assert_eq!(world.entries.len(), 1, "the root");
    }
}
