//! Trees of blocks compared with the same in memory, across the borders of many blocks.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use trefoil_core::Direction;

use super::block::{self, LEAF};
use super::{BLOCKS, BlockTree, Sought};
use crate::keyspace::Keyspace;
use crate::named::AFTER_NAMED;
use crate::space::{Space, SpaceScan};
use crate::testing::{World, text};
use crate::{CommandMoment, MemorySpace};

const ID: u64 = 7;

fn tree(is_ordered: bool) -> BlockTree {
    BlockTree {
        id: ID,
        is_ordered,
        len: 0,
        last_number: 0,
    }
}

/// Random numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// Checks every block: sizes, counts, bounds, and that none is left over.
fn check(keyspace: &Keyspace<'_>, tree: &BlockTree) {
    let entries = keyspace.elements(ID, BLOCKS, None, Direction::Forwards);
    let n_entries = entries.count();
    if tree.len == 0 {
        assert_eq!(n_entries, 0);
        return;
    }
    let root = tree.root(keyspace).unwrap();
    let mut n_blocks = 1;
    let mut last = None;
    let n = check_block(keyspace, tree, &root, &mut n_blocks, &mut last);
    assert_eq!((n, n_blocks), (tree.len, n_entries));
}

fn check_block(
    keyspace: &Keyspace<'_>,
    tree: &BlockTree,
    bytes: &[u8],
    n_blocks: &mut usize,
    last: &mut Option<Vec<u8>>,
) -> u64 {
    assert!(!block::is_too_large(bytes).unwrap());
    let level = block::level(bytes).unwrap();
    if level == LEAF {
        for element in block::elements(bytes) {
            let element = element.unwrap().bytes.to_vec();
            assert!(!tree.is_ordered || last.as_ref().is_none_or(|last| *last < element));
            *last = Some(element);
        }
        return block::count(bytes).unwrap();
    }
    let mut n = 0;
    for (index, below) in block::below(bytes).enumerate() {
        let below = below.unwrap();
        if tree.is_ordered && index > 0 {
            assert!(last.as_deref().is_none_or(|last| last < below.bound));
        }
        let next = tree.block(keyspace, below.number).unwrap();
        assert_eq!(block::level(&next).unwrap() + 1, level);
        *n_blocks += 1;
        assert_eq!(
            check_block(keyspace, tree, &next, n_blocks, last),
            below.len
        );
        n += below.len;
    }
    n
}

fn all(keyspace: &Keyspace<'_>, tree: &BlockTree, direction: Direction) -> Vec<Bytes> {
    let walk = tree.walk(keyspace, 0..tree.len, direction);
    walk.map(Result::unwrap).collect()
}

#[test]
fn elements_without_order_are_like_a_vector() {
    let mut space = MemorySpace::default();
    let mut keyspace = Keyspace::new(&mut space, CommandMoment::default()).unwrap();
    let keyspace = &mut keyspace;
    let (mut tree, mut expected, mut random) = (tree(false), Vec::<Bytes>::new(), Random(1));
    for round in 0..4000 {
        let is_shrinking = round / 1000 % 2 == 1;
        let index = match random.below(4) {
            0 => 0,
            1 => tree.len,
            _ => random.below(tree.len + 1),
        };
        let end = (index + random.below(40)).min(tree.len);
        if random.below(3) == u64::from(is_shrinking) {
            let long = if random.below(50) == 0 { 5000 } else { 20 };
            let n_added = random.below(10);
            let added: Vec<Bytes> = (0..n_added)
                .map(|_| vec![b'a' + random.below(26) as u8; random.below(long) as usize].into())
                .collect();
            let path = tree.find(keyspace, Sought::Index(index)).unwrap();
            let elements = added.iter().map(AsRef::as_ref);
            tree.insert(keyspace, path, elements).unwrap();
            expected.splice(index as usize..index as usize, added);
        } else if random.below(3) == 0 && index < tree.len {
            tree.replace(keyspace, index, b"replaced").unwrap();
            expected[index as usize] = Bytes::from_static(b"replaced");
        } else if is_shrinking || random.below(2) == 0 {
            let every = 1 + random.below(3);
            let removed: Vec<u64> = (index..end).step_by(every as usize).collect();
            tree.remove(keyspace, removed.iter().copied()).unwrap();
            for index in removed.into_iter().rev() {
                expected.remove(index as usize);
            }
        }
        assert_eq!(tree.len, expected.len() as u64);
        if round % 20 == 0 {
            check(keyspace, &tree);
            assert_eq!(all(keyspace, &tree, Direction::Forwards), expected);
            let backwards = all(keyspace, &tree, Direction::Backwards);
            assert!(backwards.iter().rev().eq(&expected));
        }
        if index < tree.len {
            let found = tree.get(keyspace, index).unwrap();
            assert_eq!(found, expected[index as usize]);
        }
    }
    let len = tree.len;
    tree.remove(keyspace, 0..len).unwrap();
    check(keyspace, &tree);
}

