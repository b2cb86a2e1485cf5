//! Coming from EventoDB or UmaDB: their directories, their answers, their keys, their ids.

use serde_json::json;
use tempfile::TempDir;

use super::{Cli, Process, errors, ndjson, text};
use crate::harness::{ADMIN, Server, binary, free_port, piped};

#[test]
fn a_script_may_answer_before_an_import_deletes() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let line = ndjson("account-1", 0, 1);
    let import = |input: &str| {
        let mut command = cli.command(&["import", "--force"]);
        piped(
            command.stderr(std::process::Stdio::piped()),
            input.as_bytes(),
        )
    };
    let first = import(&format!("y\n{line}"));
    assert_eq!(text(&first), "imported 1 events\n", "{}", errors(&first));
    let exported = cli.ok(&["export"]);
    for refusal in ["", "n\n", "\n", &line] {
        let refused = import(refusal);
        assert_eq!(refused.status.code(), Some(2), "{refusal:?}");
        assert!(errors(&refused).contains("--yes"), "{}", errors(&refused));
        assert_eq!(cli.ok(&["export"]), exported, "nothing was deleted");
    }
    assert_eq!(text(&import("y\n")), "imported 0 events\n");
    assert_eq!(cli.ok(&["export"]), "");
}

#[test]
fn ids_that_cannot_be_kept_may_be_made_anew() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("in.ndjson");
    let lines = [
        ndjson("a-1", 0, 1),
        ndjson("a-1", 1, 2),
        ndjson("a-1", 2, 3),
    ];
    let lines = lines
        .concat()
        .replace("0003\"", "0001\"")
        .replace("00000000-0000-4000-8000-000000000002", "17");
    std::fs::write(&file, lines).unwrap();
    let import = ["import", "--input", file.to_str().unwrap()];
    let refused = cli.fails(1, &import);
    assert!(refused.contains("at line 2,"), "{refused}");
    assert!(refused.contains("newIds"), "{refused}");
    let import = [&import[..], &["--new-ids"]].concat();
    assert_eq!(cli.ok(&import), "imported 3 events\n");
    assert_eq!(cli.values(&["read", "a-1"]).len(), 3);
}

#[test]
fn a_directory_of_eventodb_is_recognised() {
    for (name, content, store) in [
        ("_metadata/CURRENT", "MANIFEST-000001\n", "Pebble"),
        ("default.db", "SQLite format 3\0 and pages", "SQLite"),
    ] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        for command in ["serve", "dev"] {
            let mut started = binary();
            let data = directory.path().to_str().unwrap();
            started.args([command, "--port=0", "--data-dir", data]);
            let refused = started.output().unwrap();
            assert_eq!(refused.status.code(), Some(2));
            let said = errors(&refused);
            let what = format!("holds a database of EventoDB ({store})");
            for expected in [&what, "eventodb export", "trefoil import"] {
                assert!(said.contains(expected), "{said}");
            }
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn keys_of_umadb_are_tokens() {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let port_argument = format!("--port={port}");
    let key = "the key that our UmaDB had";
    let serve = |token| {
        [
            "serve",
            "--json",
            "--data-dir=d",
            &port_argument,
            "--token",
            token,
        ]
    };
    let mut short = binary();
    short.args(serve("too short")).current_dir(directory.path());
    let said = errors(&short.output().unwrap());
    assert!(said.contains("has 9 bytes, it needs at least 16"), "{said}");
    assert!(!said.contains("too short"), "{said}");
    let process = Process::serve(&serve(key), port, directory.path());
    let cli = Cli {
        url: format!("http://127.0.0.1:{port}"),
    };
    cli.ok(&["write", "account-1", "Opened", "--token", key]);
    let refused = cli.fails(5, &["streams", "--token", ADMIN]);
    assert!(refused.contains("AUTH_UNAUTHORIZED"), "{refused}");
    let other = "another key of somebody else";
    let create = |name| ["ns", "create", name, "--admin-token", key, "--token", other];
    assert_eq!(cli.ok(&create("tenant-a")), format!("{other}\n"));
    assert_eq!(
        cli.values(&["streams", "--token", other]),
        [] as [serde_json::Value; 0]
    );
    let refused = cli.fails(1, &create("tenant-b"));
    assert!(refused.contains("in use by another namespace"), "{refused}");
    let streams = cli.values(&["streams", "--token", key]);
    assert_eq!(streams[0]["stream"], json!("account-1"));
    process.stop();
    for name in ["default", "tenant-a"] {
        let path = directory.path().join(format!("d/_meta/{name}.json"));
        let entry = std::fs::read_to_string(path).unwrap();
        assert!(!entry.contains("key"), "{entry}");
    }
}

/// Only Trefoil itself can play the part of an EventoDB here.
#[test]
fn an_eventodb_is_migrated_and_compared() {
    let (old, new) = (Server::in_test_mode(), Server::in_test_mode());
    let (there, here) = (Cli::of(&old), Cli::of(&new));
    let url = format!("http://127.0.0.1:{}", old.port);
    let migrate = ["migrate", "eventodb", &url, "--from-token", ADMIN];
    let told = |imported: u64, head: u64| {
        format!(
            "imported {imported} events, up to position {head}; {head} are the same on both sides\n"
        )
    };
    assert_eq!(here.ok(&migrate), told(0, 0));
    let mut client = old.client();
    let mut write = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            let event = json!({
                "type": "Deposited",
                "data": {"n": number, "text": "a\nb"},
                "metadata": {"correlationStreamName": "other-1"},
            });
            let stream = format!("account-{}", number % 7);
            client.rpc(&json!(["stream.write", stream, event])).ok();
        }
    };
    // More than two pages.
    write(0..2100);
    assert_eq!(here.ok(&migrate), told(2100, 2100));
    assert_eq!(here.ok(&["export"]), there.ok(&["export"]));
    // It goes on where it was.
    write(2100..2110);
    assert_eq!(here.ok(&migrate), told(10, 2110));
    assert_eq!(here.ok(&["export"]), there.ok(&["export"]));
    // Not into a namespace that has something else.
    here.ok(&["write", "own-1", "Own", "{}"]);
    let refused = here.fails(1, &migrate);
    assert!(
        refused.contains("at global position 2111, is not there"),
        "{refused}"
    );
    write(2110..2111);
    let refused = here.fails(1, &migrate);
    assert!(refused.contains("holds other events than"), "{refused}");
    let absent = [
        "migrate",
        "eventodb",
        "http://127.0.0.1:1",
        "--from-token",
        ADMIN,
    ];
    let refused = here.fails(1, &absent);
    assert!(refused.contains("http://127.0.0.1:1"), "{refused}");
}
