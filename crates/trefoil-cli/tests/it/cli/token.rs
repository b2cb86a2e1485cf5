//! Tokens of namespaces: none is made that nobody sees, and a lost one can be replaced.

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::{Cli, Process, errors, free_port, text};
use crate::harness::{ADMIN, Client, Resp, Server, binary};

fn serve(data: &Path, port: u16) -> Command {
    let mut command = binary();
    command.args(["serve", "--json", "--grpc-port=0", "--resp-port=0"]);
    command.arg(format!("--port={port}"));
    command.arg("--data-dir").arg(data);
    command
}

#[test]
fn a_first_start_that_fails_makes_no_token() {
    let data = TempDir::new().unwrap();
    let default = data.path().join("_meta/default.json");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = serve(data.path(), port).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = errors(&output);
    assert!(said.contains("Address already in use"), "{said}");
    assert!(!default.exists());

    // Where nothing can be shown, no token is made either.
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = serve(data.path(), 0).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(!default.exists());

    let port = free_port();
    let command = serve(data.path(), port);
    let arguments: Vec<&str> = command
        .get_args()
        .map(|word| word.to_str().unwrap())
        .collect();
    let shown = Process::serve(&arguments, port, data.path()).stop();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert!(shown["token"].is_string(), "{shown}");
    assert!(default.exists());
}

#[test]
fn a_running_server_gives_a_namespace_another_token() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let cli = Cli::of(&server);
    let first = cli.ok(&["ns", "create", "tenant"]);
    let other = cli.ok(&["ns", "create", "other"]);
    let mut redis = Resp::connect(server.resp_port).unwrap();
    redis.call(&["AUTH", first.trim()]);
    redis.call(&["SET", "key", "value"]);

    let rotate = ["ns", "token", "tenant", "--rotate"];
    cli.fails(2, &["ns", "token", "tenant"]);
    cli.fails(5, &[&rotate[..], &["--token", other.trim()]].concat());
    let second = cli.ok(&rotate);
    assert_ne!(first, second);
    cli.fails(5, &["streams", "--token", first.trim()]);
    cli.ok(&["streams", "--token", second.trim()]);
    let refused = format!("{:?}", redis.call(&["GET", "key"]));
    assert!(refused.contains("authenticate again"), "{refused}");

    // The namespace's own token is enough, and the new one may be chosen.
    let (mine, chosen) = (second.trim(), first.trim());
    let own = ["--admin-token", mine, "--namespace-token", chosen];
    let third = cli.values(&[&rotate[..], &own].concat());
    assert_eq!(
        third,
        [json!({"namespace": "tenant", "token": first.trim()})]
    );
    cli.ok(&["streams", "--token", first.trim()]);
    cli.fails(4, &["ns", "token", "nobody", "--rotate"]);
    let locked = cli.fails(
        1,
        &[
            "ns",
            "token",
            "tenant",
            "--rotate",
            "--data-dir",
            path(&data),
        ],
    );
    assert!(locked.contains("in use by another process"), "{locked}");
}

#[test]
fn a_lost_token_of_the_default_namespace_is_replaced_while_the_server_is_stopped() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    server.client().write("account-1", &json!({}));
    assert!(server.terminate().success());
    let rotate = |name, directory| {
        let words = ["ns", "token", name, "--rotate", "--data-dir", directory];
        binary().args(words).output().unwrap()
    };
    assert_eq!(rotate("nobody", path(&data)).status.code(), Some(4));
    assert_eq!(rotate("default", "/nowhere/at/all").status.code(), Some(4));
    assert!(!Path::new("/nowhere").exists());
    let token = text(&rotate("default", path(&data)));
    let token = token.trim();

    let port = free_port();
    let command = serve(data.path(), port);
    let arguments: Vec<&str> = command
        .get_args()
        .map(|word| word.to_str().unwrap())
        .collect();
    let _server = Process::serve(&arguments, port, data.path());
    let version = json!(["stream.version", "account-1"]);
    assert_eq!(Client::new(port, Some(token)).rpc(&version).ok(), 0);
    assert_eq!(Client::new(port, Some(ADMIN)).rpc(&version).status, 403);
}

fn path(directory: &TempDir) -> &str {
    directory.path().to_str().unwrap()
}