#[test]
fn elements_in_order_are_like_a_sorted_set() {
    let mut space = MemorySpace::default();
    let mut keyspace = Keyspace::new(&mut space, CommandMoment::default()).unwrap();
    let keyspace = &mut keyspace;
    let (mut tree, mut expected, mut random) = (tree(true), BTreeSet::<Bytes>::new(), Random(2));
    for round in 0..30_000 {
        let is_shrinking = round / 10_000 == 1;
        let element = match random.below(3) {
            // One after the other, close together, and anywhere.
            0 => format!("at {round:08}"),
            1 => format!("name {}", "x".repeat(random.below(60) as usize)),
            _ => format!("{:05}", random.below(20_000)),
        };
        let element = Bytes::from(element);
        let path = tree.find(keyspace, Sought::Element(&element)).unwrap();
        let is_there = path.element.as_ref() == Some(&element);
        assert_eq!(is_there, expected.contains(&element));
        if is_there {
            tree.remove(keyspace, std::iter::once(path.index)).unwrap();
            expected.remove(&element);
        } else if !is_shrinking {
            let one = std::iter::once(element.as_ref());
            tree.insert(keyspace, path, one).unwrap();
            expected.insert(element.clone());
        }
        if is_shrinking && tree.len > 0 {
            let index = random.below(tree.len);
            let removed = tree.get(keyspace, index).unwrap();
            tree.remove(keyspace, std::iter::once(index)).unwrap();
            assert!(expected.remove(&removed));
        }
        if round % 500 == 0 {
            check(keyspace, &tree);
            let rank = tree.rank(keyspace, &element).unwrap();
            assert_eq!(rank, expected.range(..element).count() as u64);
            let elements = all(keyspace, &tree, Direction::Forwards);
            assert!(elements.iter().eq(&expected));
        }
    }
}

#[test]
fn blocks_are_full_if_elements_come_one_after_the_other() {
    for is_first in [true, false] {
        let mut space = MemorySpace::default();
        let mut keyspace = Keyspace::new(&mut space, CommandMoment::default()).unwrap();
        let mut tree = tree(false);
        for _ in 0..10_000 {
            let index = if is_first { 0 } else { tree.len };
            let path = tree.find(&keyspace, Sought::Index(index)).unwrap();
            let element = std::iter::once(&b"ten bytes!"[..]);
            tree.insert(&mut keyspace, path, element).unwrap();
        }
        check(&keyspace, &tree);
        let blocks = keyspace.elements(ID, BLOCKS, None, Direction::Forwards);
        let n_bytes = 10_000 * 11;
        assert!(blocks.count() < n_bytes / block::LEAF_BYTES_MAX + 10);
    }
}

#[test]
fn many_elements_at_once_make_as_many_levels_as_they_need() {
    let mut space = MemorySpace::default();
    let mut keyspace = Keyspace::new(&mut space, CommandMoment::default()).unwrap();
    let mut tree = tree(false);
    let elements = vec![Bytes::from(vec![b'e'; 40]); 20_000];
    for _ in 0..3 {
        let path = tree.find(&keyspace, Sought::Index(tree.len / 2)).unwrap();
        let elements = elements.iter().map(AsRef::as_ref);
        tree.insert(&mut keyspace, path, elements).unwrap();
        check(&keyspace, &tree);
    }
}

