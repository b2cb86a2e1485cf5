//! Connections that carry garbage, too much, too little, or nothing at all.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{GROWTH_KIB_MAX, assert_alive};
use crate::harness::{ADMIN, Server, connect, seeded};
use crate::python;

/// A body above the limit, announced or not, is refused without being held in memory.
#[test]
fn huge_bodies_are_refused_and_not_kept() {
    let server = Server::in_test_mode();
    let before = server.status("VmRSS");
    let head = |length: &str| {
        format!(
            "POST /rpc HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n{length}\r\n\r\n"
        )
    };
    let mut announced = connect(server.port).unwrap();
    let length = format!("Content-Length: {}", 1u64 << 40);
    announced.write_all(head(&length).as_bytes()).unwrap();
    let answer = first_line(&mut announced);
    assert!(answer.contains(" 413 "), "{answer}");

    let mut chunked = connect(server.port).unwrap();
    chunked
        .write_all(head("Transfer-Encoding: chunked").as_bytes())
        .unwrap();
    let chunk = [
        format!("{:x}\r\n", 1 << 20).as_bytes(),
        &vec![b' '; 1 << 20],
        b"\r\n",
    ]
    .concat();
    let mut peak = 0;
    for _ in 0..400 {
        if chunked.write_all(&chunk).is_err() {
            break;
        }
        peak = peak.max(server.status("VmRSS"));
    }
    assert!(
        peak.saturating_sub(before) < GROWTH_KIB_MAX,
        "held {peak} KiB"
    );
    assert_alive(&server);
}

fn first_line(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 64];
    let n = stream.read(&mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..n])
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn garbage_is_no_request_and_ends_the_connection() {
    let server = Server::in_test_mode();
    let mut random = seeded();
    let mut attempts: Vec<Vec<u8>> = vec![
        b"\r\n\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"POST /rpc HTTP/1.1\r\nContent-Length: -5\r\n\r\n".to_vec(),
        b"POST /rpc HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n12345".to_vec(),
        b"POST /rpc HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n".to_vec(),
        [b"GET /".as_slice(), &[b'a'; 200_000], b" HTTP/1.1\r\n\r\n"].concat(),
        [
            b"GET / HTTP/1.1\r\nX: ".as_slice(),
            &[b'a'; 500_000],
            b"\r\n\r\n",
        ]
        .concat(),
    ];
    for _ in 0..100 {
        let length = 1 + random.u64(..3000) as usize;
        attempts.push((0..length).map(|_| random.u64(..256) as u8).collect());
    }
    for attempt in attempts {
        let mut stream = connect(server.port).unwrap();
        let _ = stream.write_all(&attempt);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let first = String::from_utf8_lossy(&answer[..answer.len().min(40)]).into_owned();
        assert!(
            !first.contains(" 200 ") && !first.contains(" 50"),
            "{first}"
        );
    }
    assert_alive(&server);
}

