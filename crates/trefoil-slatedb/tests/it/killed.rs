//! A process that commits is killed, again and again: nothing acknowledged is lost.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;
use trefoil_core::Direction;
use trefoil_kv::contract::{Kv, KvBatch, KvEngine as _};
use trefoil_slatedb::{SlateEngine, StoreOptions, StoreUrl};

use crate::services::{BUCKET, Service};

const ROUNDS: u64 = 6;

/// Returns a batch that numbers itself, in two places.
fn numbered(number: u64) -> KvBatch {
    let text = Bytes::from(number.to_string());
    let key = Bytes::from(format!("n{number:08}"));
    let end = Bytes::from("end");
    KvBatch {
        changes: vec![(key, Some(text.clone())), (end, Some(text))],
    }
}

/// Not a test: what the killed process does. It writes down what was acknowledged.
#[test]
#[ignore = "started by the other test"]
fn committing() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let url: StoreUrl = variable("KILLED_URL").parse().unwrap();
    let epoch = variable("KILLED_EPOCH").parse().unwrap();
    let mut acknowledged = File::create(variable("KILLED_FILE")).unwrap();
    let engine = SlateEngine::connect(&url, StoreOptions::default()).unwrap();
    let kv = engine.open("killed", epoch).unwrap();
    let first = end_of(&*kv) + 1;
    let (sender, done) = channel();
    for number in first.. {
        let sender = sender.clone();
        let told = move |result: Result<(), _>| sender.send((number, result)).unwrap();
        kv.commit(numbered(number), Box::new(told));
        // Up to eight are on their way.
        if number >= first + 8 {
            let (number, result) = done.recv().unwrap();
            result.unwrap();
            writeln!(acknowledged, "{number}").unwrap();
        }
    }
}

fn end_of(kv: &dyn Kv) -> u64 {
    let end = kv.get(&[b"end"]).unwrap().remove(0);
    end.map_or(0, |end| std::str::from_utf8(&end).unwrap().parse().unwrap())
}

/// Starts the process, kills it after a while, and returns the last number that was acknowledged.
fn killed_once(url: &str, options: &StoreOptions, epoch: u64, directory: &Path) -> Option<u64> {
    let file = directory.join("acknowledged");
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["killed::committing", "--exact", "--ignored"])
        .envs(&options.variables)
        .env("KILLED_URL", url)
        .env("KILLED_EPOCH", epoch.to_string())
        .env("KILLED_FILE", &file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(fastrand::u64(700..2000)));
    assert_eq!(process.try_wait().unwrap(), None, "it ended by itself");
    process.kill().unwrap();
    process.wait().unwrap();
    let lines = BufReader::new(File::open(&file).ok()?).lines();
    let numbers: Vec<u64> = lines.map(|line| line.unwrap().parse().unwrap()).collect();
    numbers.last().copied()
}

fn survives(url: &str, options: &StoreOptions) {
    let directory = TempDir::new().unwrap();
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let last = killed_once(url, options, round * 2 + 1, directory.path());
        acknowledged = last.unwrap_or(0).max(acknowledged);
        let engine = SlateEngine::connect(&url.parse().unwrap(), options.clone()).unwrap();
        let kv = engine.open("killed", round * 2 + 2).unwrap();
        let end = end_of(&*kv);
        assert!(end >= acknowledged, "{acknowledged} is lost: {end}");
        let page = kv.scan(b"n", b"o", Direction::Forwards, usize::MAX, false);
        let entries = page.unwrap().entries;
        assert_eq!(entries.len() as u64, end, "a part of a batch is missing");
        for ((key, value), number) in entries.iter().zip(1..) {
            assert_eq!(*key, Bytes::from(format!("n{number:08}")));
            assert_eq!(*value, Bytes::from(number.to_string()));
        }
        kv.close().unwrap();
    }
    assert!(acknowledged > 50, "{acknowledged} is too few to be a test");
}

#[test]
fn in_a_directory() {
    let directory = TempDir::new().unwrap();
    let url = format!("file://{}", directory.path().display());
    survives(&url, &StoreOptions::default());
}

#[test]
fn on_an_s3_service() {
    let Some(service) = Service::seaweedfs() else {
        return;
    };
    let options = StoreOptions {
        variables: service.variables(),
        ..StoreOptions::default()
    };
    survives(&format!("s3://{BUCKET}/killed"), &options);
}
