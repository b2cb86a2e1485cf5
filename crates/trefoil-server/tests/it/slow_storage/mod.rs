//! One namespace whose storage hardly answers at all, and clients of others who notice nothing of it.
//!
//! The storage of the slow one waits until a gate is opened, and the gate is opened when the clients of
//! the others are done. So nothing here depends on how fast anything is. The same with a disk, which does
//! not say that it waits, and clients of the same namespace.

mod home;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trefoil::home::MemoryHome;
use trefoil::{Commit, NamespaceId, Namespaces, NamespacesOptions, NewEvent, NewNamespace, Token};
use trefoil_grpc::{
    AppendCondition, AppendRequest, Client, Connect, Event, Query, QueryItem, ReadRequest,
};
use trefoil_server::Config;

use self::home::{Gate, WaitingHome};
use crate::client::{bearer_of, request};
use crate::harness::TestServer;
use crate::other_storage::resp;

/// How many other namespaces there are, and how many clients each of them has per protocol.
const OTHERS: usize = 10;
const CLIENTS: usize = 7;

/// How many calls the slow namespace has at once over gRPC: more than there are threads for reads.
const SLOW_CALLS: usize = 100;

/// What the threads are called that may read a storage that waits.
const READERS: [&str; 6] = [
    "trefoil-wait",
    "trefoil-tend",
    "trefoil-commit",
    "trefoil-task",
    "trefoil-open",
    "storage",
];

/// Every kind of request over HTTP that reads or writes a namespace.
const CALLS: [&str; 16] = [
    r#"["stream.get","a-1"]"#,
    r#"["stream.last","a-1"]"#,
    r#"["stream.version","a-1"]"#,
    r#"["category.get","a"]"#,
    r#"["events.query",{"items":[{"types":["T"],"tags":["t:1"]}]}]"#,
    r#"["events.query",{"items":[{"tags":["t:1"]}]},{"explain":true}]"#,
    r#"["events.get",1]"#,
    r#"["events.types"]"#,
    r#"["events.tags"]"#,
    r#"["events.tracking","source"]"#,
    r#"["ns.streams"]"#,
    r#"["ns.categories"]"#,
    r#"["ns.tracking"]"#,
    r#"["stream.write","a-1",{"type":"T","data":{}}]"#,
    r#"["commit",{"conditions":[{"query":{"items":[{"types":["Never"]}]}},{"key":"k","exists":true}],"events":[{"stream":"a-2","type":"T","data":{}}],"state":[["APPEND","k","x"]]}]"#,
    r#"["commit",{"state":[["HGETALL","h"]]}]"#,
];

/// Commands of RESP that read or write a namespace.
const COMMANDS: [&[&str]; 11] = [
    &["GET", "k"],
    &["HGETALL", "h"],
    &["STRLEN", "k"],
    &["SET", "other", "x"],
    &["INCR", "n"],
    &["WATCH", "k"],
    &["MULTI"],
    &["APPEND", "k", "y"],
    &["EXEC"],
    &["EVENT.LAST", "a-1"],
    &["EVENT.VERSION", "a-1"],
];

/// The namespaces: the slow one first, each with data that is not in memory, and their tokens.
fn namespaces(gate: &Arc<Gate>, is_said: bool) -> (Namespaces, Vec<Token>) {
    let slow = NamespaceId::new("slow").unwrap();
    let home = WaitingHome {
        inner: MemoryHome::new(),
        is_said,
        slow: slow.clone(),
        gate: Arc::clone(gate),
    };
    let options = NamespacesOptions::default();
    let namespaces = Namespaces::open_in(Arc::new(home), options).unwrap();
    let others = (0..OTHERS).map(|n| NamespaceId::new(&format!("other-{n}")).unwrap());
    let mut tokens = Vec::new();
    for id in std::iter::once(slow).chain(others) {
        tokens.push(namespaces.create(&id, NewNamespace::default()).unwrap().1);
        let database = namespaces.database(&id).unwrap();
        let event = || NewEvent::new("a-1", "T", "{}").with_tag("t:1");
        let first = Commit::new([event(), event()]);
        database.commit(first).unwrap();
        let numbered = (0..20).map(|number| format!("SET k-{number} 1"));
        let lines = ["SET k value", "HSET h field value"].map(str::to_owned);
        for line in lines.into_iter().chain(numbered) {
            let words = line.split(' ').map(|word| word.to_owned().into());
            let call = trefoil::Call::new(words.collect()).unwrap().unwrap();
            let transaction = trefoil::Transaction::of_call(call);
            database.transact(transaction).unwrap();
        }
        // What is read from now on is read from the storage.
        database.checkpoint().unwrap();
    }
    (namespaces, tokens)
}