#[test]
fn what_is_cut_is_damaged() {
    let mut space = MemorySpace::default();
    let mut keyspace = Keyspace::new(&mut space, CommandMoment::default()).unwrap();
    let mut tree = tree(true);
    for number in 0..1000 {
        let element = format!("{number:06}");
        let path = tree
            .find(&keyspace, Sought::Element(element.as_bytes()))
            .unwrap();
        let element = std::iter::once(element.as_bytes());
        tree.insert(&mut keyspace, path, element).unwrap();
    }
    let blocks = keyspace.elements(ID, BLOCKS, None, Direction::Forwards);
    let blocks: Vec<_> = blocks.map(Result::unwrap).collect();
    for (place, bytes) in blocks {
        let cut = bytes.slice(..bytes.len() - 1);
        for damaged in [None, Some(cut)] {
            keyspace.set_element(ID, &place, damaged).unwrap();
            assert!(
                tree.walk(&keyspace, 0..tree.len, Direction::Forwards)
                    .any(|one| one.is_err())
            );
        }
        keyspace.set_element(ID, &place, Some(bytes)).unwrap();
    }
}

/// Entries that count how many are read and changed.
#[derive(Default)]
struct Counting {
    entries: BTreeMap<Bytes, Bytes>,
    n_read: Cell<usize>,
    n_set: usize,
}

impl Space for Counting {
    fn get(&self, key: &[u8]) -> trefoil_core::Result<Option<Bytes>> {
        self.n_read.set(self.n_read.get() + 1);
        Space::get(&self.entries, key)
    }

    fn set(&mut self, key: Bytes, value: Option<Bytes>) -> trefoil_core::Result<()> {
        self.n_set += 1;
        self.entries.set(key, value)
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> SpaceScan<'_> {
        let entries = self.entries.scan(from, to, direction);
        Box::new(entries.inspect(|_| self.n_read.set(self.n_read.get() + 1)))
    }

    fn touch(&mut self, _: &Bytes) {}

    fn touch_all(&mut self) {}

    fn due(&mut self, _: u64) {}

    fn garbage(&mut self, _: &Bytes) {}
}

fn run(space: &mut Counting, line: &str) -> (String, usize, usize) {
    let words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
    let call = crate::Call::new(words.collect()).unwrap().unwrap();
    (space.n_set, space.n_read) = (0, Cell::new(0));
    let mut keyspace = Keyspace::new(space, CommandMoment::default()).unwrap();
    let reply = call.run(&mut keyspace).unwrap();
    (text(&reply), space.n_read.get(), space.n_set)
}

