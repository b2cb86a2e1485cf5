//! Data directories that earlier releases wrote: every later version opens them and reads
//! everything back.
//!
//! `tests/fixtures` has two archives of each release: `RELEASE-closed.tar.gz` after a clean shutdown,
//! and `RELEASE-killed.tar.gz` after a kill. Each has `data`, the data directory, and `expected`,
//! what the release itself read from it. A release adds its own. The last version before a format
//! changes adds at least the second one, under the name of the release and a number:
//!
//! ```text
//! TREFOIL_RELEASE=/path/to/trefoil TREFOIL_RELEASE_NAME=0.1.0-2 \
//!     cargo test -p trefoil-cli --test it releases::make -- --ignored
//! ```

mod changed;
mod contents;
mod expected;
mod large;
mod make;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{SMALL_PARTS, Server, Value, binary};
use contents::{BOX_OFFICE, SOON_BOOKING, TRANSACTIONS, connect, transaction};
use expected::{Expected, read_namespace};

/// How a release and every later version is started: with small parts, as in the other tests, and so
/// that the ids of transactions are never forgotten.
fn arguments() -> Vec<&'static str> {
    [&SMALL_PARTS[..], &["--commit-id-retention=3650000d"]].concat()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn tar(arguments: &[&str], archive: &Path, directory: &Path) {
    let mut tar = Command::new("tar");
    tar.args(arguments).arg(archive).arg("-C").arg(directory);
    if arguments.contains(&"-cf") {
        tar.args(["data", "expected"]);
    }
    assert!(tar.status().unwrap().success(), "{tar:?}");
}

#[track_caller]
fn verify(data: &Path) {
    let output = binary().arg("verify").arg(data).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_an_earlier_release_wrote_is_read_back() {
    let mut archives: Vec<PathBuf> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".tar.gz"))
        .collect();
    archives.sort();
    assert!(archives.len() >= 2, "{archives:?}");
    for archive in archives {
        eprintln!("{}", archive.display());
        let directory = TempDir::new().unwrap();
        tar(&["-xzf"], &archive, directory.path());
        check(directory.path());
    }
}

/// Opens the data directory twice, so that what the first one has written is read too.
fn check(directory: &Path) {
    let (data, expected) = (directory.join("data"), directory.join("expected"));
    verify(&data);
    for _ in 0..2 {
        let server = Server::on(&data, &arguments());
        for expected in Expected::read_all(&expected) {
            if expected.namespace == BOX_OFFICE {
                wait_for_the_hold(&server, &expected.token);
            }
            expected.compare(&read_namespace(
                &server,
                &expected.namespace,
                &expected.token,
            ));
        }
        assert!(server.terminate().success());
        verify(&data);
    }
    go_on(&data, &Expected::read_all(&expected));
}

/// What was written is built on: transactions are known by their ids, keys are changed, events
/// follow.
fn go_on(data: &Path, namespaces: &[Expected]) {
    let server = Server::on(data, &arguments());
    let mut all_changed = Vec::new();
    for Expected {
        token, namespace, ..
    } in namespaces
    {
        let mut redis = connect(&server, token);
        if !["empty", BOX_OFFICE].contains(&namespace.as_str()) {
            for n in 0..TRANSACTIONS {
                let count = transaction(&mut redis, n);
                assert_eq!(count, Value::Integer(n + 1), "{namespace}");
            }
        }
        all_changed.push(changed::change(&mut redis));
        server.client_with(token).write("later-1", &json!({}));
    }
    server.kill();
    let server = Server::on(data, &arguments());
    for (Expected { token, .. }, changed) in namespaces.iter().zip(all_changed) {
        changed.check(&mut connect(&server, token));
    }
    assert!(server.terminate().success());
    verify(data);
}

/// The hold that had not ended when the release was stopped ends by itself.
fn wait_for_the_hold(server: &Server, token: &str) {
    let started = Instant::now();
    loop {
        let call = json!(["seats.booking", {"booking": SOON_BOOKING}]);
        let status = server.client_with(token).rpc(&call).ok()["status"].clone();
        if status == "EXPIRED" {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{status}");
        thread::sleep(Duration::from_millis(50));
    }
}