fn call_http(address: SocketAddr, token: &Token, calls: &[&str]) {
    let bearer = bearer_of(token.reveal());
    for call in calls {
        let reply = request(address, "POST", "/rpc", &bearer, call.as_bytes());
        assert_eq!(reply.status, 200, "{call}: {}", reply.text());
    }
    let exported = request(address, "GET", "/export", &bearer, b"");
    assert_eq!(exported.status, 200, "{}", exported.text());
    assert!(exported.text().lines().count() >= 2);
}

fn call_resp(address: SocketAddr, token: &Token) {
    let mut commands: Vec<&[&str]> = COMMANDS.to_vec();
    let sign_in = ["AUTH", token.reveal()];
    commands.insert(0, &sign_in);
    let replies = resp(address, &commands);
    assert!(replies.starts_with("+OK\r\n$"), "{replies}");
    assert!(!replies.contains("\r\n-"), "{replies}");
}

async fn connect_grpc(address: SocketAddr, token: &Token) -> Client {
    let connect = Connect {
        url: format!("http://{address}"),
        token: Some(token.reveal().to_owned()),
        ..Connect::default()
    };
    Client::connect(connect).await.unwrap()
}

fn tagged() -> Query {
    let item = QueryItem {
        types: Vec::new(),
        tags: vec!["t:1".into()],
    };
    Query { items: vec![item] }
}

/// Reads, follows and appends over gRPC.
async fn call_grpc(mut client: Client) {
    let request = ReadRequest {
        query: Some(tagged()),
        ..ReadRequest::default()
    };
    let mut read = client.read(request).await.unwrap();
    assert!(!read.message().await.unwrap().unwrap().events.is_empty());
    let subscribe = trefoil_grpc::SubscribeRequest {
        query: Some(tagged()),
        ..Default::default()
    };
    let mut feed = client.subscribe(subscribe).await.unwrap();
    assert!(!feed.message().await.unwrap().unwrap().events.is_empty());
    assert_eq!(client.tracking("source").await.unwrap(), None);
    let never = QueryItem {
        types: vec!["Never".into()],
        tags: Vec::new(),
    };
    let append = AppendRequest {
        events: vec![Event {
            event_type: "T".into(),
            data: "{}".into(),
            ..Event::default()
        }],
        condition: Some(AppendCondition {
            fail_if_events_match: Some(Query { items: vec![never] }),
            after: None,
        }),
        tracking_info: None,
    };
    client.append(append).await.unwrap();
}

