//! Three nodes on one S3 service, under load over all three protocols by unmodified clients, while
//! nodes and the store are killed, paused, cut off, and have wrong clocks: nothing acknowledged is
//! lost, nothing is there twice, positions are dense, no read is stale, subscriptions have no gap.
//!
//! `TREFOIL_SOAK_ROUNDS` sets how long it runs; `cargo xtask soak cluster` runs 50 rounds.
//! `TREFOIL_TEST_SEED` repeats the faults of a run.

mod clock;
mod faults;
mod load;
mod nodes;
mod proxy;

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::seeded;
use crate::python;
use faults::{AT_ONCE_MAX, Deck};
use load::Load;
use nodes::Nodes;

/// How many rounds there are within the whole test suite. They have as many faults as there can be at
/// once, so that every kind comes up.
const ROUNDS: usize = 2;
/// The most faults in a round of a longer run: more at once hide what one of them does.
const AT_ONCE: usize = 2;

const NAMESPACES: usize = 4;

/// After so long every node knows a new namespace.
const KNOWN: Duration = Duration::from_secs(3);

#[test]
fn faults() {
    if !python::has("umadb, redis") {
        return;
    }
    let rounds = std::env::var("TREFOIL_SOAK_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().unwrap());
    let most = if rounds <= ROUNDS {
        AT_ONCE_MAX
    } else {
        AT_ONCE
    };
    let mut deck = Deck::new(seeded());
    let Some(mut nodes) = Nodes::start() else {
        return;
    };
    let names = (0..NAMESPACES).map(|number| format!("soak-{number}"));
    let namespaces: Vec<(String, String)> = names
        .map(|name| (name.clone(), nodes.create_namespace(&name)))
        .collect();
    thread::sleep(KNOWN);
    let mut load = Load::start(&nodes.ports_file(), &nodes.authority(), &namespaces);
    println!("begin: {}", load.settle());
    for round in 1..=rounds {
        let started = Instant::now();
        let faults = deck.deal(most);
        println!("round {round}: {faults:?}");
        faults::inflict(&mut nodes, &faults);
        let settled = load.settle();
        let seconds = started.elapsed().as_secs_f64();
        println!("round {round}: {settled}, {seconds:.1} s in all");
        nodes.check_logs();
    }
    println!("{}", load.finish());
    nodes.verify();
}
