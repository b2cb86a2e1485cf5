//! Clients of the outside world: Python's standard library against the API of EventoDB, and the
//! published client of UmaDB, and a library that uses it, against its own.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{ADMIN, Server};
use crate::tls::CertificateFiles;

/// A script of `tests/python`, which leaves nothing there.
pub(crate) fn script(name: &str) -> Command {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let mut command = Command::new("python3");
    command.arg("-B").arg(directory.join(name));
    command
}

/// Runs a script; it says how many checks it made.
#[track_caller]
pub(crate) fn run(script: &mut Command) {
    let output = match script.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: no python3 on this machine ({error})");
            return;
        }
    };
    let (said, failed) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && said.starts_with("ok "),
        "{said}\n{failed}"
    );
}

/// Whether Python has these packages; `cargo xtask test` installs them.
pub(crate) fn has(packages: &str) -> bool {
    let probe = Command::new("python3")
        .args(["-c", &format!("import {packages}")])
        .output();
    let is_there = probe.is_ok_and(|probe| probe.status.success());
    let is_needed = std::env::var_os("XTASK_PYTHON").is_some();
    assert!(is_there || !is_needed, "python3 cannot import {packages}");
    if !is_there {
        eprintln!(
            "skipped: python3 cannot import {packages}; cargo xtask test installs what it needs"
        );
    }
    is_there
}

#[test]
fn a_python_client_that_knows_only_eventodb_works() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    run(script("client.py").args([&url, ADMIN]));
}

#[test]
fn the_client_of_umadb_works_without_a_key_in_test_mode() {
    if has("umadb") {
        let server = Server::in_test_mode();
        let url = format!("http://127.0.0.1:{}", server.grpc_port);
        run(script("umadb_client.py").arg(url));
    }
}

#[test]
fn a_library_that_stores_its_events_in_umadb_works() {
    if !has("umadb, eventsourcing_umadb, eventsourcing.tests.persistence") {
        return;
    }
    for part in ["aggregates", "applications", "concurrently", "decisions"] {
        let server = Server::in_test_mode();
        let url = format!("http://127.0.0.1:{}", server.grpc_port);
        run(script("eventsourcing_client.py").args([&url, part]));
    }
}

/// The client sends a key over TLS only.
#[test]
fn the_client_of_umadb_works_with_a_key_over_tls() {
    if !has("umadb") {
        return;
    }
    let (files, data) = (CertificateFiles::new(), TempDir::new().unwrap());
    let server = files.server(data.path());
    let url = format!("https://localhost:{}", server.grpc_port);
    let wrong = ADMIN.replace("000", "001");
    let mut script = script("umadb_client.py");
    script.arg(&url).arg(files.authority());
    run(script.args([ADMIN, &wrong]));
    assert!(server.terminate().success());
}
