//! Twenty writers with random conditions, over both protocols, on a server that moves its index to
//! disk, begins segments, compresses old ones, and is killed again and again.
//!
//! Every event says under which query it was appended and which match its writer saw last. So the
//! log itself tells whether a condition was ever passed over. Readers remember what they saw while
//! all this went on, and the log that is there in the end must agree with every one of them.

mod books;
mod reader;
mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tempfile::TempDir;
use trefoil::{Query, QueryItem};

use super::backend::{Backend, Protocol};
use super::grpc::Grpc;
use super::rpc::Rpc;
use super::store::{Fact, Store};
use crate::harness::{ADMIN, SMALL_PARTS, Server, seeded};
use books::Books;
use reader::Reader;
use writer::Writer;

const ROUNDS: u64 = 6;
const WRITERS: u64 = 20;
const READERS: u64 = 4;
const TYPES: u64 = 10;
const TAGS: u64 = 10;

fn type_name(random: &mut Rng) -> String {
    format!("Type{}", random.u64(..TYPES))
}

fn tags(random: &mut Rng) -> Vec<String> {
    let n = random.u64(..4);
    (0..n)
        .map(|_| format!("tag:{}", random.u64(..TAGS)))
        .collect()
}

/// Up to three items of up to four types and up to three tags.
fn query(random: &mut Rng) -> Query {
    let mut items = Vec::new();
    for _ in 0..random.u64(..4) {
        let n_types = random.u64(..5);
        items.push(QueryItem {
            types: (0..n_types).map(|_| type_name(random)).collect(),
            tags: tags(random),
        });
    }
    Query { items }
}

/// Half of the clients speak HTTP, half gRPC.
fn connect(server: &Server, number: u64) -> Box<dyn Store> {
    match number % 2 {
        0 => Box::new(Rpc(server.client())),
        _ => Box::new(Grpc::connect(server.grpc_port, ADMIN)),
    }
}

#[test]
fn under_kills_no_condition_is_passed_over_and_nothing_that_was_seen_changes() {
    let data = TempDir::new().unwrap();
    let mut random = seeded();
    let mut books = Books::default();
    for round in 0..ROUNDS {
        let server = Server::on(data.path(), &SMALL_PARTS);
        books.verify(&mut *connect(&server, round));
        // Over gRPC, as in UmaDB, an append is known by its ids only if its condition fails.
        books.retry(&mut Rpc(server.client()));
        let life = Duration::from_millis(400 + random.u64(..900));
        let load = Load::new(round, life, &mut random);
        load.run(
            &|number| connect(&server, number),
            || server.signal("KILL"),
            &mut books,
        );
        server.kill();
    }
    let server = Server::on(data.path(), &SMALL_PARTS);
    books.verify(&mut *connect(&server, 0));
    books.verify_all(&mut *connect(&server, 1));
    books.assert_much_happened();
    // Work that can wait begins after a write, and takes as long as the machine lets it.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !has_parts(data.path()) {
        assert!(Instant::now() < deadline, "nothing was compressed or moved");
        let later = Fact::new("Later", ["later"]);
        connect(&server, 0).append(&[later], &[]).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn in_one_process_no_condition_is_passed_over_and_nothing_that_was_seen_changes() {
    let mut backend = Backend::start(Protocol::Library);
    let mut random = seeded();
    let mut books = Books::default();
    for round in 0..2 {
        let load = Load::new(round, Duration::from_secs(1), &mut random);
        load.run(&|_| backend.connect(), || {}, &mut books);
        backend.restart();
        books.verify(&mut *backend.connect());
    }
    books.verify_all(&mut *backend.connect());
    books.assert_much_happened();
}

/// Clients that write and read for a while.
struct Load {
    round: u64,
    life: Duration,
    seeds: Vec<u64>,
}

impl Load {
    fn new(round: u64, life: Duration, random: &mut Rng) -> Self {
        let clients = 0..WRITERS + READERS;
        let seeds = clients.map(|_| random.u64(..)).collect();
        Self { round, life, seeds }
    }

    /// Lets the clients do what they do until `end`, and takes down what they were told.
    fn run(&self, connect: &dyn Fn(u64) -> Box<dyn Store>, end: impl FnOnce(), books: &mut Books) {
        let stop = &AtomicBool::new(false);
        let random = |number: u64| Rng::with_seed(self.seeds[number as usize]);
        thread::scope(|scope| {
            let spawn_writer = |number| {
                let writer = Writer::new(connect(number), random(number), self.round, number);
                scope.spawn(move || writer.run(stop))
            };
            let spawn_reader = |number| {
                let reader = Reader::new(connect(number), random(number));
                scope.spawn(move || reader.run(stop))
            };
            let writers: Vec<_> = (0..WRITERS).map(spawn_writer).collect();
            let readers: Vec<_> = (WRITERS..WRITERS + READERS).map(spawn_reader).collect();
            thread::sleep(self.life);
            end();
            stop.store(true, Ordering::SeqCst);
            for writer in writers {
                books.take(writer.join().unwrap());
            }
            for reader in readers {
                books.take_samples(reader.join().unwrap());
            }
        });
    }
}

/// Whether the log was cut into segments and old ones compressed, and the index moved to disk.
fn has_parts(data: &Path) -> bool {
    let mut names = Vec::new();
    let mut directories = vec![data.to_owned()];
    while let Some(directory) = directories.pop() {
        // What is replaced may vanish meanwhile.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            names.push(entry.path().to_string_lossy().into_owned());
            if entry.path().is_dir() {
                directories.push(entry.path());
            }
        }
    }
    let count = |part: &str| names.iter().filter(|name| name.contains(part)).count();
    count(".compressed") > 2 && count("/loaded/") > 2
}
