//! kill -9 under load, again and again on one data directory: what was acknowledged is there,
//! nothing is half there, and history never changes.

mod ledger;
mod registry;
mod writers;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{SMALL_PARTS, Server, seeded};
use ledger::Ledger;
use writers::Writer;

const ROUNDS: u64 = 50;
/// After this many rounds the whole history is read and compared, not only what is new.
const WHOLE_EVERY: u64 = 10;
const WRITERS: usize = 9;

#[test]
fn acknowledged_writes_survive_kill_after_kill() {
    let data = TempDir::new().unwrap();
    let mut random = seeded();
    let mut ledger = Ledger::default();
    let started = Instant::now();
    for round in 0..ROUNDS {
        let server = Server::on(data.path(), &SMALL_PARTS);
        ledger.verify(&mut server.client(), round % WHOLE_EVERY == 0);
        ledger.retry(&mut server.client());
        check_versions(&server, &mut ledger);
        let life = Duration::from_millis(30 + random.u64(..300));
        load(server, round, life, &mut ledger);
    }
    let server = Server::on(data.path(), &SMALL_PARTS);
    ledger.verify(&mut server.client(), true);
    let (events, survivors) = (ledger.len(), ledger.survivors());
    eprintln!("{events} events, {survivors} commits written and not answered");
    assert!(survivors > 0, "no kill came between a write and its answer");
    assert!(
        started.elapsed() < Duration::from_secs(120),
        "the rounds take too long"
    );
}

/// Lets the writers write, kills the server under them, and takes down what they were told.
fn load(server: Server, round: u64, life: Duration, ledger: &mut Ledger) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (stop, server_ref) = (&stop, &server);
        let spawn = |number| {
            let writer = Writer::new(server_ref, round, number);
            scope.spawn(move || writer.run(stop))
        };
        let threads: Vec<_> = (0..WRITERS).map(spawn).collect();
        thread::sleep(life);
        server.signal("KILL");
        // Writers that are waiting for an answer see the connection break.
        stop.store(true, Ordering::SeqCst);
        for thread in threads {
            ledger.take(thread.join().unwrap());
        }
    });
    server.kill();
}

/// Versions and their checks go on where they were.
fn check_versions(server: &Server, ledger: &mut Ledger) {
    let mut client = server.client();
    let Some((stream, version)) = ledger.some_stream() else {
        return;
    };
    assert_eq!(
        client.rpc(&json!(["stream.version", stream])).ok(),
        version,
        "{stream}"
    );
    let write = |expected: i64| json!(["stream.write", stream, {"type": "E", "data": {"check": version}}, {"expectedVersion": expected}]);
    let refused = client.rpc(&write(version - 1));
    assert_eq!(
        (refused.status, refused.code()),
        (409, "STREAM_VERSION_CONFLICT".to_owned())
    );
    let refused = client.rpc(&write(version + 1));
    assert_eq!(
        (refused.status, refused.code()),
        (409, "STREAM_VERSION_CONFLICT".to_owned())
    );
    let written = client.rpc(&write(version)).ok();
    assert_eq!(written["position"], version + 1, "{stream}");
    ledger.take_check(&stream, &written, &json!({"check": version}));
}
