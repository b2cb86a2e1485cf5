//! Removing keys and fields that have expired, and running timers that are due.
//!
//! It is done a part at a time. What was removed may still have to be passed by a walk, so each part
//! says where the next one begins.

use bytes::Bytes;
use trefoil_core::Direction;

use crate::error::{CommandError, Result};
use crate::keyspace::{Keyspace, damaged};
use crate::layout;

/// An entry that says that something expires.
#[derive(Debug)]
pub(crate) struct ExpiryEntry {
    pub(crate) name: Bytes,
    /// Milliseconds since 1970.
    pub(crate) time: u64,
    /// A key, fields of it, or a kind of timer.
    pub(crate) what: u8,
    pub(crate) key: Bytes,
}

/// A place among what expires, in the order of time. The default is the first one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ExpiryPlace {
    /// Milliseconds since 1970.
    time: u64,
    /// The entry there; empty: the first one of this time.
    name: Bytes,
}

impl ExpiryPlace {
    /// Returns where the first of what expires at this time is.
    pub fn at(time: u64) -> Self {
        let name = Bytes::new();
        Self { time, name }
    }

    /// After all that expires.
    pub fn end() -> Self {
        Self::at(u64::MAX)
    }
}

/// What a round of removing what has expired did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    /// About how many entries were removed.
    pub n: usize,
    /// Whether nothing more has expired.
    pub is_done: bool,
    /// When something expires next, in milliseconds since 1970.
    pub next: Option<u64>,
    /// Where that is: nothing expires before it.
    pub place: ExpiryPlace,
}

impl Keyspace<'_> {
    /// Removes what has expired, up to about `n_max` entries of it. Nothing that expires is before
    /// `from`.
    pub fn expire(&mut self, from: &ExpiryPlace, n_max: usize) -> trefoil_core::Result<Expired> {
        self.expire_some(from, n_max)
            .map_err(CommandError::into_error)
    }

    fn expire_some(&mut self, from: &ExpiryPlace, n_max: usize) -> Result<Expired> {
        let first = layout::expiry(self.root.epoch, from.time, 0, b"");
        let mut from = first.max(from.name.clone());
        let mut n = 0;
        let next = loop {
            let Some(expiry) = self.expiries(&from).next().transpose()? else {
                break None;
            };
            if n >= n_max || expiry.time > self.now() {
                break Some(expiry);
            }
            from.clone_from(&expiry.name);
            match self.end(expiry, n_max - n)? {
                Some(n_changed) => n += n_changed.max(1),
                None => {
                    n += 1;
                    from = layout::after(&from);
                }
            }
        };
        let place = next.as_ref().map(|next| ExpiryPlace {
            time: next.time,
            name: next.name.clone(),
        });
        let next = next.map(|next| next.time);
        Ok(Expired {
            n,
            is_done: next.is_none_or(|next| next > self.now()),
            next,
            place: place.unwrap_or_else(ExpiryPlace::end),
        })
    }

    /// Removes something that has expired, up to about `n_max` entries of it, or runs a timer.
    /// Returns how many entries changed; `None` if the timer is one of an application that is not
    /// here: it is left to that application.
    fn end(&mut self, expiry: ExpiryEntry, n_max: usize) -> Result<Option<usize>> {
        let n_removed = match expiry.what {
            layout::KEY_EXPIRES => self.remove_expired(&expiry.key)?,
            layout::FIELDS_EXPIRE => self.purge_fields(&expiry.key, n_max)?,
            kind => match self.timer(kind) {
                Some(timer) => self.run_timer(timer, &expiry)?,
                None => return Ok(None),
            },
        };
        if n_removed == 0 {
            // Nothing of the key expires then, whatever the entry says.
            self.set_entry(expiry.name, None)?;
        }
        Ok(Some(n_removed))
    }

    /// Returns what expires, in the order of time, from an entry on.
    pub(crate) fn expiries(&self, from: &[u8]) -> impl Iterator<Item = Result<ExpiryEntry>> + '_ {
        let epoch = self.root.epoch;
        let prefix = layout::expiry_prefix(epoch);
        let end = layout::after_prefix(&prefix);
        let from = from.max(&prefix);
        let entries = self.space.scan(from, &end, Direction::Forwards);
        entries.map(move |entry| {
            let (name, _) = entry?;
            let expiry = layout::read_expiry(epoch, &name);
            let (time, what, key) = expiry.ok_or_else(|| damaged("an expiry"))?;
            Ok(ExpiryEntry {
                name,
                time,
                what,
                key,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    fn expire(world: &mut World, from: &ExpiryPlace, n_max: usize) -> Expired {
        let mut keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
        keyspace.expire(from, n_max).unwrap()
    }

    fn expire_from_start(world: &mut World, n_max: usize) -> Expired {
        expire(world, &ExpiryPlace::default(), n_max)
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
        let expired = expire_from_start(&mut world, 100);
        assert_eq!(expired.next, Some(10));
        assert_eq!((expired.n, expired.is_done), (0, true));
        assert_eq!(world.entries, before);
        world.moment.now = 15;
        world.check(&[("DBSIZE", ":5")]);
        let expired = expire(&mut world, &expired.place, 100);
        assert_eq!((expired.next, expired.is_done), (Some(20), true));
        world.check(&[
            ("DBSIZE", ":3"),
            ("HGETALL h", "%[g=2]"),
            ("DEL b d h", ":3"),
        ]);
        let expired = expire(&mut world, &expired.place, 100);
        assert_eq!((expired.next, expired.is_done), (None, true));
        assert_eq!(expired.place, ExpiryPlace::end());
        world.clean();
        assert_eq!(world.entries.len(), 1, "the root");
    }

    #[test]
    fn a_round_goes_on_where_the_last_one_ended() {
        let mut world = World::default();
        for n in 0..95 {
            world.run(&format!("SET k{n} 1 PX {}", 10 + n % 3));
        }
        world.run("SET later 1 PX 100");
        world.moment.now = 50;
        let mut place = ExpiryPlace::default();
        for round in 1..=10 {
            let expired = expire(&mut world, &place, 10);
            assert!(place < expired.place, "{place:?} {:?}", expired.place);
            place = expired.place;
            let n_left = 96usize.saturating_sub(10 * round).max(1);
            world.check(&[("DBSIZE", &format!(":{n_left}"))]);
            assert_eq!(expired.is_done, round == 10);
        }
        // What is set to expire before that place is noted by its time.
        world.run("SET sooner 1 PX 1");
        world.moment.now = 51;
        assert_eq!(expire(&mut world, &place, 10).n, 0);
        let place = place.min(ExpiryPlace::at(51));
        assert_eq!(expire(&mut world, &place, 10).n, 1);
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
        let expired = expire_from_start(&mut world, 100);
        assert_eq!((expired.n, expired.next), (2, Some(10)));
        world.check(&[("GET a", "1")]);
        world.moment.now = 10;
        assert_eq!(
            expire_from_start(&mut world, 1).next,
            Some(10),
            "one of two"
        );
        assert_eq!(expire_from_start(&mut world, 1).next, None);
        world.clean();
        assert_eq!(world.entries.len(), 1, "the root");
    }
}
