//! An application that is not Trefoil's own: its commands over every protocol, its events, and what
//! falls due.

#[path = "../../examples/limits/application.rs"]
mod limits;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use limits::LIMITS;
use trefoil::{
    Clock, DEFAULT_NAMESPACE, Database, Error, ManualTime, NamespaceId, Namespaces,
    NamespacesOptions, OpenDatabase, Options, Reply, Selection, Step, Timestamp, Transaction, cmd,
};
use trefoil_server::Config;

use crate::client::rpc;
use crate::harness::TestServer;
use crate::resp::Client;

const DOCUMENT: &str = include_str!("../../../../docs/extending.md");

/// Namespaces with the application, and a clock that the test sets.
fn options() -> (NamespacesOptions, Arc<ManualTime>) {
    let time = ManualTime::new(Timestamp(1_700_000_000_000_000_000));
    let database = Options::default().with_clock(Clock::new(time.clone()));
    let options = NamespacesOptions::default().with_database(database.with_application(&LIMITS));
    (options, time)
}

fn database(namespaces: &Namespaces) -> OpenDatabase {
    let id = NamespaceId::new(DEFAULT_NAMESPACE).unwrap();
    namespaces.database(&id).unwrap()
}

fn transaction(database: &OpenDatabase, lines: &[&str]) -> Transaction {
    let call = |line: &&str| {
        let words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
        let call = database.commands().call(words.collect());
        Step::Call(call.unwrap().unwrap())
    };
    Transaction::default().with_steps(lines.iter().map(call))
}

/// The types of the events of a key's stream.
fn events(database: &OpenDatabase, key: &str) -> Vec<String> {
    let events = database.read(&Selection::stream(format!("limit-{key}")));
    let events = events.unwrap();
    let types = events.iter().map(|event| event.event_type().to_owned());
    types.collect()
}

#[test]
fn the_library_runs_its_commands_in_transactions() {
    let (options, _time) = options();
    let namespaces = Namespaces::in_memory(options).unwrap();
    namespaces.ensure_default(None).unwrap();
    let database = database(&namespaces);
    let run = |lines: &[&str]| database.transact(transaction(&database, lines));
    let executed = run(&["LIMIT.TAKE a 2 10", "SET other 1", "limit.take a 2 10"]).unwrap();
    let replies = [Reply::Integer(1), Reply::OK, Reply::Integer(0)];
    assert_eq!(executed.replies, replies);
    assert_eq!(executed.events.len(), 1, "the event is part of the commit");
    assert_eq!(events(&database, "a"), ["LimitReached"]);
    // What is refused takes back everything, its event and its timer included.
    let refused = run(&["LIMIT.TAKE b 1 10", "LIMIT.TAKE a 2 10"]);
    assert!(matches!(
        refused,
        Err(Error::CommandFailed { index: 1, .. })
    ));
    assert_eq!(events(&database, "b"), [""; 0]);
    let left = run(&["LIMIT.LEFT b 1"]).unwrap();
    assert_eq!(left.replies, [Reply::Integer(1)]);
    namespaces.close().unwrap();
}