/// Clients of all protocols, each on a thread or as a task; they are done when all of these are.
struct Crowd {
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn start(server: &TestServer, token: &Token, clients: usize, grpc_calls: usize) -> Self {
        let mut threads = Vec::new();
        for _ in 0..clients {
            let (http, resp, token) = (server.address, server.resp, token.clone());
            let other = token.clone();
            threads.push(std::thread::spawn(move || call_http(http, &token, &CALLS)));
            threads.push(std::thread::spawn(move || call_resp(resp, &other)));
        }
        let (grpc, token) = (server.grpc, token.clone());
        threads.push(std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            runtime.block_on(async {
                let client = connect_grpc(grpc, &token).await;
                let calls = (0..grpc_calls).map(|_| tokio::spawn(call_grpc(client.clone())));
                for call in calls.collect::<Vec<_>>() {
                    call.await.unwrap();
                }
            });
        }));
        Self { threads }
    }

    fn n_done(&self) -> usize {
        let threads = self.threads.iter();
        threads.filter(|thread| thread.is_finished()).count()
    }

    fn wait(self) {
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn clients_of_other_namespaces_notice_nothing_of_a_slow_storage() {
    let gate = Arc::new(Gate::default());
    let (namespaces, tokens) = namespaces(&gate, true);
    let server = TestServer::on(Config::default(), namespaces);
    let [slow, others @ ..] = tokens.as_slice() else {
        panic!("no namespaces");
    };
    gate.close();
    let stuck = Crowd::start(&server, slow, CALLS.len(), SLOW_CALLS);
    let deadline = Instant::now() + Duration::from_secs(20);
    while gate.n_waiting() < 8 {
        assert!(Instant::now() < deadline, "nobody waits: {gate:?}");
        std::thread::sleep(Duration::from_millis(5));
    }

    let crowds: Vec<Crowd> = others
        .iter()
        .map(|token| Crowd::start(&server, token, CLIENTS, CLIENTS))
        .collect();
    crowds.into_iter().for_each(Crowd::wait);
    assert_eq!(stuck.n_done(), 0, "nobody has opened the gate");

    gate.open();
    stuck.wait();
    let threads = gate.threads();
    assert!(threads.contains("trefoil-wait"), "{threads:?}");
    let serving = threads
        .iter()
        .find(|name| !READERS.contains(&name.as_str()));
    assert_eq!(serving, None, "of {threads:?}");
}

#[test]
fn clients_do_not_wait_for_what_others_read_from_a_slow_disk() {
    let gate = Arc::new(Gate::default());
    let (namespaces, tokens) = namespaces(&gate, false);
    let server = TestServer::on(Config::default(), namespaces);
    let (address, token) = (server.resp, tokens[0].clone());
    let ask = move |commands: &[&[&str]]| {
        let sign_in = ["AUTH", token.reveal()];
        let commands: Vec<&[&str]> = std::iter::once(&sign_in[..])
            .chain(commands.iter().copied())
            .collect();
        resp(address, &commands)
    };
    // It shows that the disk is slow.
    gate.delay(Duration::from_millis(1));
    let read = ask(&[
        &["GET", "k"],
        &["GET", "k-0"],
        &["GET", "k-1"],
        &["INCR", "k-2"],
    ]);
    assert_eq!(read, "+OK\r\n$5\r\nvalue\r\n$1\r\n1\r\n$1\r\n1\r\n:2\r\n");
    gate.delay(Duration::ZERO);
    gate.close();
    let stuck: Vec<JoinHandle<String>> = [
        vec!["GET", "k-3"],
        vec!["INCR", "k-4"],
        vec!["HGETALL", "h"],
        vec!["MGET", "k-5", "none"],
        vec!["WATCH", "k-6"],
        vec!["INFO", "keyspace"],
    ]
    .into_iter()
    .map(|command| {
        let ask = ask.clone();
        std::thread::spawn(move || ask(&[&command]))
    })
    .collect();
    let deadline = Instant::now() + Duration::from_secs(20);
    // There are four threads for such reads.
    while gate.n_waiting() < 4 {
        assert!(Instant::now() < deadline, "nobody waits: {gate:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let others = ask(&[&["GET", "k-1"], &["INCR", "k-2"], &["APPEND", "k", "s"]]);
    assert_eq!(others, "+OK\r\n$1\r\n1\r\n:3\r\n:6\r\n");
    assert!(stuck.iter().all(|client| !client.is_finished()));
    gate.open();
    let replies: Vec<String> = { stuck.into_iter() }
        .map(|client| client.join().unwrap())
        .collect();
    let expected = [
        "+OK\r\n$1\r\n1\r\n",
        "+OK\r\n:2\r\n",
        "+OK\r\n*2\r\n$5\r\nfield\r\n$5\r\nvalue\r\n",
        "+OK\r\n*2\r\n$1\r\n1\r\n$-1\r\n",
        "+OK\r\n+OK\r\n",
        "+OK\r\n$45\r\n# Keyspace\r\ndb0:keys=22,",
    ];
    let is_expected = |(reply, expected): (&String, &&str)| reply.starts_with(*expected);
    assert!(
        replies.iter().zip(&expected).all(is_expected),
        "{replies:?}"
    );
    let threads = gate.threads();
    let waits = |name: &String| name.starts_with("trefoil-resp") || name == "trefoil-commit";
    assert_eq!(
        threads.iter().find(|name| waits(name)),
        None,
        "of {threads:?}"
    );
}
