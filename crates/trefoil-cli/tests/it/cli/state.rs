//! `trefoil state`: any command, and how its reply is printed.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{Cli, errors, in_terminal};
use crate::harness::{ADMIN, Server, piped};

#[test]
fn words_are_the_users_and_replies_are_bytes() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    assert_eq!(cli.ok(&["state", "SET", "k", "-url"]), "OK\n");
    assert_eq!(cli.ok(&["state", "GET", "k"]), "-url\n");
    assert_eq!(cli.ok(&["state", "SET", "n", "-1"]), "OK\n");
    assert_eq!(cli.ok(&["state", "incrby", "n", "-5"]), "-6\n");
    assert_eq!(
        cli.ok(&["state", "GET", "--json"]),
        "\n",
        "a word, not a flag"
    );
    assert_eq!(cli.ok(&["state", "RPUSH", "l", "a b", "c"]), "2\n");
    assert_eq!(cli.ok(&["state", "LRANGE", "l", "0", "-1"]), "a b\nc\n");
    // Bytes that are no text come back as they were, and large ones do.
    let bytes: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
    let output = piped(&mut cli.command(&["state", "-x", "SET", "b"]), &bytes);
    assert!(output.status.success());
    let output = cli.run(&["state", "GET", "b"]);
    assert_eq!(&output.stdout[..bytes.len()], bytes);
    let lines = cli.ok(&["state", "--output", "csv", "LRANGE", "l", "0", "-1"]);
    assert_eq!(lines, "value\r\na b\r\nc\r\n");
    cli.ok(&["state", "HSET", "h", "z", "1", "a", "2"]);
    let map: Value = serde_json::from_str(&cli.ok(&["state", "--json", "HGETALL", "h"])).unwrap();
    assert_eq!(map, json!({"z": "1", "a": "2"}));
}

#[test]
fn a_terminal_shows_the_type_of_a_reply() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let shown = |words: &[&str]| {
        let shown = in_terminal(&cli.command(&[&["state"], words].concat()));
        shown.replace("\r\n", "\n")
    };
    assert_eq!(shown(&["SET", "k", "a \u{1b}[2J\"b\""]), "OK\n");
    assert_eq!(shown(&["GET", "k"]), "\"a \\u{1b}[2J\\\"b\\\"\"\n");
    assert_eq!(shown(&["GET", "none"]), "(nil)\n");
    assert_eq!(shown(&["RPUSH", "l", "a", "b"]), "(integer) 2\n");
    assert_eq!(shown(&["LRANGE", "l", "0", "-1"]), "1) \"a\"\n2) \"b\"\n");
}

#[test]
fn what_cannot_be_run_says_why() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    for command in ["INFO", "SUBSCRIBE", "MULTI", "nonsense"] {
        let said = cli.fails(1, &["state", command, "x"]);
        assert!(said.contains(command), "{said}");
    }
    let said = cli.fails(1, &["state", "GET"]);
    assert!(said.contains("wrong number of arguments"), "{said}");
    cli.ok(&["state", "SET", "k", "text"]);
    let said = cli.fails(3, &["state", "INCR", "k"]);
    assert!(said.contains("not an integer"), "{said}");
    cli.fails(2, &["state"]);
    let mut wrong = cli.command(&["state", "--token", &ADMIN[..20], "GET", "k"]);
    let output = wrong.env("TREFOIL_URL", "http://127.0.0.1:1").output();
    assert!(errors(&output.unwrap()).contains("cannot reach the server"));
    // A reader that has gone is no error.
    let bytes = vec![b'a'; 1_000_000];
    piped(&mut cli.command(&["state", "-x", "SET", "big"]), &bytes);
    let mut reading = cli.command(&["state", "GET", "big"]);
    let mut child = { reading.stdout(Stdio::piped()).stderr(Stdio::piped()) }
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), errors(&output).as_str()),
        (Some(0), "")
    );
}
