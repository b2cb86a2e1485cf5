//! How many keys there are, how many of them expire and when: told without looking at all of them.

use trefoil_core::Direction;

use crate::error::{CommandError, Result};
use crate::keyspace::{Keyspace, damaged};
use crate::layout;
use crate::meta::Meta;

/// How many entries are looked at. Where fewer keys expire, the result is exact; else it is what a
/// sample of the keys says, as in Redis.
const LOOKED_AT_MAX: usize = 1_000;

/// What is known of all keys together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Survey {
    /// How many there are, expired ones that are still to be cleaned included.
    pub keys: u64,
    /// How many of them expire.
    pub expiring: u64,
    /// How long these have left on average, in milliseconds.
    pub mean_ttl: u64,
}

/// How long some keys have left.
#[derive(Debug, Default)]
struct Left {
    n: u64,
    milliseconds: u64,
}

impl Left {
    fn add(&mut self, expires: u64, now: u64) {
        self.n += 1;
        let left = expires.saturating_sub(now);
        self.milliseconds = self.milliseconds.saturating_add(left);
    }

    fn mean(&self) -> u64 {
        self.milliseconds.checked_div(self.n).unwrap_or(0)
    }
}

impl Keyspace<'_> {
    /// Returns what is known of all keys together.
    pub fn survey(&mut self) -> trefoil_core::Result<Survey> {
        let left = self.all_left().and_then(|left| match left {
            Some(left) => Ok((left.n, left.mean())),
            None => self.sample_left(),
        });
        let (expiring, mean_ttl) = left.map_err(CommandError::into_error)?;
        Ok(Survey {
            keys: self.n_keys(),
            expiring,
            mean_ttl,
        })
    }

    /// Returns what is left to all keys that expire; `None` if those are many.
    fn all_left(&self) -> Result<Option<Left>> {
        let mut left = Left::default();
        for (n, expiry) in self.expiries(&[]).enumerate() {
            if n == LOOKED_AT_MAX {
                return Ok(None);
            }
            let expiry = expiry?;
            if expiry.what == layout::KEY_EXPIRES {
                left.add(expiry.time, self.now());
            }
        }
        Ok(Some(left))
    }

    /// Returns how many keys expire, and what is left to them, by a sample of all keys. They lie in
    /// the order of a hash, so that those after a random place are a fair choice.
    fn sample_left(&mut self) -> Result<(u64, u64)> {
        let begin = self.random() as u32;
        let prefix = layout::key_prefix(self.root.epoch);
        let (place, end) = (
            layout::key_place(self.root.epoch, begin),
            layout::after_prefix(&prefix),
        );
        let after = self.space.scan(&place, &end, Direction::Forwards);
        let before = self.space.scan(&prefix, &place, Direction::Forwards);
        let (mut left, mut n_seen) = (Left::default(), 0);
        for entry in after.chain(before).take(LOOKED_AT_MAX) {
            let meta = Meta::decode(entry?.1).ok_or_else(|| damaged("a key"))?;
            n_seen += 1;
            if let Some(expires) = meta.expires {
                left.add(expires, self.now());
            }
        }
        let keys = u128::from(self.n_keys()) * u128::from(left.n);
        let expiring = keys.checked_div(n_seen).unwrap_or(0);
        let expiring = u64::try_from(expiring).unwrap_or(u64::MAX);
        Ok((expiring, left.mean()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    fn survey(world: &mut World) -> Survey {
        let mut keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
        keyspace.survey().unwrap()
    }

    #[test]
    fn few_keys_that_expire_are_counted_and_many_are_sampled() {
        let mut world = World::default();
        assert_eq!(survey(&mut world), Survey::default());
        for line in [
            "SET a 1",
            "SET b 1 PX 3000",
            "HSET h f 1",
            "SET c 1 PX 1000",
        ] {
            world.run(line);
        }
        let few = survey(&mut world);
        assert_eq!((few.keys, few.expiring, few.mean_ttl), (4, 2, 2_000));
        for n in 0..LOOKED_AT_MAX {
            world.run(&format!("SET lasting{n} 1"));
            world.run(&format!("SET expiring{n} 1 PX 5000"));
        }
        let many = survey(&mut world);
        assert_eq!(many.keys, 4 + 2 * LOOKED_AT_MAX as u64);
        assert!((800..1_200).contains(&many.expiring), "{many:?}");
        assert!((4_000..=5_000).contains(&many.mean_ttl), "{many:?}");
    }
}
