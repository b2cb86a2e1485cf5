//! What a store is asked for is counted, and can be made less.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bytes::Bytes;
use trefoil_kv::contract::{Kv, KvBatch, KvEngine as _};
use trefoil_slatedb::{SlateEngine, StoreOptions, StoreUrl};

fn change(number: usize) -> KvBatch {
    let key = Bytes::from(format!("k{number:06}"));
    KvBatch {
        changes: vec![(key, Some(Bytes::from(vec![b'v'; 100])))],
    }
}

/// Commits one after the other, each as soon as it may be, without waiting for the one before.
fn commit_for(kv: &dyn Kv, time: Duration) -> usize {
    let (sender, receiver) = channel();
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < time {
        let sender = sender.clone();
        kv.commit(
            change(count),
            Box::new(move |done| sender.send(done).unwrap()),
        );
        count += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    for _ in 0..count {
        receiver
            .recv_timeout(Duration::from_secs(30))
            .unwrap()
            .unwrap();
    }
    count
}

#[test]
fn writes_are_spaced() {
    let options = StoreOptions {
        write_spacing: Duration::from_millis(250),
        ..StoreOptions::default()
    };
    let engine = SlateEngine::connect(&StoreUrl::Memory, options).unwrap();
    let kv = engine.open("spaced", 1).unwrap();
    let before = engine.request_counts();
    let count = commit_for(&*kv, Duration::from_millis(1000));
    let after = engine.request_counts();
    let puts = after.puts - before.puts;
    assert!(count > 50, "{count} commits");
    assert!((2..=6).contains(&puts), "{puts} PUTs for {count} commits");
    assert!(after.bytes_written - before.bytes_written > 100 * count as u64);
    // A moment does not wait for its turn.
    kv.commit(change(0), Box::new(|_| {}));
    let started = Instant::now();
    kv.commit(change(1), Box::new(|_| {}));
    kv.moment().unwrap();
    assert!(started.elapsed() < Duration::from_millis(200));
    kv.close().unwrap();
}

#[test]
fn a_store_that_is_not_used_costs_little() {
    let engine = SlateEngine::connect(&StoreUrl::Memory, StoreOptions::default()).unwrap();
    let kv = engine.open("idle", 1).unwrap();
    kv.commit(change(0), Box::new(|_| {}));
    // What opening begins is done by then.
    std::thread::sleep(Duration::from_secs(2));
    let before = engine.request_counts();
    std::thread::sleep(Duration::from_secs(6));
    let after = engine.request_counts();
    assert_eq!(before, after);
    kv.close().unwrap();
    let closed = engine.request_counts();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(closed, engine.request_counts());
}