/// Clients that send a byte now and then, stop in the middle, hang up, or do nothing at all.
#[test]
fn slow_half_closed_and_idle_connections_hold_nobody_up() {
    const IDLE: usize = 500;
    let server = Server::in_test_mode();
    let before = server.status("VmRSS");
    let idle: Vec<TcpStream> = (0..IDLE).map(|_| connect(server.port).unwrap()).collect();
    let head = format!("POST /rpc HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n");
    let slow: Vec<TcpStream> = (0..50)
        .map(|number| {
            let mut stream = connect(server.port).unwrap();
            let cut = head.len() * number / 50;
            stream.write_all(&head.as_bytes()[..cut]).unwrap();
            stream
        })
        .collect();
    let stuck: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = connect(server.port).unwrap();
            stream
                .write_all(format!("{head}Content-Length: 1000000\r\n\r\n[").as_bytes())
                .unwrap();
            stream
        })
        .collect();
    for _ in 0..50 {
        let mut gone = connect(server.port).unwrap();
        gone.write_all(format!("{head}Content-Length: 10\r\n\r\n[\"sys").as_bytes())
            .unwrap();
    }
    for mut stream in slow
        .iter()
        .take(20)
        .map(|stream| stream.try_clone().unwrap())
    {
        let _ = stream.write_all(b"\r\nX-More: a");
        assert_alive(&server);
    }
    let mut half = connect(server.port).unwrap();
    let call = r#"["sys.version"]"#;
    half.write_all(format!("{head}Content-Length: {}\r\n\r\n{call}", call.len()).as_bytes())
        .unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    assert!(
        first_line(&mut half).contains(" 200 "),
        "a client that only listens is answered"
    );
    let grown = server.status("VmRSS").saturating_sub(before);
    assert!(
        grown < GROWTH_KIB_MAX / 4,
        "{grown} KiB for idle connections"
    );
    assert!(
        server.status("Threads") < 64,
        "a thread for each connection"
    );
    drop((idle, slow, stuck));
    assert_alive(&server);
}

/// Subscribers that never read cost the server little and the writers nothing.
#[test]
fn subscribers_that_do_not_read_hold_nobody_up() {
    let server = Server::in_test_mode();
    let before = server.status("VmRSS");
    let deaf: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(server.port).unwrap();
            let path = format!("/events?all=true&position=0&token={ADMIN}");
            stream
                .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
                .unwrap();
            stream
        })
        .collect();
    let text = "x".repeat(50_000);
    let started = Instant::now();
    thread::scope(|scope| {
        for writer in 0..4 {
            let (server, text) = (&server, &text);
            scope.spawn(move || {
                let mut client = server.client();
                for _ in 0..200 {
                    client.write(&format!("loud-{writer}"), &json!({"text": text}));
                }
            });
        }
    });
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
    let grown = server.status("VmRSS").saturating_sub(before);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
    drop(deaf);
    assert_alive(&server);
}

/// Clients that ask for everything and read nothing of the answer.
#[test]
fn answers_that_nobody_takes_are_not_kept_in_memory() {
    let server = Server::in_test_mode();
    let text = "x".repeat(1 << 20);
    for n in 0..100 {
        server
            .client()
            .write(&format!("big-{n}"), &json!({"text": text}));
    }
    let before = server.status("VmRSS");
    let call = r#"["category.get","",{"batchSize":-1}]"#;
    let head = format!("POST /rpc HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n");
    let request = format!("{head}Content-Length: {}\r\n\r\n{call}", call.len());
    let deaf: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(server.port).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    thread::sleep(Duration::from_secs(2));
    assert_alive(&server);
    let grown = server.status("VmRSS").saturating_sub(before);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB for answers of 2 GB");
    let mut patient = deaf.into_iter().next().unwrap();
    let mut bytes = 0;
    let mut buffer = vec![0; 1 << 16];
    while bytes < 100 << 20 {
        bytes += patient.read(&mut buffer).unwrap();
    }
    assert_alive(&server);
}

/// What follows small events may be large: the answer is read by weight, not by what came before.
#[test]
fn large_events_after_small_ones_are_read_whole() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    for n in 0..150 {
        client.write("mixed-1", &json!({"n": n}));
    }
    let text = "x".repeat(3_000_000);
    for n in 150..250 {
        client.write("mixed-1", &json!({"n": n, "text": text}));
    }
    for call in [
        json!(["stream.get", "mixed-1"]),
        json!(["category.get", "", {"batchSize": -1}]),
    ] {
        let rows = client.rpc(&call).ok();
        assert_eq!(rows.as_array().unwrap().len(), 250, "{call}");
    }
}

/// Connections that ask without end are all served, however many there are.
#[test]
fn hundreds_of_busy_connections_take_turns() {
    let server = Server::in_test_mode();
    let port = server.resp_port.to_string();
    python::run(python::script("turns.py").args([&port, ADMIN]));
}
