//! `append` and `query`: events by type and tags, under conditions.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Cli, Process, text};
use crate::harness::Server;

/// A server on which two students enrolled in a course.
fn courses() -> (Server, Cli) {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let define = ["append", "CourseDefined", r#"{"seats": 20.0}"#];
    cli.ok(&[&define[..], &["--tag", "course:c1"]].concat());
    for student in ["student:s1", "student:s2"] {
        cli.ok(&["append", "Enrolled", "--tag", "course:c1", "--tag", student]);
    }
    cli.ok(&["write", "order-1", "Placed"]);
    (server, cli)
}

#[track_caller]
fn positions(cli: &Cli, arguments: &[&str]) -> Vec<u64> {
    let values = cli.values(&[&["query"], arguments].concat());
    let position = |value: &Value| value["globalPosition"].as_u64().unwrap();
    values.iter().map(position).collect()
}

#[test]
fn tags_are_shown_wherever_events_are_read() {
    let (_server, cli) = courses();
    cli.ok(&[
        "append",
        "Enrolled",
        "--stream",
        "course-1",
        "--tag",
        "course:c1",
    ]);
    for arguments in [
        &["read", "course-1"][..],
        &["read", "course-1", "--last"],
        &["read", "course"],
    ] {
        let line = cli.ok(arguments);
        assert!(
            line.contains("course-1@0  Enrolled  [course:c1]  {}"),
            "{line}"
        );
        assert_eq!(cli.values(arguments)[0]["tags"], json!(["course:c1"]));
    }
    let all = cli.values(&["read", "--all"]);
    assert_eq!(all[1]["tags"], json!(["course:c1", "student:s1"]));
    assert_eq!(all[3]["tags"], json!([]));
    assert!(cli.ok(&["read", "order-1"]).contains("  Placed  {}"));
}

#[test]
fn events_are_appended_with_tags_and_found_by_them() {
    let (_server, cli) = courses();
    let line = cli.ok(&["query", "--tag", "student:s1"]);
    let (position, rest) = line.split_once("  ").unwrap();
    assert_eq!(position, "2");
    assert!(
        rest.ends_with("Z  -  Enrolled  [course:c1, student:s1]  {}\n"),
        "{line}"
    );
    let value = &cli.values(&["query", "--type", "CourseDefined"])[0];
    let id = value["id"].clone();
    let time = value["time"].clone();
    assert_eq!(
        *value,
        json!({"id": id, "stream": "", "type": "CourseDefined", "position": -1,
            "globalPosition": 1, "data": {"seats": 20.0}, "metadata": null, "time": time,
            "tags": ["course:c1"]})
    );
    for (arguments, expected) in [
        (&[][..], &[1, 2, 3, 4][..]),
        (&["--tag", "course:c1"], &[1, 2, 3]),
        (&["--tag", "course:c1", "--tag", "student:s2"], &[3]),
        (&["--tag", "course:c1", "--type", "CourseDefined"], &[1]),
        (&["--type", "CourseDefined", "--type", "Placed"], &[1, 4]),
        (
            &["--type", "Placed", "--item", "type=Enrolled,tag=student:s1"],
            &[2, 4],
        ),
        (&["--item", r#"{"tags":["student:s1"]}"#], &[2]),
        (&["--item", "tag=nobody"], &[]),
        (&["--stream", "order-1"], &[4]),
        (&["--category", "order", "--type", "Placed"], &[4]),
        (&["--category", "order", "--tag", "course:c1"], &[]),
        (&["--after", "2"], &[3, 4]),
        (&["--from", "2", "--limit", "2"], &[2, 3]),
        (&["--limit", "0"], &[]),
        (&["--last", "2"], &[3, 4]),
        (&["--last", "1", "--tag", "course:c1"], &[3]),
        (&["--last", "9", "--type", "Enrolled"], &[2, 3]),
    ] {
        assert_eq!(positions(&cli, arguments), expected, "{arguments:?}");
    }
}

#[test]
fn many_events_are_found_in_pages() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let events: Vec<Value> = (0..2500)
        .map(|n| json!({"type": "E", "data": n, "tags": [if n % 2 == 0 { "even" } else { "odd" }]}))
        .collect();
    server
        .client()
        .rpc(&json!(["commit", {"events": events}]))
        .ok();
    let odd: Vec<u64> = (1..=1250).map(|n| n * 2).collect();
    assert_eq!(positions(&cli, &["--tag", "odd"]), odd);
    assert_eq!(
        positions(&cli, &["--tag", "odd", "--limit", "1001"]),
        odd[..1001]
    );
    assert_eq!(
        positions(&cli, &["--tag", "odd", "--last", "1001"]),
        odd[249..]
    );
    assert_eq!(positions(&cli, &["--tag", "odd", "--last", "5000"]), odd);
}

#[test]
fn an_event_is_appended_only_if_nothing_stands_in_its_way() {
    let (_server, cli) = courses();
    let append = ["append", "Enrolled", "--tag", "course:c1", "--if-none"];
    let refused = cli.fails(
        3,
        &[&append[..], &["type=Enrolled,tag=student:s1"]].concat(),
    );
    assert_eq!(
        refused,
        "error: condition 0 failed: the event at global position 2 matches (CONDITION_FAILED)\n"
    );
    for guard in [
        &["tag=course:c1", "--after", "2"][..],
        &["tag=course:c1,after=2"],
        &["tag=nobody", "--if-none", "type=Enrolled,type=Placed"],
        &[r#"{"tags":["course:c1"],"after":2}"#],
    ] {
        cli.fails(3, &[&append[..], guard].concat());
    }
    assert_eq!(cli.ok(&[&append[..], &["tag=student:s3"]].concat()), "5\n");
    let both = ["tag=nobody", "--if-none", "tag=course:c1,after=5"];
    assert_eq!(cli.ok(&[&append[..], &both].concat()), "6\n");
    assert_eq!(
        cli.ok(&[&append[..], &["tag=course:c1", "--after", "6"]].concat()),
        "7\n"
    );

    let placed = [
        "append",
        "Placed",
        "[1.0]",
        "--stream",
        "order-2",
        "--expected-version",
    ];
    assert_eq!(cli.ok(&[&placed[..], &["-1"]].concat()), "order-2@0  8\n");
    cli.fails(3, &[&placed[..], &["-1"]].concat());
    let id = "22222222-2222-4222-8222-222222222222";
    let more = ["0", "--id", id, "--meta", r#"{"m":1}"#];
    let expected = json!({"id": id, "stream": "order-2", "position": 1, "globalPosition": 9});
    for _ in 0..2 {
        let appended = cli.values(&[&placed[..], &more].concat());
        assert_eq!(appended[0], expected, "the second time it is a repetition");
    }
    let last = cli.values(&["read", "order-2", "--last"]);
    assert_eq!(
        (&last[0]["data"], &last[0]["metadata"]),
        (&json!([1.0]), &json!({"m": 1}))
    );
}

#[test]
fn data_comes_from_standard_input_too() {
    let (_server, cli) = courses();
    let mut command = cli.command(&["append", "Note", "-", "--tag", "piped"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let text_of_lines = b"{\n \"a\":\r\n \"\\n\"}\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text_of_lines)
        .unwrap();
    assert_eq!(text(&child.wait_with_output().unwrap()), "5\n");
    // One event is one line, whatever its data looks like.
    let piped = cli.values(&["query", "--tag", "piped"]);
    assert_eq!(piped.len(), 1);
    assert_eq!(piped[0]["data"], json!({"a": "\n"}));
}

#[test]
fn what_cannot_work_is_wrong_usage() {
    let (_server, cli) = courses();
    for arguments in [
        &["query", "--item", "course:c1"][..],
        &["query", "--item", "tag=a,after=3"],
        &["query", "--after", "-1"],
        &["query", "--after", "1", "--from", "1"],
        &["query", "--last", "1", "--limit", "1"],
        &["query", "--limit", "1", "--follow"],
        &["query", "--stream", "a-1", "--category", "a"],
        &["append"],
        &["append", "T", "{"],
        &["append", "T", "{}", "--metadata", "[]"],
        &["append", "T", "--after", "3"],
        &["append", "T", "--if-none", "tag=a,b"],
        &["append", "T", "--expected-version", "0"],
    ] {
        cli.fails(2, arguments);
    }
    let long = "t".repeat(4097);
    for arguments in [
        &["query", "--tag", &long][..],
        &["append", "T", "--tag", &long],
        &["append", "T", "--tag", ""],
    ] {
        assert!(
            cli.fails(1, arguments).contains("INVALID_REQUEST"),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_query_is_explained() {
    let (_server, cli) = courses();
    let query = [
        "query",
        "--tag",
        "student:s1",
        "--type",
        "Enrolled",
        "--explain",
    ];
    let told = cli.ok(&query);
    assert!(told.contains("of the events from 1 to 4 at most"), "{told}");
    let plan = &cli.values(&query)[0];
    assert_eq!(plan["range"], json!([1, 4]));
    assert!(
        plan["strategy"].is_string() && plan["items"].is_array(),
        "{plan}"
    );
}

#[test]
fn a_query_is_followed() {
    let (_server, cli) = courses();
    for arguments in [
        &["--tag", "course:c1"][..],
        &["--tag", "course:c1", "--after", "2"],
        &["--tag", "course:c1", "--from", "2"],
        &["--tag", "course:c1", "--last", "1"],
        &["--stream", "order-1", "--from", "4"],
        &["--category", "order", "--type", "Placed", "--last", "2"],
    ] {
        let past = positions(&cli, arguments);
        let all = [&["query", "--follow", "--json"], arguments].concat();
        let mut process = Process::start(&mut cli.command(&all));
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let mut next = || {
            let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            event["globalPosition"].as_u64().unwrap()
        };
        let seen: Vec<u64> = past.iter().map(|_| next()).collect();
        assert_eq!(seen, past, "{arguments:?}");
        cli.ok(&["append", "Other", "--tag", "course:c2"]);
        // One that every one of these queries matches.
        let matching = [
            "append",
            "Placed",
            "--tag",
            "course:c1",
            "--stream",
            "order-1",
            "--json",
        ];
        let appended: Value = serde_json::from_str(&cli.ok(&matching)).unwrap();
        assert_eq!(next(), appended["globalPosition"], "{arguments:?}");
    }
}
