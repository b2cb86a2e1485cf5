//! kill -9 while seats are reserved and sold, again and again on one directory: of every
//! transaction the bits, the statistics, the metadata and the event are all there or none, and what
//! was acknowledged is there. In the end the maps are built again from the log alone.

mod books;
mod seller;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::differential::random_commands;
use super::dump::dump;
use crate::harness::{SMALL_PARTS, Server, binary, encode, seeded};
use books::Books;
use seller::Seller;

const ROUNDS: u64 = 50;
const SELLERS: usize = 6;
/// How long the rounds may take.
const TIME: Duration = Duration::from_secs(120);
/// How many commands of all kinds come before the maps are built again.
const MIXTURE: usize = 3_000;

#[test]
fn seats_statistics_metadata_and_events_survive_kills_together() {
    let data = TempDir::new().unwrap();
    let mut random = seeded();
    let mut books = Books::default();
    let started = Instant::now();
    for round in 0..ROUNDS {
        let server = Server::on(data.path(), &SMALL_PARTS);
        books.check(&mut server.resp());
        let life = Duration::from_millis(20 + random.u64(..150));
        sell(server, round, life, &mut books);
    }
    let server = Server::on(data.path(), &SMALL_PARTS);
    books.check(&mut server.resp());
    eprintln!("{books:?}");
    assert!(
        books.n_survivors > 0,
        "no kill came between a commit and its answer"
    );
    assert!(books.n_acknowledged > 500, "too little happened");
    assert!(started.elapsed() < TIME, "the rounds take too long");
    rebuild(server, &data);
}

/// Lets sellers sell, kills the server under them, and takes down what they were told.
fn sell(server: Server, round: u64, life: Duration, books: &mut Books) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (stop, server_ref) = (&stop, &server);
        let spawn = |number| {
            let seller = Seller::new(server_ref, round, number);
            scope.spawn(move || seller.run(stop))
        };
        let threads: Vec<_> = (0..SELLERS).map(spawn).collect();
        thread::sleep(life);
        server.signal("KILL");
        stop.store(true, Ordering::SeqCst);
        for thread in threads {
            books.take(thread.join().unwrap());
        }
    });
    server.kill();
}

/// State is the same after another kill, and after the maps were built again from the log.
fn rebuild(server: Server, data: &TempDir) {
    let mut client = server.resp();
    let mut request = Vec::new();
    let commands = random_commands(MIXTURE);
    commands
        .iter()
        .for_each(|words| encode(words, &mut request));
    client.send(&request).unwrap();
    for _ in &commands {
        client.receive().unwrap();
    }
    let before = dump(&mut client);
    assert!(before.len() > 10, "too few keys: {}", before.len());
    server.kill();
    let server = Server::on(data.path(), &SMALL_PARTS);
    assert_eq!(dump(&mut server.resp()), before, "after a kill");
    assert!(server.terminate().success());
    for command in ["verify", "repair", "verify"] {
        let output = binary().arg(command).arg(data.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {text}\n{errors}");
    }
    let server = Server::on(data.path(), &SMALL_PARTS);
    assert_eq!(
        dump(&mut server.resp()),
        before,
        "after building the maps again"
    );
}
