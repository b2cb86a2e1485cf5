//! The tools work on an object storage, and namespaces move there and back.

use std::process::Output;

use serde_json::json;
use tempfile::TempDir;

use super::Storage;
use super::world::World;
use crate::harness::{Server, Value, binary};

/// Runs the command with what the storage needs.
fn trefoil(storage: &Storage, cache: &TempDir, arguments: &[&str]) -> Output {
    binary()
        .envs(&storage.variables)
        .current_dir(cache.path())
        .args(arguments)
        .output()
        .unwrap()
}

#[track_caller]
fn done(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn all_tools(storage: &Storage) {
    let cache = TempDir::new().unwrap();
    let world = World::start(storage);
    let written = world.write();
    make_a_snapshot(world.server());
    world.stop();

    let verified = done(&trefoil(storage, &cache, &["verify", &storage.url]));
    assert!(verified.contains("2 namespaces: sound"), "{verified}");
    assert!(verified.contains("42 events"), "{verified}");
    let arguments = ["verify", &storage.url, "--namespace", "default", "--json"];
    let verified = done(&trefoil(storage, &cache, &arguments));
    assert!(verified.contains("\"snapshotCommit\":"), "{verified}");
    assert!(!verified.contains("\"snapshotCommit\":null"), "{verified}");
    let arguments = ["inspect", &storage.url, "--namespace", "tenant"];
    let inspected = done(&trefoil(storage, &cache, &arguments));
    assert!(inspected.starts_with("tenant\n"), "{inspected}");
    let repaired = done(&trefoil(storage, &cache, &["repair", &storage.url]));
    assert!(repaired.contains("42 events indexed again"), "{repaired}");

    // There and back: to a directory, which a server runs on, and to another storage.
    let data = TempDir::new().unwrap();
    let directory = data.path().join("data");
    let directory = directory.to_str().unwrap();
    let moved = done(&trefoil(
        storage,
        &cache,
        &["move", &storage.url, directory],
    ));
    assert!(moved.contains("default  42 events in"), "{moved}");
    assert!(moved.contains("tenant  1 events in"), "{moved}");
    let again = trefoil(storage, &cache, &["move", &storage.url, directory]);
    assert_eq!(again.status.code(), Some(1));
    let verified = done(&trefoil(storage, &cache, &["verify", directory]));
    assert!(verified.contains("2 namespaces: sound"), "{verified}");
    let server = Server::on(data.path().join("data").as_path(), &[]);
    let mut resp = server.resp();
    assert_eq!(resp.call(&["GET", "greeting"]), Value::bulk("hello"));
    assert_eq!(
        resp.call(&["STRLEN", "large"]),
        Value::Integer(LARGE as i64)
    );
    resp.call(&["SET", "written", "in the directory"]);
    assert!(server.terminate().success());

    let back = Storage::in_a_directory();
    done(&trefoil(storage, &cache, &["move", directory, &back.url]));
    let world = World::start(&back);
    world.check(&written);
    let mut resp = world.server().resp();
    let found = resp.call(&["GET", "written"]);
    assert_eq!(found, Value::bulk("in the directory"));
    assert_eq!(
        resp.call(&["STRLEN", "large"]),
        Value::Integer(LARGE as i64)
    );
    world.stop();

    a_token_is_replaced(storage, &cache);
}

/// How large the value is that is changed over and over.
const LARGE: usize = 1 << 20;

/// Changes so much state that the log does not keep it: a snapshot has it.
pub(super) fn make_a_snapshot(server: &Server) {
    let mut resp = server.resp();
    let value = "v".repeat(LARGE);
    for _ in 0..12 {
        assert_eq!(resp.call(&["SET", "large", &value]), Value::ok());
    }
    // It is made in the first quiet moment; `verify` tells whether there is one.
    std::thread::sleep(std::time::Duration::from_secs(6));
}

fn a_token_is_replaced(storage: &Storage, cache: &TempDir) {
    let arguments = [
        "ns",
        "token",
        "tenant",
        "--rotate",
        "--storage",
        &storage.url,
    ];
    let token = done(&trefoil(storage, cache, &arguments));
    let world = World::start(storage);
    let mut tenant = world.server().client_with(token.trim());
    let rows = tenant.rpc(&json!(["stream.get", "order-1"])).ok();
    assert_eq!(rows.as_array().unwrap().len(), 1);
    world.stop();
}

#[test]
fn the_tools_work_on_files() {
    all_tools(&Storage::in_a_directory());
}

#[test]
fn the_tools_work_on_s3() {
    if let Some(storage) = Storage::on_s3() {
        all_tools(&storage);
    }
}
