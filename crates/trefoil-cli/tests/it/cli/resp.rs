//! The RESP listener: its settings, what is said of it, and what happens if its port is taken.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;
use tempfile::TempDir;

use super::{Process, announced, assert_goes_on_without, assert_refused, free_port};
use crate::harness::{Server, Value};

#[test]
fn resp_listens_where_http_does_unless_told_otherwise() {
    let port = free_port();
    let here = json!([format!("127.0.0.1:{port}")]);
    for arguments in [
        &["--listen=127.0.0.1", &format!("--resp-port={port}")][..],
        &["--listen=127.0.0.1", &format!("--resp={port}")],
        &["--resp-listen=127.0.0.1", &format!("--resp-port={port}")],
        &[&format!("--resp-listen=127.0.0.1:{port}")],
        &[&format!("--resp=127.0.0.1:{port}")],
    ] {
        assert_eq!(announced(arguments)["resp"], here, "{arguments:?}");
    }
    assert_eq!(announced(&["--resp-port=off"])["resp"], json!([]));
    assert_eq!(announced(&["--resp=off"])["resp"], json!([]));
}

#[test]
fn a_port_that_was_asked_for_and_is_taken_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let expected = format!("listen on {address}: Address already in use");
    for argument in [
        format!("--resp-port={}", address.port()),
        format!("--resp-listen={address}"),
        format!("--resp={address}"),
    ] {
        assert_refused(&["--grpc-port=off", &argument], &expected);
    }
}

#[test]
fn without_the_default_port_the_server_says_so_and_goes_on() {
    assert_goes_on_without("RESP", 6666);
}

#[test]
fn settings_of_resp_that_cannot_work_are_refused_by_name() {
    for (arguments, expected) in [
        (
            &["--resp-port=resp"][..],
            "resp-port (flag): \"resp\" is neither a port",
        ),
        (
            &["--resp-listen=here"],
            "resp-listen (flag): \"here\" is not an IP address",
        ),
        (
            &["--resp=here"],
            "resp (flag): \"here\" is not an IP address",
        ),
        (
            &["--resp=1", "--resp-port=2"],
            "resp says what resp-listen and resp-port say",
        ),
        (
            &["--resp-threads=0"],
            "resp-threads (flag): it must be at least 1",
        ),
        (
            &["--resp-threads=1025"],
            "resp-threads (flag): it must be at most 1024",
        ),
    ] {
        assert_refused(arguments, expected);
    }
}

#[test]
fn connections_are_shared_out_among_the_threads() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &["--resp-threads=3"]);
    let mut clients: Vec<_> = (0..6).map(|_| server.resp()).collect();
    for (client, count) in clients.iter_mut().zip(1..) {
        assert_eq!(client.line("INCR count"), Value::Integer(count));
    }
    // Each of two clients of different threads sees what the other does to what it watches.
    for pair in clients.as_chunks_mut::<2>().0 {
        for [watching, changing] in [[0, 1], [1, 0]] {
            pair[watching].line("WATCH count");
            pair[changing].line("INCR count");
            pair[watching].line("MULTI");
            pair[watching].line("SET count 0");
            assert_eq!(pair[watching].line("EXEC"), Value::NilArray);
        }
    }
    assert_eq!(clients[0].line("GET count"), Value::bulk("12"));
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let names = tasks.map(|task| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default()
    });
    let names: BTreeSet<String> = names
        .filter(|name| name.starts_with("trefoil-resp-"))
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn dev_needs_no_password_and_prints_a_command_to_copy() {
    let directory = TempDir::new().unwrap();
    let (port, resp_port) = (free_port(), free_port());
    let arguments = [
        "dev",
        &format!("--port={port}"),
        "--grpc-port=off",
        &format!("--resp-port={resp_port}"),
    ];
    let server = Process::serve(&arguments, port, directory.path());
    let mut socket = TcpStream::connect(("127.0.0.1", resp_port)).unwrap();
    socket.write_all(b"SET k 1\r\nGET k\r\nQUIT\r\n").unwrap();
    let mut replies = String::new();
    socket.read_to_string(&mut replies).unwrap();
    assert_eq!(replies, "+OK\r\n$1\r\n1\r\n+OK\r\n");
    let printed = server.stop();
    for expected in [
        format!("redis://127.0.0.1:{resp_port}"),
        format!("redis-cli -p {resp_port}"),
    ] {
        assert!(printed.contains(&expected), "{printed}");
    }
}
