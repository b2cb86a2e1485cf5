//! Removing garbage: the entries of collections that were deleted or replaced, and of whole states.
//!
//! It is done a part at a time. What was removed may still have to be passed by a walk, so each part
//! says where the next one begins.

use bytes::Bytes;
use trefoil_core::{Direction, Result};

use crate::keyspace::Keyspace;
use crate::layout;

/// A place among the garbage. The default is the first one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GarbagePlace {
    /// No garbage is noted by an entry before this one.
    list: Bytes,
    /// An entry that notes garbage of which a part is removed, and where the rest of it begins.
    rest: Option<(Bytes, Bytes)>,
}

impl GarbagePlace {
    /// Returns where garbage is that is noted by the entry of this name.
    pub fn at(list: Bytes) -> Self {
        Self { list, rest: None }
    }

    /// After all garbage.
    pub fn end() -> Self {
        Self::at(Bytes::from_static(END))
    }

    /// Returns the place before which neither of the two has anything.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            list: self.list.min(other.list),
            rest: self.rest.or(other.rest),
        }
    }
}

/// What a round of removing garbage did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// How many entries were removed.
    pub n: usize,
    /// Whether there is no more garbage.
    pub is_done: bool,
    /// Where the next round begins.
    pub place: GarbagePlace,
}

/// How much a round removes at most.
#[derive(Debug, Clone, Copy)]
pub struct Portion {
    /// The number of entries.
    pub entries: usize,
    /// About how many bytes the entries have.
    pub bytes: usize,
}

impl Keyspace<'_> {
    /// Removes garbage, which begins at `from`.
    pub fn collect(&mut self, from: &GarbagePlace, portion: Portion) -> Result<Collected> {
        let mut left = portion;
        let mut place = from.clone();
        let is_done = loop {
            if left.entries == 0 || left.bytes == 0 {
                break false;
            }
            let list = place.list.clone();
            let list = list.max(Bytes::from_static(BEGIN));
            let noted = self.space.scan(&list, END, Direction::Forwards).next();
            let Some((noted, _)) = noted.transpose()? else {
                place = GarbagePlace::end();
                break true;
            };
            place.list.clone_from(&noted);
            let (names, is_all) = self.garbage_under(&noted, place.rest.take(), left)?;
            for (name, bytes) in names {
                left.entries = left.entries.saturating_sub(1);
                left.bytes = left.bytes.saturating_sub(bytes);
                place.rest = Some((noted.clone(), name.clone()));
                self.space.remove(name)?;
            }
            if is_all {
                place.rest = None;
                left.entries = left.entries.saturating_sub(1);
                self.space.remove(noted)?;
            }
        };
        Ok(Collected {
            n: portion.entries - left.entries,
            is_done,
            place,
        })
    }

    /// Names of garbage that an entry notes and their sizes, and whether that is all of it.
    fn garbage_under(
        &self,
        noted: &Bytes,
        rest: Option<(Bytes, Bytes)>,
        portion: Portion,
    ) -> Result<(Vec<(Bytes, usize)>, bool)> {
        let prefix = layout::read_garbage(noted);
        let end = layout::after_prefix(&prefix);
        let from = match rest {
            Some((begun, from)) if begun == *noted => from,
            _ => prefix,
        };
        let mut names = Vec::new();
        let mut bytes = 0;
        for entry in self.space.scan(&from, &end, Direction::Forwards) {
            if names.len() >= portion.entries || bytes >= portion.bytes {
                return Ok((names, false));
            }
            let (name, value) = entry?;
            let size = name.len() + value.len();
            bytes += size;
            names.push((name, size));
        }
        Ok((names, true))
    }
}

