//! Removed events are dropped from the log, also if the server is killed while it does so. What is left
//! reads as before.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use trefoil::{Clock, Database, ManualTime, Options, RemoveBefore, Timestamp};

use super::check_sound;
use super::search::{found, random_text};
use crate::harness::{ADMIN, Client, SMALL_PARTS, Server, binary, free_port, seeded};

const ROUNDS: usize = 6;
const STREAMS: usize = 6;
const EVENTS: usize = 40;
/// An attempt that fails is repeated after a minute.
const PATIENCE: Duration = Duration::from_secs(120);
/// Removed events wait for a day at most.
const TWO_DAYS_NANOS: i64 = 2 * 24 * 60 * 60 * 1_000_000_000;

/// What the streams have: the position in the stream and what the event says.
#[derive(Default)]
struct Model {
    streams: BTreeMap<String, BTreeMap<usize, String>>,
    removed: Vec<String>,
}

impl Model {
    /// Writes to all streams in turn.
    fn write(&mut self, client: &mut Client, random: &mut Rng, round: usize) {
        for place in round * EVENTS..(round + 1) * EVENTS {
            let mut events = Vec::new();
            for number in 0..STREAMS {
                let (stream, text) = (format!("account-{number}"), random_text(random));
                events.push(json!({"stream": stream, "type": "Said", "data": {"of": text}}));
                self.streams.entry(stream).or_default().insert(place, text);
            }
            client.rpc(&json!(["commit", {"events": events}])).ok();
        }
    }

    /// Removes some of each stream, two days ago.
    fn remove(&mut self, data: &Path, random: &mut Rng) {
        let then = Clock::default().now().0 - TWO_DAYS_NANOS;
        let clock = Clock::new(ManualTime::new(Timestamp(then)));
        let options = Options::default()
            .with_clock(clock)
            .with_tail_events_max(64)
            .with_segment_bytes_max(32 * 1024)
            .with_plain_segments(1);
        let database = Database::open(data.join("default"), &options).unwrap();
        for (stream, events) in &mut self.streams {
            let end = events.last_key_value().map_or(0, |(place, _)| place + 1);
            let before = end - random.usize(..EVENTS);
            let removed = RemoveBefore::StreamPosition(before as u64);
            database.truncate(stream, removed, None).unwrap();
            let kept = events.split_off(&before);
            self.removed
                .extend(std::mem::replace(events, kept).into_values());
        }
        database.close().unwrap();
    }

    #[track_caller]
    fn check(&self, client: &mut Client) {
        let mut n_events = 0;
        for (stream, expected) in &self.streams {
            let read = client
                .rpc(&json!(["stream.get", stream, {"batchSize": 1000}]))
                .ok();
            let of = |event: &Json| {
                let place = event[2].as_u64().unwrap() as usize;
                (place, event[4]["of"].as_str().unwrap().to_owned())
            };
            let read: BTreeMap<usize, String> = read.as_array().unwrap().iter().map(of).collect();
            assert_eq!(&read, expected, "{stream}");
            n_events += expected.len();
        }
        let category = client
            .rpc(&json!(["category.get", "account", {"batchSize": 10_000}]))
            .ok();
        assert_eq!(category.as_array().unwrap().len(), n_events);
        let exported = client.get("/export");
        assert_eq!(exported.text().lines().count(), n_events);
    }
}

/// Starts a server, which begins to drop at once, and kills it, maybe before it answers anybody.
fn start_and_kill(data: &Path, life: Duration) {
    let output = File::create(data.with_extension("log")).unwrap();
    let mut child = binary()
        .args(["serve", "--token", ADMIN, "--data-dir"])
        .arg(data)
        .args(["--port", &free_port().to_string()])
        .args(["--grpc-port", &free_port().to_string()])
        .args(["--resp-port", &free_port().to_string()])
        .args(SMALL_PARTS)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        .spawn()
        .unwrap();
    thread::sleep(life);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn dropping_survives_kill_after_kill() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data");
    let mut random = seeded();
    let mut model = Model::default();
    for round in 0..ROUNDS {
        let server = Server::on(&data, &SMALL_PARTS);
        model.check(&mut server.client());
        model.write(&mut server.client(), &mut random, round);
        assert!(server.terminate().success());
        model.remove(&data, &mut random);
        let removed: Vec<&str> = model.removed.iter().map(String::as_str).collect();
        let n_before = found(&data, &removed).len();
        assert!(n_before > 0, "the search misses what is there");
        let life = Duration::from_millis(random.u64(20..600));
        start_and_kill(&data, life);
        let n_after = found(&data, &removed).len();
        eprintln!("round {round}: {n_after} of {n_before} removed events left after {life:?}");
    }
    let server = Server::on(&data, &SMALL_PARTS);
    let deadline = Instant::now() + PATIENCE;
    let removed: Vec<&str> = model.removed.iter().map(String::as_str).collect();
    while let Some(left) = found(&data, &removed).first() {
        assert!(Instant::now() < deadline, "{left:?}");
        thread::sleep(Duration::from_millis(100));
    }
    model.check(&mut server.client());
    assert!(server.terminate().success());
    check_sound(&data);
}
