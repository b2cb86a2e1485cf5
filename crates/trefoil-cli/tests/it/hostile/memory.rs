//! Memory: what is held for clients stays within the budget, however much they ask for.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use trefoil_grpc::SubscribeRequest;

use crate::dcb::Grpc;
use crate::harness::{ADMIN, Resp, Server, Value, connect};

/// The budget of the server under attack.
const BUDGET: &str = "--client-memory-max=64MiB";

/// How much more than before the server may have held at its peak: the budget, what the attack has
/// stored, and what an allocator keeps.
const GROWTH_KIB_MAX: u64 = 256 << 10;

fn server(data: &Path) -> Server {
    Server::on(data, &[BUDGET, "--log-level=warn"])
}

/// Runs an attack, during which others are answered, and checks how much memory it took at most.
fn check_peak(server: &Server, attack: impl FnOnce()) {
    // From here on the peak is that of the attack.
    std::fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").unwrap();
    let before = server.status("VmRSS");
    attack();
    check_alive(server);
    let grown = server.status("VmHWM").saturating_sub(before);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB more than before");
}

/// Somebody else is answered.
fn check_alive(server: &Server) {
    let mut client = server.client();
    assert_eq!(client.get("/health").status, 200);
    client.write("alive-1", &json!({}));
}

/// A connection to RESP that is known and whose replies nobody reads.
fn deaf(server: &Server) -> TcpStream {
    let mut socket = connect(server.resp_port).unwrap();
    let auth = format!("AUTH {ADMIN}\r\n");
    socket.write_all(auth.as_bytes()).unwrap();
    socket
}

