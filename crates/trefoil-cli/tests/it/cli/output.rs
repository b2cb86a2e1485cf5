//! `--output`: every form of the same data, and how it looks on a terminal.

use serde_json::{Value, json};

use super::{Cli, in_terminal};
use crate::harness::Server;

/// Data that must be quoted, for JSON and for CSV.
const HARD: &str = r#"{"text": "a, \"b\"\nc", "n": 12345678901234567890.10}"#;

fn filled(server: &Server) -> Cli {
    let cli = Cli::of(server);
    cli.ok(&["write", "account-1", "Opened", HARD]);
    cli.ok(&["write", "account,2", "Opened \"twice\""]);
    cli
}

/// The fields of CSV as RFC 4180 describes it.
fn fields(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (is_quoted, character) {
            (true, '"') if characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            (_, '"') => is_quoted = !is_quoted,
            (false, ',') => row.push(std::mem::take(&mut field)),
            (false, '\r') => {}
            (false, '\n') => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            (_, other) => field.push(other),
        }
    }
    assert!(!is_quoted && row.is_empty() && field.is_empty(), "{text}");
    rows
}

#[test]
fn a_list_is_one_document_or_one_object_per_line() {
    let server = Server::in_test_mode();
    let cli = filled(&server);
    for command in [&["read", "--all"][..], &["streams"], &["query"]] {
        let lines = cli.values(command);
        assert_eq!(lines.len(), 2, "{command:?}");
        let ndjson = cli.ok(&[command, &["--output", "ndjson"]].concat());
        assert_eq!(ndjson, cli.ok(&[command, &["--json"]].concat()));
        let document = cli.ok(&[command, &["--output", "json"]].concat());
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document, json!(lines));
    }
    // An empty list is a document too, and one answer is not a list.
    for command in [&["streams", "none-"][..], &["query", "--tag", "none"]] {
        let document = cli.ok(&[command, &["--output=json"]].concat());
        assert_eq!(document, "[]\n", "{command:?}");
    }
    let info = cli.ok(&["ns", "info", "default", "--output", "json"]);
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["messageCount"], 2);
    // The error of a list that was not begun stands alone.
    let said = cli.fails(4, &["read", "account-9", "--output", "json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["error"]["code"], "NOT_FOUND");
}

#[test]
fn csv_is_quoted_and_keeps_every_byte() {
    let server = Server::in_test_mode();
    let cli = filled(&server);
    let events = fields(&cli.ok(&["read", "--all", "--output", "csv"]));
    let head = "id,stream,type,position,globalPosition,data,metadata,time,tags";
    assert_eq!(events[0].join(","), head);
    assert_eq!(events.len(), 3);
    let cell = |row: usize, name: &str| {
        let column = head.split(',').position(|known| known == name).unwrap();
        events[row][column].clone()
    };
    assert_eq!(cell(1, "data"), HARD);
    assert_eq!(cell(1, "metadata"), "");
    assert_eq!(cell(1, "tags"), "[]");
    assert_eq!(cell(2, "stream"), "account,2");
    assert_eq!(cell(2, "type"), "Opened \"twice\"");
    let written = cli.ok(&["write", "account-1", "Closed", "--output", "csv"]);
    assert_eq!(written, "position,globalPosition\r\n1,3\r\n");
}

#[test]
fn forms_that_cannot_be_are_refused() {
    let server = Server::in_test_mode();
    let cli = filled(&server);
    let said = cli.fails(2, &["streams", "--output", "xml"]);
    assert!(said.contains("table, json, ndjson, csv"), "{said}");
    let said = cli.fails(2, &["streams", "--output", "csv", "--json"]);
    assert!(said.contains("--json means --output ndjson"), "{said}");
    let said = cli.fails(2, &["tail", "--all", "--output", "json"]);
    assert!(said.contains("use --output ndjson"), "{said}");
    let said = cli.fails(2, &["query", "--follow", "--output=json"]);
    assert!(said.contains("use --output ndjson"), "{said}");
}

#[test]
fn the_file_of_an_export_is_not_a_form() {
    let server = Server::in_test_mode();
    let cli = filled(&server);
    let directory = tempfile::TempDir::new().unwrap();
    for (flags, said) in [
        (&[][..], "exported 2 events\n"),
        (&["--json"], "{\"exported\":2}\n"),
    ] {
        let mut command = cli.command(&["export", "--output", "json"]);
        let output = command.args(flags).current_dir(directory.path()).output();
        assert_eq!(super::errors(&output.unwrap()), said);
        let file = directory.path().join("json");
        let exported = std::fs::read_to_string(&file).unwrap();
        assert_eq!(exported.lines().count(), 2);
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_terminal_has_colour_and_times_as_they_are_said() {
    let server = Server::in_test_mode();
    let cli = filled(&server);
    let shown = in_terminal(&cli.command(&["read", "account-1"]));
    assert!(shown.contains("\u{1b}[36maccount-1\u{1b}[0m"), "{shown:?}");
    assert!(shown.contains("ago") || shown.contains("now"), "{shown:?}");
    let shown = in_terminal(&cli.command(&["streams"]));
    assert!(shown.starts_with("\u{1b}[1mSTREAM"), "{shown:?}");
    let mut plain = cli.command(&["read", "account-1"]);
    let shown = in_terminal(plain.env("NO_COLOR", "1"));
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    // What a program reads is exact, on a terminal too.
    let shown = in_terminal(&cli.command(&["read", "account-1", "--json"]));
    let event: Value = serde_json::from_str(shown.trim()).unwrap();
    assert!(event["time"].as_str().unwrap().ends_with('Z'), "{event}");
    let piped = cli.ok(&["read", "account-1"]);
    assert!(!piped.contains('\u{1b}') && piped.contains("Z  account-1@0"));
}