#[test]
fn commands_touch_few_entries_of_large_collections() {
    const N: usize = 128_000;
    let mut space = Counting::default();
    // Each thousand members have one score, and in another sorted set all of them.
    let (mut sets, mut weights) = (String::new(), String::new());
    for part in 0..N / 1000 {
        let numbers = || part * 1000..(part + 1) * 1000;
        let members: Vec<String> = numbers().map(|n| format!("m{n:06}")).collect();
        run(&mut space, &format!("SADD s{part} {}", members.join(" ")));
        let elements: Vec<String> = numbers().map(|n| format!("e{n}")).collect();
        run(&mut space, &format!("RPUSH l {}", elements.join(" ")));
        sets += &format!(" s{part}");
        weights += &format!(" {part}");
    }
    let n_sets = N / 1000;
    run(
        &mut space,
        &format!("ZUNIONSTORE z {n_sets}{sets} WEIGHTS{weights}"),
    );
    run(&mut space, &format!("ZUNIONSTORE same {n_sets}{sets}"));
    // The line, its reply, how many entries it reads and how many it changes at most.
    for (line, reply, read_max, set_max) in [
        ("ZRANK z m123456", ":123456", 8, 0),
        ("ZREVRANK z m123456", ":4543", 8, 0),
        ("ZCOUNT z 1 100", ":100000", 10, 0),
        ("ZCOUNT z (1 inf", ":126000", 10, 0),
        ("ZLEXCOUNT same [m001000 (m101000", ":100000", 16, 0),
        ("ZRANGE z 100000 100001", "[m100000 m100001]", 8, 0),
        ("ZREVRANGE z 50000 50001", "[m077999 m077998]", 8, 0),
        (
            "ZRANGEBYSCORE z 5 inf LIMIT 100000 2",
            "[m105000 m105001]",
            14,
            0,
        ),
        (
            "ZREVRANGEBYSCORE z inf 5 LIMIT 100000 1",
            "[m027999]",
            14,
            0,
        ),
        ("ZADD z 77.5 new", ":1", 16, 10),
        ("ZINCRBY z 100 new", ",177.5", 24, 16),
        ("ZREM z new", ":1", 16, 8),
        ("ZPOPMIN z", "[m000000 ,0]", 24, 8),
        ("ZREMRANGEBYRANK z 70000 70002", ":3", 36, 14),
        ("LINDEX l 123456", "e123456", 6, 0),
        ("LRANGE l 123456 123457", "[e123456 e123457]", 6, 0),
        ("LSET l 123456 other", "+OK", 10, 4),
        ("LPUSH l first", ":128001", 10, 8),
        ("RPUSH l last", ":128002", 10, 8),
        ("LPOP l", "first", 14, 8),
        ("RPOP l", "last", 14, 8),
        ("LINSERT l BEFORE e200 here", ":128001", 20, 8),
        ("LREM l 1 here", ":1", 20, 8),
        ("LREM l -1 e127000", ":1", 30, 8),
        ("LTRIM l 0 -2", "+OK", 12, 6),
    ] {
        let (found, n_read, n_set) = run(&mut space, line);
        assert_eq!(found, reply, "{line}");
        assert!(n_read <= read_max, "{line}: {n_read} entries read");
        assert!(n_set <= set_max, "{line}: {n_set} entries changed");
    }
    // What is found by looking at every element passes blocks, not elements.
    let (found, n_read, _) = run(&mut space, "LPOS l e100000");
    assert_eq!(found, ":100000");
    assert!(n_read < N / 100, "{n_read}");
}

/// Writes a list and a sorted set as version 0.1.0 wrote them at first.
fn write_singles(world: &mut World, n: u64) {
    use crate::layout;
    use bytes::BufMut;
    let begin: i64 = -3;
    let mut put = |name: Bytes, value: Bytes| world.entries.insert(name, value);
    for index in 0..n {
        let number = (begin + index as i64) ^ i64::MIN;
        let place = [AFTER_NAMED, &number.to_be_bytes()].concat();
        put(
            layout::element(0, 1, &place),
            Bytes::from(format!("e{index}")),
        );
        let member = format!("m{index:05}");
        let score = (index / 2) as f64;
        let order = score.to_bits() | 1 << 63;
        let place = [AFTER_NAMED, &order.to_be_bytes(), member.as_bytes()].concat();
        put(layout::element(0, 2, &place), Bytes::new());
        let name = crate::named::place(member.as_bytes());
        put(
            layout::element(0, 2, &name),
            Bytes::copy_from_slice(&score.to_be_bytes()),
        );
    }
    for (key, kind, id, extra) in [(&b"l"[..], 3, 1, begin), (b"z", 5, 2, 0)] {
        let mut meta = vec![kind, id];
        trefoil_core::put_varint(&mut meta, n);
        meta.put_i64(extra);
        put(layout::key(0, key), meta.into());
    }
    // No epoch, two keys, two collections, no timer.
    put(
        Bytes::from_static(layout::ROOT),
        Bytes::from_static(&[0, 2, 2, 0]),
    );
}

