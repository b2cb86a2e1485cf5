//! A service that does not answer: every call ends in time, and says what is known.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
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

/// Passes bytes on to a port, except those that it is told to lose. Its threads end with the process.
fn losing_proxy(to: u16, loses: &Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let loses = Arc::clone(loses);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let service = TcpStream::connect(("127.0.0.1", to)).unwrap();
            let (answers, to_client) = (service.try_clone().unwrap(), client.try_clone().unwrap());
            let loses = Arc::clone(&loses);
            thread::spawn(move || pass(client, service, &loses));
            thread::spawn(move || pass(answers, to_client, &AtomicBool::new(false)));
        }
    });
    port
}

fn pass(mut from: TcpStream, mut to: TcpStream, loses: &AtomicBool) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(n) = from.read(&mut bytes) {
        let is_lost = n > 0 && loses.swap(false, Ordering::SeqCst);
        if n == 0 || !is_lost && to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn a_small_read_that_was_forgotten_is_made_again() {
    let Some(service) = Service::seaweedfs() else {
        return;
    };
    let loses = Arc::new(AtomicBool::new(false));
    let port = losing_proxy(service.port(), &loses);
    let mut variables = service.variables();
    let endpoint = format!("http://127.0.0.1:{port}");
    variables.insert("AWS_ENDPOINT_URL".to_owned(), endpoint);
    let options = StoreOptions {
        variables,
        ..StoreOptions::default()
    };
    let url: StoreUrl = format!("s3://{BUCKET}/forgotten").parse().unwrap();
    let engine = SlateEngine::connect(&url, options).unwrap();
    engine.objects().create("o", Bytes::from("1")).unwrap();
    let started = Instant::now();
    loses.store(true, Ordering::SeqCst);
    let found = engine.objects().get("o").unwrap();
    assert_eq!(found.map(|(bytes, _)| bytes), Some(Bytes::from("1")));
    loses.store(true, Ordering::SeqCst);
    assert_eq!(engine.objects().list("", "", 10).unwrap(), ["o"]);
    let elapsed = started.elapsed();
    assert!(!loses.load(Ordering::SeqCst));
    assert!(elapsed < Duration::from_secs(25), "{elapsed:?}");
}
