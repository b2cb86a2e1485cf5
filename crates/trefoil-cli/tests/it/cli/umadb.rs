//! Import from UmaDB: from Trefoil, which speaks its protocol, and from UmaDB itself where that is
//! installed.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use trefoil_grpc::{
    AppendRequest, Client, Connect, Event, MetadataEntry, ReadRequest, SequencedEvent, TrackingInfo,
};

use super::{Cli, Process, free_port};
use crate::harness::{ADMIN, Server};

/// A database that speaks the protocol.
struct Peer {
    runtime: Runtime,
    url: String,
    token: String,
}

impl Peer {
    fn new(port: u16, token: &str) -> Self {
        Self {
            runtime: Runtime::new().unwrap(),
            url: format!("http://127.0.0.1:{port}"),
            token: token.to_owned(),
        }
    }

    fn of(server: &Server) -> Self {
        Self::new(server.grpc_port, ADMIN)
    }

    fn client(&self) -> Option<Client> {
        let connect = Connect {
            url: self.url.clone(),
            token: Some(self.token.clone()),
            ca_certificate: None,
        };
        self.runtime.block_on(Client::connect(connect)).ok()
    }

    fn append(&self, events: Vec<Event>, tracking_info: Option<TrackingInfo>) {
        let request = AppendRequest {
            events,
            condition: None,
            tracking_info,
        };
        let mut client = self.client().unwrap();
        self.runtime.block_on(client.append(request)).unwrap();
    }

    fn all(&self) -> Vec<SequencedEvent> {
        let mut client = self.client().unwrap();
        self.runtime.block_on(async {
            let mut answers = client.read(ReadRequest::default()).await.unwrap();
            let mut events = Vec::new();
            while let Some(answer) = answers.message().await.unwrap() {
                events.extend(answer.events);
            }
            for event in events.iter_mut().filter_map(|event| event.event.as_mut()) {
                // UmaDB keeps the nil UUID, which is no id here.
                event.uuid = event.uuid.replace(NIL, "");
            }
            events
        })
    }

    fn tracking(&self, source: &str) -> Option<u64> {
        let mut client = self.client().unwrap();
        self.runtime.block_on(client.tracking(source)).unwrap()
    }
}

const NIL: &str = "00000000-0000-0000-0000-000000000000";

fn event(data: impl Into<Bytes>, tags: &[&str]) -> Event {
    Event {
        event_type: "Happened".to_owned(),
        tags: tags.iter().map(|tag| tag.to_string()).collect(),
        data: data.into(),
        ..Event::default()
    }
}

