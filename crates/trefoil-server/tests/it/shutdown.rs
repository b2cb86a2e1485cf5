//! The end of a server: subscriptions first, then what is under way, within a bound.

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use trefoil_server::Config;

use crate::client::{Connection, Frames, bearer};
use crate::harness::TestServer;

#[test]
fn subscriptions_are_closed_and_idle_connections_too() {
    let mut server = TestServer::production();
    let mut frames = Frames::open(server.address, "/subscribe?all=true");
    assert_eq!(frames.next().unwrap(), ": ready");
    let mut idle = Connection::open(server.address);
    idle.send("GET", "/health", "", b"");
    assert_eq!(idle.reply().status, 200);
    let untouched = TcpStream::connect(server.address).unwrap();
    let started = Instant::now();
    server.begin_shutdown();
    assert_eq!(frames.next(), None);
    assert!(idle.rest().is_empty());
    server.wait();
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
    assert_eq!((&untouched).read(&mut [0; 1]).unwrap_or(0), 0);
    assert!(TcpStream::connect(server.address).is_err());
}

#[test]
fn a_request_under_way_is_answered() {
    let mut server = TestServer::production();
    let mut connection = Connection::open(server.address);
    let body = br#"["stream.write","a-1",{"type":"T","data":{}}]"#;
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: x\r\n{}content-length: {}\r\n\r\n",
        bearer(),
        body.len()
    );
    connection.write(head.as_bytes()).unwrap();
    connection.write(&body[..10]).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    server.begin_shutdown();
    std::thread::sleep(Duration::from_millis(200));
    connection.write(&body[10..]).unwrap();
    let reply = connection.reply();
    assert_eq!(
        (reply.status, reply.text()),
        (200, r#"{"globalPosition":1,"position":0}"#)
    );
    server.wait();
}

#[test]
fn whoever_does_not_finish_is_cut_off() {
    let drain_timeout = Duration::from_millis(300);
    let mut server = TestServer::with(Config {
        drain_timeout,
        ..Config::default()
    });
    let mut connection = Connection::open(server.address);
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: x\r\n{}content-length: 9\r\n\r\n",
        bearer()
    );
    connection.write(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let started = Instant::now();
    server.begin_shutdown();
    server.wait();
    assert!(started.elapsed() >= drain_timeout);
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    assert!(connection.rest().is_empty());
}
