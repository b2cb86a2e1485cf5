//! A server under mixed load over all three protocols, while namespaces are created, used and
//! deleted: its memory, descriptors and threads must reach a plateau.
//!
//! `TREFOIL_SOAK_SECONDS` sets how long it runs; `cargo xtask soak mixed` runs it for half an hour.

#[cfg(feature = "object-storage")]
mod cluster;
mod gauges;
mod load;
mod tenant;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::harness::Server;
use gauges::Gauges;

/// How long it runs within the whole test suite.
const SECONDS: u64 = 30;
/// The full form, and how many namespaces come and go in it.
const FULL_SECONDS: u64 = 1800;
const FULL_TENANTS: u64 = 500;
/// The fewest namespaces in a shorter one.
const TENANTS_MIN: u64 = 60;
/// How many of them are there at once.
const TENANTS_AT_ONCE: u64 = 10;
/// Fewer namespaces are open than there are, so that some are closed and opened again.
const OPEN_NAMESPACES_MAX: &str = "--open-namespaces-max=16";
/// So little that the caches are full soon, and the index and the state are moved to disk every few
/// seconds: what is being filled for the first time looks like a leak.
const CACHE_SIZE: &str = "--cache-size=8MiB";
const TAIL_EVENTS_MAX: &str = "--tail-events-max=4096";

#[test]
fn mixed() {
    let seconds = std::env::var("TREFOIL_SOAK_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().unwrap());
    let n_tenants = (FULL_TENANTS * seconds / FULL_SECONDS).max(TENANTS_MIN);
    let data = TempDir::new().unwrap();
    let settings = [
        OPEN_NAMESPACES_MAX,
        CACHE_SIZE,
        TAIL_EVENTS_MAX,
        "--log-level=warn",
    ];
    let server = Server::on(data.path(), &settings);
    let life = Duration::from_secs(seconds) * TENANTS_AT_ONCE as u32 / n_tenants as u32;
    let gauges = run(&server, Duration::from_secs(seconds), life, n_tenants);
    gauges.print();
    gauges.assert_plateau();
    let log = server.log();
    assert!(!log.contains("ERROR") && !log.contains("panicked"), "{log}");
    assert!(server.terminate().success());
}

/// Puts the server under load. Returns what was measured meanwhile.
fn run(server: &Server, duration: Duration, life: Duration, n_tenants: u64) -> Gauges {
    let next_tenant = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let mut gauges = Gauges::default();
    thread::scope(|scope| {
        let end_of_load = EndOfLoad(&is_over);
        let is_over = &is_over;
        scope.spawn(move || load::visit(server, is_over));
        for number in 0..load::CLIENTS {
            scope.spawn(move || load::run(server, number, is_over));
        }
        let lives = || {
            while next_tenant.fetch_add(1, Ordering::Relaxed) < n_tenants {
                tenant::live(server, life);
            }
        };
        let tenants: Vec<_> = (0..TENANTS_AT_ONCE).map(|_| scope.spawn(lives)).collect();
        let started = Instant::now();
        // What the last tenants take longer is no part of the plateau.
        while started.elapsed() < duration && tenants.iter().all(|tenant| !tenant.is_finished()) {
            gauges.sample(server, started.elapsed());
            thread::sleep(duration / gauges::SAMPLES);
        }
        for tenant in tenants {
            tenant.join().unwrap();
        }
        drop(end_of_load);
    });
    assert!(next_tenant.load(Ordering::Relaxed) >= n_tenants);
    gauges
}

/// Ends the load, also when the test fails.
struct EndOfLoad<'a>(&'a AtomicBool);

impl Drop for EndOfLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
