//! Random sequences of commands against a real Redis and Trefoil, in both versions of the protocol:
//! every reply is the same, and in the end the same is stored. On the way Trefoil is killed and
//! started again.
//!
//! `commands.txt` says which commands there are and how to make up their arguments. A sequence that
//! fails is made as short as possible and printed. The sequences are always the same, so that who
//! changes something else is not told of what was always different; `TREFOIL_TEST_SEED=7` makes
//! others, and `TREFOIL_TEST_SECONDS=600` searches longer.

mod compare;
mod driver;
mod grammar;
mod pools;
mod random;
mod sequence;
mod walk;
mod world;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::cases;
use super::redis::Redis;
use crate::harness::{Resp, Value};
use world::World;

/// How long the search takes for each version of the protocol.
const SECONDS: u64 = 12;
/// The longest sequence.
const LENGTH: usize = 120;

fn setting(name: &str) -> Option<u64> {
    let given = std::env::var(name).ok();
    given.and_then(|number| number.parse().ok())
}

fn random_numbers() -> TestRng {
    let seed = setting("TREFOIL_TEST_SEED").unwrap_or_default();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

fn search(is_resp3: bool) {
    let Some(world) = World::new() else {
        return;
    };
    let world = RefCell::new(world);
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 4_000,
        max_shrink_time: 60_000,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, random_numbers());
    let sequences = sequence::sequence(LENGTH);
    let seconds = setting("TREFOIL_TEST_SECONDS").unwrap_or(SECONDS);
    let (started, mut n_sequences) = (Instant::now(), 0);
    while started.elapsed() < Duration::from_secs(seconds) {
        let tree = sequences.new_tree(&mut runner).unwrap();
        n_sequences += 1;
        let run = |steps: Vec<_>| driver::run(&mut world.borrow_mut(), is_resp3, &steps);
        if let Err(failure) = runner.run_one(tree, run) {
            panic!("{failure}");
        }
    }
    eprintln!("{n_sequences} sequences");
}

#[test]
fn every_reply_is_that_of_redis_in_resp2() {
    search(false);
}

#[test]
fn every_reply_is_that_of_redis_in_resp3() {
    search(true);
}

/// A command that Redis knows is in the table; any other has a case.
#[test]
fn no_command_is_forgotten() {
    let Some(redis) = Redis::start() else {
        return;
    };
    let mut client = Resp::connect(redis.port).unwrap();
    let mut forgotten = Vec::new();
    for spec in trefoil::Options::default().commands.iter() {
        let name = spec.name.to_ascii_uppercase();
        let described = client.call(&["COMMAND", "INFO", &name]);
        let is_known = matches!(described.elements(), Some([Value::Array(_)]));
        let is_tested = match is_known {
            true => grammar::names().any(|compared| compared == name),
            false => cases::have(&name),
        };
        if !is_tested {
            forgotten.push(name);
        }
    }
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

/// So many random commands that fill all kinds of keys, for tests of other things.
pub(super) fn random_commands(n: usize) -> Vec<Vec<Vec<u8>>> {
    const LEFT_OUT: [&[u8]; 4] = [b"FLUSHALL", b"FLUSHDB", b"MULTI", b"WATCH"];
    let mut runner = TestRunner::default();
    let command = grammar::command();
    let words = std::iter::repeat_with(|| command.new_tree(&mut runner).unwrap().current().words);
    words
        .filter(|words| !LEFT_OUT.contains(&&*words[0]))
        .take(n)
        .collect()
}