#[test]
fn what_has_an_entry_for_each_element_is_read_and_moves_into_blocks() {
    for n in [3, 255, 256, 257, 1000] {
        let mut world = World::default();
        write_singles(&mut world, n);
        let mut list: Vec<String> = (0..n).map(|index| format!("e{index}")).collect();
        let mut set: BTreeMap<String, u64> = (0..n)
            .map(|index| (format!("m{index:05}"), index / 2))
            .collect();
        let before = world.entries.clone();
        for round in 0..8 {
            compare(&mut world, &list, &set);
            if round == 0 {
                assert_eq!(world.entries, before, "reading changes nothing");
            }
            change(&mut world, &mut list, &mut set, round);
        }
        compare(&mut world, &list, &set);
        let singles = |entries: &MemorySpace, id| {
            let from = crate::layout::element(0, id, AFTER_NAMED);
            let to = crate::layout::element(0, id, BLOCKS);
            entries.range(from..to).count()
        };
        assert_eq!(
            (singles(&world.entries, 1), singles(&world.entries, 2)),
            (0, 0)
        );
        world.check(&[("DEL l z", ":2")]);
        assert!(world.left().is_empty());
    }
}

/// Compares both ends, the middle and all of the list and the sorted set.
fn compare(world: &mut World, list: &[String], set: &BTreeMap<String, u64>) {
    let mut order: Vec<(u64, &String)> = set.iter().map(|(name, score)| (*score, name)).collect();
    order.sort();
    let names: Vec<&str> = order.iter().map(|(_, name)| name.as_str()).collect();
    world.check(&[
        ("LRANGE l 0 -1", &format!("[{}]", list.join(" "))),
        ("LLEN l", &format!(":{}", list.len())),
        ("ZRANGE z 0 -1", &format!("[{}]", names.join(" "))),
        ("ZCARD z", &format!(":{}", names.len())),
    ]);
    for index in [0, list.len() / 3, list.len() - 1] {
        world.check(&[
            (&format!("LINDEX l {index}"), &list[index]),
            (
                &format!("LPOS l {} RANK -1", list[index]),
                &format!(":{index}"),
            ),
        ]);
    }
    for rank in [0, names.len() / 3, names.len() / 2, names.len() - 1] {
        let (score, name) = order[rank];
        let n_below = order.iter().filter(|(other, _)| *other < score).count();
        let n_last = names.len() - 1 - rank;
        world.check(&[
            (&format!("ZRANK z {name}"), &format!(":{rank}")),
            (&format!("ZCOUNT z -inf ({score}"), &format!(":{n_below}")),
            (&format!("ZRANGE z {rank} {rank}"), &format!("[{name}]")),
            (
                &format!("ZREVRANGE z {n_last} {n_last}"),
                &format!("[{name}]"),
            ),
            (
                &format!("ZRANGEBYSCORE z {score} inf LIMIT {} 1", rank - n_below),
                &format!("[{name}]"),
            ),
        ]);
    }
}

/// Changes both in the middle and at the ends.
fn change(world: &mut World, list: &mut Vec<String>, set: &mut BTreeMap<String, u64>, round: u64) {
    let at = list.len() * round as usize / 8;
    let pivot = list[at].clone();
    world.run(&format!("LINSERT l BEFORE {pivot} i{round}"));
    list.insert(at, format!("i{round}"));
    world.run("LINSERT l BEFORE nothing i");
    world.run(&format!("LPUSH l p{round}"));
    list.insert(0, format!("p{round}"));
    world.run(&format!("RPUSH l q{round} r{round}"));
    list.extend([format!("q{round}"), format!("r{round}")]);
    let removed = list.remove(list.len() * 2 / 3);
    world.run(&format!("LREM l 1 {removed}"));
    world.run(&format!("LSET l -2 s{round}"));
    let last = list.len() - 2;
    list[last] = format!("s{round}");
    world.run("RPOP l");
    list.pop();
    let score = round * 40;
    world.run(&format!("ZADD z {score} n{round} {score} m00001"));
    set.insert(format!("n{round}"), score);
    set.insert("m00001".to_owned(), score);
    let name = set.keys().nth(set.len() / 2).unwrap().clone();
    world.run(&format!("ZREM z {name} nobody"));
    set.remove(&name);
    world.run("ZREMRANGEBYRANK z 1 1");
    let mut order: Vec<(u64, String)> = set
        .iter()
        .map(|(name, score)| (*score, name.clone()))
        .collect();
    order.sort();
    set.remove(&order[1].1);
}
