//! Unmodified clients: redis-py, ioredis, node-redis, redis-cli and redis-benchmark.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::harness::{ADMIN, Server, piped};
use crate::python;

/// Where `cargo xtask test` puts packages of other languages.
fn packages(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = root.join("target").join(name);
    if directory.is_dir() {
        return Some(directory);
    }
    let is_needed = std::env::var_os("XTASK_REDIS").is_some();
    assert!(!is_needed, "there is no target/{name}");
    eprintln!("skipped: no target/{name}; cargo xtask test installs it");
    None
}

/// A server with a directory of its own.
fn start(data: &TempDir) -> Server {
    Server::on(data.path(), &["--log-level=warn"])
}

/// The output of a command that succeeds.
#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    said(&output)
}

#[track_caller]
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text
}

/// Runs a script with one version of redis-py.
fn run(version: &str, name: &str, arguments: &[&str]) {
    let Some(packages) = packages(version) else {
        return;
    };
    let mut script = python::script(name);
    python::run(script.args(arguments).env("PYTHONPATH", packages));
}

fn redis_py(version: &str) {
    let data = TempDir::new().unwrap();
    let server = start(&data);
    let port = server.resp_port.to_string();
    for protocol in ["2", "3"] {
        run(version, "redis_client.py", &[&port, ADMIN, protocol]);
    }
}

#[test]
fn redis_py_6_works_in_both_protocols() {
    redis_py("redis-py-6");
}

#[test]
fn redis_py_8_works_in_both_protocols() {
    redis_py("redis-py-8");
}

#[test]
fn the_storage_of_a_ticketing_system_works_to_the_letter() {
    let data = TempDir::new().unwrap();
    let server = start(&data);
    let port = server.resp_port.to_string();
    for version in ["redis-py-6", "redis-py-8"] {
        run(version, "seats.py", &[&port, ADMIN]);
    }
}

/// Runs a script with one client for Node.
fn node(client: &str, script: &str) {
    let Some(packages) = packages(client) else {
        return;
    };
    let data = TempDir::new().unwrap();
    let server = start(&data);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node");
    let said = succeed(
        Command::new("node")
            .arg(scripts.join(script))
            .args([&server.resp_port.to_string(), ADMIN])
            .env("NODE_PATH", packages.join("node_modules")),
    );
    assert!(said.starts_with("ok "), "{said}");
}

#[test]
fn ioredis_works() {
    node("ioredis", "ioredis_client.js");
}

#[test]
fn node_redis_works() {
    node("node-redis", "redis_client.js");
}

/// A tool of Redis' own, connected; `None` if the machine does not have it.
fn tool(name: &str, server: &Server) -> Option<Command> {
    let is_there = Command::new(name).arg("--version").output().is_ok();
    let is_needed = std::env::var_os("XTASK_REDIS").is_some();
    assert!(is_there || !is_needed, "there is no {name}");
    if !is_there {
        eprintln!("skipped: no {name} on this machine");
        return None;
    }
    let mut command = Command::new(name);
    command.args(["-p", &server.resp_port.to_string(), "-a", ADMIN]);
    Some(command)
}

fn redis_cli(server: &Server, arguments: &[&str]) -> Option<String> {
    let mut command = tool("redis-cli", server)?;
    Some(succeed(command.arg("--no-auth-warning").args(arguments)))
}

#[test]
fn redis_cli_works() {
    let data = TempDir::new().unwrap();
    let server = start(&data);
    let Some(pong) = redis_cli(&server, &["PING"]) else {
        return;
    };
    assert_eq!(pong, "PONG\n");
    let check = |arguments: &[&str], expected: &str| {
        assert_eq!(
            redis_cli(&server, arguments).unwrap(),
            expected,
            "{arguments:?}"
        );
    };
    check(&["SET", "k", "v"], "OK\n");
    check(&["GET", "k"], "v\n");
    check(
        &["--no-raw", "HSET", "h", "f", "1", "g", "2"],
        "(integer) 2\n",
    );
    check(
        &["-3", "--no-raw", "HGETALL", "h"],
        "1# \"f\" => \"1\"\n2# \"g\" => \"2\"\n",
    );
    check(
        &["-3", "--no-raw", "ZADD", "z", "INCR", "1.5", "m"],
        "(double) 1.5\n",
    );
    let help = redis_cli(&server, &["HELP", "SEATS.FINALIZE"]).unwrap();
    assert!(help.contains("booking buyer [PREFIX prefix]"), "{help}");
    assert!(help.contains("Sells the seats of a booking"), "{help}");
    check(&["-n", "0", "EXISTS", "k", "h"], "2\n");
    check(&["-r", "3", "INCR", "n"], "1\n2\n3\n");
    let scanned = redis_cli(&server, &["--scan", "--pattern", "[hz]"]).unwrap();
    assert!(["h\nz\n", "z\nh\n"].contains(&&*scanned), "{scanned}");
    let biggest = redis_cli(&server, &["--bigkeys"]).unwrap();
    assert!(
        biggest.contains("Sampled 4 keys in the keyspace!"),
        "{biggest}"
    );
    assert!(biggest.contains("1 hashs with 2 fields"), "{biggest}");
    let piped = pipe(&server, "MULTI\nSET a 1\nINCR a\nEXEC\nGET a\nNOSUCH\n");
    assert_eq!(
        piped,
        "OK\nQUEUED\nQUEUED\nOK\n2\n2\nERR unknown command 'NOSUCH', with args beginning with: \n\n"
    );
    assert!(
        redis_cli(&server, &["INFO", "server"])
            .unwrap()
            .contains("redis_version:")
    );
}

/// What `redis-cli` says to lines of its standard input.
fn pipe(server: &Server, lines: &str) -> String {
    let mut command = tool("redis-cli", server).unwrap();
    said(&piped(command.arg("--no-auth-warning"), lines.as_bytes()))
}

#[test]
fn redis_benchmark_ends_without_errors() {
    let data = TempDir::new().unwrap();
    let server = start(&data);
    const TESTS: &str = "ping_inline,ping_mbulk,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,\
                         lrange_100,mset";
    for arguments in [
        &["-n", "200", "-c", "10"][..],
        &["-n", "2000", "-c", "20", "-P", "16", "-r", "1000"],
        &["-n", "200", "-c", "4", "-3"],
    ] {
        let Some(mut benchmark) = tool("redis-benchmark", &server) else {
            return;
        };
        let output = benchmark
            .args(["-q", "-t", TESTS])
            .args(arguments)
            .output()
            .unwrap();
        let said = said(&output);
        let errors = String::from_utf8_lossy(&output.stderr);
        let n_results = said.matches("requests per second").count();
        assert!(
            n_results >= TESTS.split(',').count(),
            "{arguments:?}\n{said}\n{errors}"
        );
        assert!(
            !said.contains("Error") && !errors.contains("Error"),
            "{said}\n{errors}"
        );
    }
    let counted = server.resp().line("GET counter:__rand_int__");
    assert_eq!(counted.bytes(), b"400", "every INCR was counted");
}
