//! Memory: what is held for clients stays within the budget, however much they ask for.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{ADMIN, Server, Value, connect};

/// The budget of the server under attack.
const BUDGET: &str = "--client-memory-max=64MiB";

/// How much more than before the server may have held at its peak: the budget, what the attack has
/// stored, and what an allocator keeps.
const GROWTH_KIB_MAX: u64 = 160 << 10;

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

#[test]
fn subscribers_that_do_not_read_share_the_budget() {
    let data = TempDir::new().unwrap();
    let server = server(data.path());
    let text = "x".repeat(1 << 20);
    for n in 0..24 {
        let mut client = server.client();
        client.write(&format!("big-{n}"), &json!({"text": text}));
    }
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
