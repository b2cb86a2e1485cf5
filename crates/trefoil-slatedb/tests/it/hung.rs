//! A service that does not answer: every call ends in time, and says what is known.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bytes::Bytes;
use trefoil_kv::contract::{KvBatch, KvEngine as _, KvError};
use trefoil_slatedb::{SlateEngine, StoreOptions, StoreUrl};

use crate::services::{BUCKET, Service};

fn set(key: &str) -> KvBatch {
    KvBatch {
        changes: vec![(Bytes::copy_from_slice(key.as_bytes()), Some(Bytes::new()))],
    }
}

#[test]
fn what_is_not_known_is_said() {
    let Some(service) = Service::seaweedfs() else {
        return;
    };
    let options = StoreOptions {
        variables: service.variables(),
        write_deadline: Duration::from_secs(2),
        read_deadline: Duration::from_secs(3),
        ..StoreOptions::default()
    };
    let url: StoreUrl = format!("s3://{BUCKET}/hung").parse().unwrap();
    let engine = SlateEngine::connect(&url, options).unwrap();
    let kv = engine.open("x", 1).unwrap();
    let (sender, done) = channel();
    let told = sender.clone();
    kv.commit(set("a"), Box::new(move |result| told.send(result).unwrap()));
    assert_eq!(done.recv().unwrap(), Ok(()));
    let version = engine.objects().create("o", Bytes::from("1")).unwrap();
    let version = version.unwrap();

    service.signal("STOP");
    let (lost_sender, lost) = channel();
    kv.on_lost(Box::new(move || lost_sender.send(()).unwrap()));
    let started = Instant::now();
    for key in ["b", "c"] {
        let told = sender.clone();
        kv.commit(set(key), Box::new(move |result| told.send(result).unwrap()));
    }
    let first = done.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(matches!(first, Err(KvError::Unknown(_))), "{first:?}");
    let second = done.recv_timeout(Duration::from_secs(30)).unwrap();
    let is_error = matches!(second, Err(KvError::Unknown(_) | KvError::Unavailable(_)));
    assert!(is_error, "{second:?}");
    lost.recv_timeout(Duration::from_secs(5)).unwrap();
    let read = kv.get(&[b"a"]);
    assert!(matches!(read, Err(KvError::Unavailable(_))), "{read:?}");
    let got = engine.objects().get("o");
    assert!(matches!(got, Err(KvError::Unavailable(_))), "{got:?}");
    let put = engine.objects().replace("o", &version, Bytes::from("2"));
    assert!(matches!(put, Err(KvError::Unknown(_))), "{put:?}");
    let opened = engine.open("y", 1);
    assert!(
        matches!(opened, Err(KvError::Unavailable(_) | KvError::Unknown(_))),
        "{opened:?}"
    );
    kv.close().unwrap();
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
    service.signal("CONT");

    let kv = engine.open("x", 2).unwrap();
    let found = kv.get(&[b"a", b"b", b"c"]).unwrap();
    assert!(found[0].is_some());
    // Batches are applied in order: the second is not there without the first.
    assert!(found[1].is_some() || found[2].is_none(), "{found:?}");
    kv.close().unwrap();
}