fn entry(key: &str, value: &str) -> MetadataEntry {
    MetadataEntry {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

/// Events of every kind, and more of them than one request of an import holds.
fn fill(peer: &Peer) {
    let known = Event {
        uuid: "00000000-0000-4000-8000-000000000001".to_owned(),
        metadata: vec![entry("z", "1"), entry("a", "\"\n\u{e9}"), entry("", "")],
        ..event("{\"n\": 1.0}", &["course:c1", "student:s\u{e9}"])
    };
    let lines = event("{\n\"lines\": 2\r\n}", &["course:c1"]);
    let deep = event(format!("{}{}", "[".repeat(500), "]".repeat(500)), &[]);
    let bytes = event(&b"\x00\xff\xfe"[..], &["bytes"]);
    let nil = Event {
        uuid: NIL.to_owned(),
        ..event("1", &["nil"])
    };
    let long = "t".repeat(1900);
    let many: Vec<String> = (0..700).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let odd = Event {
        event_type: String::new(),
        metadata: (0..30)
            .map(|n| entry(&n.to_string(), &"m".repeat(60_000)))
            .collect(),
        ..event("2", &["", ""])
    };
    let long = Event {
        event_type: long.clone(),
        ..event("3", &[&long])
    };
    peer.append(vec![known.clone(), known.clone(), nil.clone(), nil], None);
    peer.append(vec![odd, long, event("4", &many)], None);
    peer.append(vec![known, lines, deep], None);
    let tracking = |position| TrackingInfo {
        source: "upstream".to_owned(),
        position,
    };
    peer.append(vec![bytes, event("", &[])], Some(tracking(7)));
    peer.append(
        vec![event("\"text\"", &["last"])],
        Some(tracking(u64::MAX >> 1)),
    );
    for batch in 0..10 {
        let number = |n| event(format!("{}", batch * 500 + n), &["many"]);
        peer.append((0..500).map(number).collect(), None);
    }
    for _ in 0..6 {
        peer.append(vec![event(vec![b'x'; 900_000], &["large"])], None);
    }
    let quiet = |source: &str, position| TrackingInfo {
        source: source.to_owned(),
        position,
    };
    // Recorded without events: of a source that stands with some, and of one that does not.
    peer.append(vec![event("5", &["tracked"])], Some(quiet("seen", 3)));
    peer.append(Vec::new(), Some(quiet("seen", 9)));
    peer.append(Vec::new(), Some(quiet("quiet", 7)));
}

/// How many events that are.
const FILLED: u64 = 5020;

/// What an import prints as JSON.
fn imported(imported: u64, skipped: u64, compared: u64, head: u64) -> Value {
    json!({"imported": imported, "skipped": skipped, "compared": compared, "head": head})
}

/// Imports from `peer` into a new server, twice, and compares what gRPC shows of both.
fn import(peer: &Peer) {
    fill(peer);
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let cli = Cli::of(&server);
    let import = ["migrate", "umadb", &peer.url, "--api-key", &peer.token];
    let all = format!(
        "imported {FILLED} events, up to position {FILLED}; {FILLED} are the same on both sides\n"
    );
    assert_eq!(cli.ok(&import), all);
    let here = Peer::of(&server);
    assert_eq!(here.all(), peer.all());
    assert_eq!(here.tracking("upstream"), Some(u64::MAX >> 1));
    assert_eq!(here.tracking("seen"), Some(9));
    assert_eq!(here.tracking("quiet"), None);
    let named = [&import[..], &["--tracking-source", "quiet"]].concat();
    assert_eq!(cli.values(&named), [imported(0, 0, FILLED, FILLED)]);
    assert_eq!(here.tracking("quiet"), Some(7));
    let unknown = [&import[..], &["--tracking-source", "nobody"]].concat();
    let refused = cli.fails(1, &unknown);
    assert!(
        refused.contains("no tracked position of the source \"nobody\""),
        "{refused}"
    );

    peer.append(vec![event("1", &["new"]), event("2", &["new"])], None);
    let head = FILLED + 2;
    assert_eq!(cli.values(&import), [imported(2, 0, head, head)]);
    assert_eq!(here.all(), peer.all());
    let new = cli.values(&["query", "--tag", "new"]);
    assert_eq!((&new[0]["data"], &new[1]["data"]), (&json!(1), &json!(2)));
    let course = cli.values(&["query", "--tag", "course:c1"]);
    assert_eq!(
        course[0]["metadata"],
        json!({"z": "1", "a": "\"\n\u{e9}", "": ""})
    );
    assert_eq!(
        course.last().unwrap()["data"],
        json!({"lines": 2}),
        "JSON is JSON to everybody"
    );

    // What is here goes on by itself; then it is no copy any more.
    cli.ok(&["append", "Own", "--tag", "own"]);
    let refused = cli.fails(1, &import);
    assert!(refused.contains("holds other events than"), "{refused}");
    peer.append(vec![event("3", &["other"])], None);
    let refused = cli.fails(1, &import);
    let own = format!("at global position {}", head + 1);
    assert!(refused.contains(&own), "{refused}");

    let exported = cli.ok(&["export"]);
    let other = Server::in_test_mode();
    let file = data.path().join("export");
    std::fs::write(&file, &exported).unwrap();
    Cli::of(&other).ok(&["import", "--input", file.to_str().unwrap()]);
    assert_eq!(
        Peer::of(&other).all(),
        here.all(),
        "nor does an export change a byte"
    );
}

#[test]
fn a_trefoil_is_imported_as_an_umadb() {
    let source = Server::in_test_mode();
    import(&Peer::of(&source));
}

#[test]
fn an_umadb_is_imported() {
    if let Some((peer, _running)) = umadb() {
        import(&peer);
    }
}

/// UmaDB limits an event to one page, except for its data and metadata, and the data to less than
/// we do. A control character takes one byte there and six in JSON.
#[test]
fn what_is_too_large_is_counted_before_anything_is_imported() {
    let Some((peer, _running)) = umadb() else {
        return;
    };
    let large = |entries: usize| Event {
        metadata: (0..entries)
            .map(|n| entry(&n.to_string(), &"\u{1}".repeat(60_000)))
            .collect(),
        ..event("1", &["large"])
    };
    let tracking = TrackingInfo {
        source: "upstream".to_owned(),
        position: 7,
    };
    peer.append(vec![event("1", &[]), large(11), large(12)], None);
    peer.append(vec![large(12)], Some(tracking));
    peer.append(vec![event("5", &[])], None);
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let cli = Cli::of(&server);
    let import = ["migrate", "umadb", &peer.url, "--api-key", &peer.token];
    let report = format!(
        "2 events of {} are over a limit of Trefoil:\n  \
         2 with more than 4194304 bytes of metadata as JSON: position 3, 4\n",
        peer.url
    );
    let refused = cli.fails(1, &import);
    assert_eq!(
        refused,
        format!("error: {report}Nothing was imported. To leave these out, use --skip-too-large.\n")
    );
    assert_eq!(cli.ok(&["query"]), "");

    let skip = [&import[..], &["--skip-too-large"]].concat();
    let output = cli.run(&skip);
    assert_eq!(
        super::errors(&output),
        format!("{report}They are left out.\n")
    );
    assert_eq!(
        super::text(&output),
        "imported 3 events, up to position 5; 3 are the same on both sides\n"
    );
    let here = Peer::of(&server);
    let fit = |event: &SequencedEvent| ![3, 4].contains(&event.position);
    let fitting: Vec<SequencedEvent> = peer.all().into_iter().filter(fit).collect();
    assert_eq!(here.all(), fitting);
    assert_eq!(here.tracking("upstream"), Some(7));

    // What is not there does not keep an import from going on.
    peer.append(vec![large(12), event("7", &[]), large(12)], None);
    assert_eq!(cli.values(&skip), [imported(1, 2, 4, 8)]);
    assert_eq!(cli.values(&skip), [imported(0, 1, 4, 8)]);
    let positions: Vec<u64> = here.all().iter().map(|event| event.position).collect();
    assert_eq!(positions, [1, 2, 5, 7]);
}

/// A UmaDB that runs until it is dropped, if there is one on this machine.
fn umadb() -> Option<(Peer, (Process, TempDir))> {
    let Some(program) = umadb_program() else {
        let is_needed = std::env::var_os("XTASK_PYTHON").is_some();
        assert!(!is_needed, "there is no umadb");
        eprintln!("skipped: no umadb on this machine; cargo xtask test installs it");
        return None;
    };
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let mut command = Command::new(program);
    command
        .args(["--listen", &format!("127.0.0.1:{port}"), "--db-path"])
        .arg(directory.path())
        .args(["--api-key", "secret"]);
    let process = Process::start(command.stdin(Stdio::null()));
    let peer = Peer::new(port, "secret");
    let started = Instant::now();
    while peer.client().is_none() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "umadb does not answer"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Some((peer, (process, directory)))
}

/// The program, if it is installed for measurements or for the user.
fn umadb_program() -> Option<PathBuf> {
    let peers = "../../target/peers/bin/umadb";
    let installed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(peers);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join("umadb"));
    std::iter::once(installed)
        .chain(found)
        .find(|program| program.is_file())
}

#[test]
fn what_cannot_be_reached_or_taken_is_told() {
    let source = Server::in_test_mode();
    let peer = Peer::of(&source);
    assert_eq!(peer.all(), []);
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let cli = Cli::of(&server);
    let refused = cli.fails(1, &["migrate", "umadb", "http://127.0.0.1:1"]);
    assert!(
        refused.contains("http://127.0.0.1:1: cannot connect"),
        "{refused}"
    );
    cli.fails(1, &["migrate", "umadb", "nonsense"]);
    cli.fails(2, &["migrate", "umadb"]);
    let own = format!("http://127.0.0.1:{}", server.grpc_port);
    let refused = cli.fails(1, &["migrate", "umadb", &own, "--api-key", "wrong"]);
    assert!(refused.contains("Unauthenticated"), "{refused}");

    let import = ["migrate", "umadb", &peer.url];
    assert_eq!(
        cli.ok(&import),
        "imported 0 events, up to position 0; 0 are the same on both sides\n"
    );
    cli.ok(&["append", "Own"]);
    let refused = cli.fails(1, &import);
    assert!(
        refused.contains("at global position 1, is not there"),
        "{refused}"
    );
    assert_eq!(cli.values(&["query"]).len(), 1);
}