#[test]
fn clients_run_its_commands_over_resp_and_http() {
    let (options, _time) = options();
    let server = TestServer::with_options(Config::default(), options);
    let mut client = Client::known(&server);
    assert_eq!(client.say("LIMIT.TAKE web 2 10"), "1");
    let body = r#"["commit", {"state": [["LIMIT.TAKE", "web", 2, 10], ["LIMIT.LEFT", "web", 2]]}]"#;
    let reply = rpc(server.address, body);
    assert!(
        reply.text().ends_with(r#""state":[0,0]}"#),
        "{}",
        reply.text()
    );
    assert_eq!(
        client.say("LIMIT.TAKE web 2 10"),
        "-LIMITED all 2 are taken"
    );
    assert_eq!(client.say("EVENT.VERSION limit-web"), "0");
    assert_eq!(
        client.say("LIMIT.TAKE web"),
        "-ERR wrong number of arguments for 'limit.take' command"
    );
    assert_eq!(client.say("MULTI"), "+OK");
    assert_eq!(client.say("LIMIT.TAKE multi 5 10"), "+QUEUED");
    assert_eq!(client.say("EXEC"), "[4]");
}

#[test]
fn clients_are_told_of_its_commands() {
    let (options, _time) = options();
    let server = TestServer::with_options(Config::default(), options);
    let plain = TestServer::production();
    let mut client = Client::known(&server);
    let mut other = Client::known(&plain);
    let info = client.say("COMMAND INFO LIMIT.TAKE");
    assert!(info.contains("limit.take"), "{info}");
    assert!(info.contains("write") && info.contains("@write"), "{info}");
    assert!(!other.say("COMMAND INFO LIMIT.TAKE").contains("limit"));
    let docs = client.say("COMMAND DOCS limit.left");
    assert!(docs.contains("Returns how many are left"), "{docs}");
    assert_eq!(
        client.say("COMMAND GETKEYS LIMIT.TAKE web 2 10"),
        "[\"web\"]"
    );
    assert_eq!(
        client.say("COMMAND LIST FILTERBY PATTERN limit.*"),
        "[\"limit.left\" \"limit.take\"]"
    );
    assert!(client.say("ACL CAT fast").contains("limit.left"));
    assert!(client.say("ACL CAT write").contains("limit.take"));
    assert!(!other.say("ACL CAT write").contains("limit.take"));
    // Seats are there on both.
    for client in [&mut client, &mut other] {
        assert!(client.say("ACL CAT write").contains("seats.reserve"));
    }
}

/// Waits until a window has ended in the background.
fn wait_for_end(database: &OpenDatabase, key: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while events(database, key).last().map(String::as_str) != Some("WindowEnded") {
        assert!(Instant::now() < deadline, "{:?}", events(database, key));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_falls_due_happens_once_and_outlives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (options, time) = options();
    let open = || {
        let namespaces = Namespaces::open(directory.path(), options.clone()).unwrap();
        namespaces.ensure_default(None).unwrap();
        namespaces
    };
    let run = |namespaces: &Namespaces, line: &str| {
        let database = database(namespaces);
        let transaction = transaction(&database, &[line]).lenient();
        database.transact(transaction).unwrap().replies.pop()
    };
    let namespaces = open();
    run(&namespaces, "LIMIT.TAKE a 1 10");
    run(&namespaces, "LIMIT.TAKE b 5 60");
    // The end of the window is there for whoever asks, even if nobody did anything meanwhile.
    time.advance(Duration::from_secs(11));
    assert_eq!(
        run(&namespaces, "LIMIT.TAKE a 1 10"),
        Some(Reply::Integer(0))
    );
    let taken = ["LimitReached", "WindowEnded", "LimitReached"];
    assert_eq!(events(&database(&namespaces), "a"), taken);
    namespaces.close().unwrap();
    drop(namespaces);
    time.advance(Duration::from_secs(60));
    let namespaces = open();
    let database = database(&namespaces);
    wait_for_end(&database, "a");
    wait_for_end(&database, "b");
    assert_eq!(events(&database, "a").len(), 4);
    assert_eq!(events(&database, "b"), ["WindowEnded"]);
    namespaces.close().unwrap();
}

/// The same in the document.
fn in_a_program() -> trefoil::Result<()> {
    let options = Options::default().with_application(&LIMITS);
    let db = Database::in_memory(&options)?;
    let take = cmd!(db, "LIMIT.TAKE", "mails:ada", 5, 60)?;
    let executed = db.transact(Transaction::of_call(take))?;
    assert_eq!(executed.replies, [Reply::Integer(4)]);
    Ok(())
}

/// What the document shows is the code of the example and of this file, word by word.
#[test]
fn the_document_shows_the_example() {
    in_a_program().unwrap();
    let here = include_str!("application.rs");
    let (_, program) = here
        .split_once("fn in_a_program() -> trefoil::Result<()> {")
        .unwrap();
    let (program, _) = program.split_once("\n    Ok(())\n}").unwrap();
    let program = format!("{}\n", program.replace("\n    ", "\n").trim_start());
    for code in [
        include_str!("../../examples/limits/application.rs"),
        include_str!("../../examples/limits/main.rs"),
        &program,
    ] {
        let block = format!("```rust\n{code}```\n");
        assert!(
            DOCUMENT.contains(&block),
            "the document should have:\n{block}"
        );
    }
}

#[test]
fn the_session_of_the_document_is_right() {
    let (options, _time) = options();
    let server = TestServer::with_options(Config::default(), options);
    let mut client = Client::known(&server);
    let mut n_commands = 0;
    let mut lines = DOCUMENT.lines();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("> ") else {
            continue;
        };
        let expected = lines.next().unwrap();
        let expected = expected.replace("(integer) ", "").replace("(error) ", "-");
        assert_eq!(client.say(command), expected, "{command}");
        n_commands += 1;
    }
    assert_eq!(n_commands, 4);
}