#[test]
fn memory_that_a_burst_took_is_given_back() {
    const CLIENTS: usize = 64;
    const WORD_BYTES: usize = 3 << 20;
    /// What the allocator keeps for ten seconds, with room for a slow machine.
    const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(60);
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &["--client-memory-max=1GiB"]);
    check_alive(&server);
    let before = server.status("RssAnon");
    let grown = || server.status("RssAnon").saturating_sub(before) >> 10;
    let taken = (CLIENTS * WORD_BYTES) as u64 >> 20;
    let word = vec![b'x'; WORD_BYTES];
    let burst: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut socket = deaf(&server);
            let head = format!("*2\r\n$3\r\nGET\r\n${}\r\n", WORD_BYTES + 1);
            socket.write_all(head.as_bytes()).unwrap();
            socket.write_all(&word).unwrap();
            socket
        })
        .collect();
    let deadline = Instant::now() + GIVEN_BACK_WITHIN;
    while grown() < taken {
        assert!(Instant::now() < deadline, "{} MiB taken", grown());
        thread::sleep(Duration::from_millis(50));
    }
    drop(burst);
    // Nothing is asked of the server meanwhile.
    let deadline = Instant::now() + GIVEN_BACK_WITHIN;
    while grown() > taken / 4 {
        assert!(Instant::now() < deadline, "{} MiB kept", grown());
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn words_without_bytes_are_counted() {
    const WORDS: usize = 1_500_000;
    let data = TempDir::new().unwrap();
    let server = server(data.path());
    check_peak(&server, || {
        let words = "$0\r\n\r\n".repeat(WORDS);
        let unfinished: Vec<TcpStream> = (0..8)
            .map(|_| {
                let mut socket = deaf(&server);
                let head = format!("*{}\r\n", WORDS + 1);
                // One that is refused may be cut off before it has sent all.
                let _ = socket.write_all(head.as_bytes());
                let _ = socket.write_all(words.as_bytes());
                socket
            })
            .collect();
        thread::sleep(Duration::from_millis(500));
        drop(unfinished);
    });
    let mut client = server.resp();
    let mut words = vec![""; WORDS + 1];
    words[0] = "EXISTS";
    let refused = client.try_call(&words);
    let is_refused =
        matches!(&refused, Ok(Value::Error(text)) if text.contains("client-memory-max"));
    assert!(is_refused || refused.is_err(), "{refused:?}");
}

/// Writes events that are worth subscribing to.
fn write_large_events(server: &Server) {
    let text = "x".repeat(1 << 20);
    for n in 0..24 {
        let mut client = server.client();
        client.write(&format!("big-{n}"), &json!({"text": text}));
    }
}

#[test]
fn calls_of_one_connection_that_are_not_read_share_the_budget() {
    const CALLS: usize = 300;
    let data = TempDir::new().unwrap();
    let server = server(data.path());
    write_large_events(&server);
    let Grpc {
        runtime,
        mut client,
    } = Grpc::connect(server.grpc_port, ADMIN);
    check_peak(&server, || {
        runtime.block_on(async {
            let mut unread = Vec::new();
            for _ in 0..CALLS {
                let request = SubscribeRequest::default();
                unread.push(client.subscribe(request).await.unwrap());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            check_alive(&server);
            // What is read is whole, although the others are not.
            let first = unread[0].message().await.unwrap().unwrap();
            let event = first.events[0].event.as_ref().unwrap();
            assert!(event.data.len() > 1 << 20);
        });
    });
}

#[test]
fn subscribers_that_do_not_read_share_the_budget() {
    let data = TempDir::new().unwrap();
    let server = server(data.path());
    write_large_events(&server);
    check_peak(&server, || {
        let deaf: Vec<TcpStream> = (0..40)
            .map(|_| {
                let mut stream = connect(server.port).unwrap();
                let path = format!("/events?category=big&position=0&token={ADMIN}");
                let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        thread::sleep(Duration::from_secs(1));
        check_alive(&server);
        drop(deaf);
    });
}

/// A string of this many bytes, all zeros but some.
fn store_long(client: &mut Resp, key: &str, bytes: usize) {
    let bit = (8 * bytes - 1).to_string();
    assert_eq!(client.call(&["SETBIT", key, &bit, "1"]), Value::Integer(0));
    let middle = (bytes / 2).to_string();
    let length = Value::Integer(bytes as i64);
    assert_eq!(client.call(&["SETRANGE", key, &middle, "middle"]), length);
}

/// Whether a value is the string that [`store_long`] stores.
#[track_caller]
fn check_long(value: &Value, bytes: usize) {
    let found = value.bytes();
    assert_eq!(found.len(), bytes);
    let middle = bytes / 2;
    assert_eq!(&found[middle..middle + 6], b"middle");
    assert_eq!(found[bytes - 1], 1);
    let zeros = found.iter().filter(|byte| **byte == 0).count();
    assert_eq!(zeros, bytes - 7);
}

#[test]
fn long_replies_are_made_as_they_are_taken() {
    const BYTES: usize = 8 << 20;
    let data = TempDir::new().unwrap();
    let server = server(data.path());
    store_long(&mut server.resp(), "big", BYTES);
    let mget = format!("MGET{}\r\n", " big".repeat(40));
    let multi = format!("MULTI\r\n{}EXEC\r\n", "GET big\r\n".repeat(40));
    check_peak(&server, || {
        let deaf: Vec<TcpStream> = (0..9)
            .map(|n| {
                let mut socket = deaf(&server);
                let request = match n % 3 {
                    0 => mget.clone(),
                    1 => "GET big\r\n".repeat(40),
                    _ => multi.clone(),
                };
                socket.write_all(request.as_bytes()).unwrap();
                socket
            })
            .collect();
        for _ in 0..20 {
            assert_eq!(server.resp().line("PING"), Value::Simple("PONG".into()));
            thread::sleep(Duration::from_millis(50));
        }
        drop(deaf);
    });
    // Whoever reads gets everything.
    let mut client = server.resp();
    client.send(mget.as_bytes()).unwrap();
    let all = client.receive().unwrap();
    let all = all.elements().unwrap();
    assert_eq!(all.len(), 40);
    for value in all {
        check_long(value, BYTES);
    }
}

#[test]
fn what_is_larger_than_the_budget_is_served_whole() {
    const BYTES: usize = 80 << 20;
    const FIELDS: usize = 30_000;
    let data = TempDir::new().unwrap();
    let server = server(data.path());
    let mut client = server.resp();
    store_long(&mut client, "long", BYTES);
    for first in (0..FIELDS).step_by(1000) {
        let value = "v".repeat(1000);
        let numbers = first..first + 1000;
        let names: Vec<String> = numbers.map(|number| format!("f{number}")).collect();
        let fields = names
            .iter()
            .flat_map(|name| [name.as_str(), value.as_str()]);
        let fields: Vec<&str> = ["HSET", "hash"].into_iter().chain(fields).collect();
        assert_eq!(client.call(&fields), Value::Integer(1000));
        let members = names.iter().map(String::as_str);
        let members: Vec<&str> = ["SADD", "set"].into_iter().chain(members).collect();
        client.call(&members);
        let elements = names.iter().map(String::as_str);
        let elements: Vec<&str> = ["RPUSH", "list"].into_iter().chain(elements).collect();
        client.call(&elements);
    }
    check_peak(&server, || {
        for hello in ["HELLO 2", "HELLO 3"] {
            client.line(hello);
            // A write before it does not change that.
            client
                .send(b"SET a 1\r\nGET long\r\nGETRANGE long 10 -11\r\n")
                .unwrap();
            assert_eq!(client.receive().unwrap(), Value::ok());
            check_long(&client.receive().unwrap(), BYTES);
            assert_eq!(client.receive().unwrap().bytes().len(), BYTES - 20);
            check_collections(&mut client, FIELDS);
        }
    });
    assert_eq!(client.line("GET none"), Value::Null);
    let wrong = Value::Error(
        "WRONGTYPE Operation against a key holding the wrong kind of value".to_owned(),
    );
    assert_eq!(client.line("HGETALL long"), wrong);
}

fn check_collections(client: &mut Resp, n: usize) {
    let hash = match client.line("HGETALL hash") {
        Value::Map(pairs) => pairs,
        list => {
            let list = list.elements().unwrap();
            let pairs = list
                .chunks(2)
                .map(|pair| (pair[0].clone(), pair[1].clone()));
            pairs.collect::<Vec<_>>()
        }
    };
    let mut names: Vec<Value> = hash.iter().map(|(name, _)| name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), n);
    assert!(hash.iter().all(|(_, value)| value.bytes().len() == 1000));
    for line in ["HKEYS hash", "SMEMBERS set", "LRANGE list 0 -1"] {
        let mut found = client.line(line).elements().unwrap().to_vec();
        found.sort_unstable();
        assert!(found == names, "{line}");
    }
    let values = client.line("HVALS hash");
    assert_eq!(values.elements().unwrap().len(), n);
    let some = client.line("LRANGE list 100 -101");
    assert_eq!(some.elements().unwrap().len(), n - 200);
    assert_eq!(some.elements().unwrap()[0], Value::bulk("f100"));
}

#[test]
fn a_transaction_without_memory_for_its_replies_changes_nothing() {
    const BYTES: usize = 8 << 20;
    let data = TempDir::new().unwrap();
    let server = server(data.path());
    let mut client = server.resp();
    store_long(&mut client, "big", BYTES);
    store_long(&mut client, "bigger", 3 * BYTES);
    let exec = |client: &mut Resp, n_reads: usize| {
        client.line("MULTI");
        client.line("INCR count");
        for _ in 0..n_reads {
            client.line("GET big");
        }
        client.line("EXEC")
    };
    let refused = |value: &Value| match value {
        Value::Error(text) => text.contains("client-memory-max"),
        _ => false,
    };
    let reply = exec(&mut client, 1);
    check_long(&reply.elements().unwrap()[1], BYTES);
    let reply = exec(&mut client, 10);
    assert!(refused(&reply), "{}", format!("{reply:?}").len());
    assert_eq!(client.line("GET count"), Value::bulk("1"));
    let reply = client.line("GETDEL bigger");
    assert!(refused(&reply));
    assert_eq!(client.line("EXISTS bigger"), Value::Integer(1));
    let command = |n: usize| {
        let mut state = vec![json!(["INCR", "count"])];
        state.extend(std::iter::repeat_n(
            json!(["GETRANGE", "big", 0, 4_000_000]),
            n,
        ));
        json!(["commit", {"state": state}])
    };
    let mut http = server.client();
    assert_eq!(http.rpc(&command(1)).status, 200);
    let answer = http.rpc(&command(10));
    assert_eq!((answer.status, answer.code().as_str()), (503, "OVERLOADED"));
    assert_eq!(client.line("GET count"), Value::bulk("2"));
    // The words of a request count as well as its bytes.
    let mut words = vec![""; 400_000];
    words[0] = "EXISTS";
    let commit = |n: usize| json!(["commit", {"state": vec![&words; n]}]);
    assert_eq!(http.rpc(&commit(1)).status, 200);
    let answer = http.rpc(&commit(2));
    assert_eq!((answer.status, answer.code().as_str()), (503, "OVERLOADED"));
}
