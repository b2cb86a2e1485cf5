//! How much a lookup reads from files once the state is larger than the caches.

use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::{Resp, Server, Value, encode};

/// Enough that tables are merged: what changed is written when it takes 16 MiB, and four such tables are.
const KEYS: u32 = 120_000;
/// Enough that what changed is written twice: reads are of the moment when it was written last.
const MORE_KEYS: u32 = 40_000;
const VALUE_BYTES: usize = 900;
/// How many requests are sent at a time.
const AT_ONCE: u32 = 500;

/// Returns how many bytes the server has read from files so far, once it reads no more by itself.
fn bytes_read(server: &Server) -> u64 {
    let read = || server.counted("rchar");
    let mut before = read();
    loop {
        thread::sleep(Duration::from_millis(300));
        let now = read();
        if now == before {
            return now;
        }
        before = now;
    }
}

fn send_all(resp: &mut Resp, requests: impl Iterator<Item = [Vec<u8>; 3]>, expected: &Value) {
    let mut out = Vec::new();
    let mut n_sent = 0;
    for [command, key, value] in requests {
        match value.is_empty() {
            true => encode(&[command, key], &mut out),
            false => encode(&[command, key, value], &mut out),
        }
        n_sent += 1;
        if n_sent % AT_ONCE == 0 {
            resp.send(&std::mem::take(&mut out)).unwrap();
            for _ in 0..AT_ONCE {
                assert_eq!(&resp.receive().unwrap(), expected);
            }
        }
    }
    assert_eq!(n_sent % AT_ONCE, 0);
}

#[test]
fn a_lookup_in_a_large_state_reads_a_few_blocks() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &["--cache-size=4MiB", "--log-level=warn"]);
    let mut resp = server.resp();
    let value = vec![b'v'; VALUE_BYTES];
    let key = |number: u32| format!("key:{number}").into_bytes();
    let set = |number| [b"SET".into(), key(number), value.clone()];
    send_all(&mut resp, (0..KEYS).map(set), &Value::ok());
    bytes_read(&server);
    let more = 2 * KEYS..2 * KEYS + MORE_KEYS;
    send_all(&mut resp, more.map(set), &Value::ok());
    let mut read_by = |first: u32, expected: &Value| {
        let before = bytes_read(&server);
        let gets = (0..KEYS).step_by(30).map(|number| {
            let key = key(first + number);
            [b"GET".into(), key, Vec::new()]
        });
        send_all(&mut resp, gets, expected);
        (bytes_read(&server) - before) / u64::from(KEYS / 30)
    };
    let present = read_by(0, &Value::bulk(&value));
    let missing = read_by(KEYS, &Value::NilBulk);
    // A whole filter has about 80 KiB.
    assert!(missing < 12 * 1024, "{missing} bytes for a missing key");
    assert!(present < 24 * 1024, "{present} bytes for a key");
}