/// Where the names of garbage entries begin and end.
const BEGIN: &[u8] = &[layout::GARBAGE];
const END: &[u8] = &[layout::GARBAGE + 1];

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use super::*;
    use crate::testing::World;
    use crate::{CommandMoment, ExpiryPlace, Space, SpaceScan};

    /// Entries of which what was removed is still there and has to be passed, as in a tree that
    /// keeps changes until they are written. Counts what is passed.
    #[derive(Default)]
    struct Slow {
        entries: BTreeMap<Bytes, Option<Bytes>>,
        n_passed: Cell<usize>,
    }

    impl Space for Slow {
        fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
            Ok(self.entries.get(key).cloned().flatten())
        }

        fn set(&mut self, key: Bytes, value: Option<Bytes>) -> Result<()> {
            self.entries.insert(key, value);
            Ok(())
        }

        fn scan(&self, from: &[u8], to: &[u8], _: Direction) -> SpaceScan<'_> {
            let range = (Bound::Included(from), Bound::Excluded(to));
            let walk = self.entries.range::<[u8], _>(range);
            Box::new(walk.filter_map(|(key, value)| {
                self.n_passed.set(self.n_passed.get() + 1);
                Some(Ok((key.clone(), value.clone()?)))
            }))
        }

        fn touch(&mut self, _: &Bytes) {}

        fn touch_all(&mut self) {}

        fn due(&mut self, _: u64) {}

        fn garbage(&mut self, _: &Bytes) {}
    }

    fn slow(world: &World) -> Slow {
        let entries = world.entries.iter();
        let entries = entries.map(|(key, value)| (key.clone(), Some(value.clone())));
        Slow {
            entries: entries.collect(),
            ..Slow::default()
        }
    }

    fn left(slow: &Slow) -> usize {
        slow.entries.values().flatten().count()
    }

    fn portion(entries: usize) -> Portion {
        Portion {
            entries,
            bytes: usize::MAX,
        }
    }

    /// Collects in rounds of this many entries until nothing is left. Returns how many it took.
    fn collect_all(world: &mut World, entries: usize) -> usize {
        let mut place = GarbagePlace::default();
        for round in 1..1000 {
            let before = world.entries.len();
            let mut keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
            let collected = keyspace.collect(&place, portion(entries)).unwrap();
            assert_eq!(before - world.entries.len(), collected.n);
            assert!(collected.n <= entries);
            if collected.is_done {
                return round;
            }
            place = collected.place;
        }
        panic!("it never ends");
    }

    fn many(n: usize) -> String {
        let many: Vec<String> = (0..n).map(|n| n.to_string()).collect();
        many.join(" ")
    }

    #[test]
    fn garbage_goes_in_rounds() {
        let mut world = World::default();
        world.run(&format!("SADD a {}", many(95)));
        world.check(&[
            ("DEL a", ":1"),
            ("SETBIT b 4294967295 1", ":0"),
            ("SET b 1", "+OK"),
        ]);
        assert_eq!(collect_all(&mut world, 10), 10, "98 entries");
        assert_eq!(world.left().len(), 1);
        assert_eq!(world.entries.len(), 2, "the root and a key");
        world.run(&format!("SADD a {}", many(95)));
        world.check(&[
            ("SET c 1 EX 5", "+OK"),
            ("FLUSHALL", "+OK"),
            ("SET b 2", "+OK"),
        ]);
        collect_all(&mut world, 7);
        assert_eq!(world.entries.len(), 2, "the root and a key");
        world.check(&[("GET b", "2"), ("DBSIZE", ":1")]);
    }

    #[test]
    fn a_round_is_bounded_in_bytes_too() {
        let mut world = World::default();
        world.run(&format!("SET long {}", "x".repeat(100_000)));
        world.run("DEL long");
        let before = world.entries.len();
        let portion = Portion {
            entries: 1000,
            bytes: 10_000,
        };
        let mut keyspace = Keyspace::new(&mut world.entries, world.moment).unwrap();
        let collected = keyspace.collect(&GarbagePlace::default(), portion).unwrap();
        assert!(!collected.is_done);
        assert!((1..before - 2).contains(&collected.n), "{}", collected.n);
    }

    #[test]
    fn the_work_of_all_rounds_is_in_proportion_to_what_is_removed() {
        let mut world = World::default();
        world.run(&format!("SADD a {}", many(5_000)));
        for n in 0..1_000 {
            world.run(&format!("SADD small{n} a b"));
            world.run(&format!("SET k{n} 1 PX 10"));
        }
        world.run("DEL a");
        for n in 0..1_000 {
            world.run(&format!("DEL small{n}"));
        }
        let moment = CommandMoment {
            now: 20,
            ..world.moment
        };
        let mut slow = slow(&world);
        let n_entries = slow.entries.len();
        let mut garbage = GarbagePlace::default();
        let mut expiry = ExpiryPlace::default();
        loop {
            let mut keyspace = Keyspace::new(&mut slow, moment).unwrap();
            let expired = keyspace.expire(&expiry, 16).unwrap();
            let collected = keyspace.collect(&garbage, portion(16)).unwrap();
            if expired.is_done && collected.is_done {
                break;
            }
            (expiry, garbage) = (expired.place, collected.place);
        }
        assert_eq!(left(&slow), 1, "the root");
        let n_passed = slow.n_passed.get();
        assert!(n_passed < 5 * n_entries, "{n_passed} for {n_entries}");
    }
}
