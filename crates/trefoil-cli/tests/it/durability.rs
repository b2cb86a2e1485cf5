//! What the operating system may do to a server: a second one, an end on request, no space.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{ADMIN, Client, SMALL_PARTS, Server, binary};

#[test]
fn a_second_server_on_the_same_data_refuses_to_start() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let second = binary()
        .args(["serve", "--port", "0", "--token", ADMIN, "--data-dir"])
        .arg(data.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned()
        + &String::from_utf8_lossy(&second.stdout);
    assert!(!second.status.success());
    assert!(said.contains("in use by another process"), "{said}");
    assert!(said.contains(data.path().to_str().unwrap()), "{said}");
    assert!(!said.contains(ADMIN), "the token was shown");
    assert_eq!(server.client().write("still-1", &json!({})), 1);
}

/// Every stored event's number.
fn stored(client: &mut Client) -> Vec<String> {
    let rows = client
        .rpc(&json!(["category.get", "", {"batchSize": -1}]))
        .ok();
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| row[5]["key"].to_string())
        .collect()
}

/// A write that was taken is answered; one that is not answered was not taken.
#[test]
fn an_end_on_request_answers_what_is_under_way() {
    let data = TempDir::new().unwrap();
    for round in 0..4 {
        let server = Server::on(data.path(), &SMALL_PARTS);
        let before = stored(&mut server.client());
        let stop = AtomicBool::new(false);
        let mut acknowledged = thread::scope(|scope| {
            let (server, stop) = (&server, &stop);
            let write = move |writer: u32| {
                let (mut client, mut acknowledged) = (server.client(), Vec::new());
                for n in 0.. {
                    let key = format!("{round}/{writer}/{n}");
                    let message = json!({"type": "E", "data": {"key": key}});
                    match client.try_rpc(&json!(["stream.write", "end-1", message])) {
                        Ok(answer) if answer.status == 200 => {
                            acknowledged.push(json!(key).to_string());
                        }
                        Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.text()),
                        Err(_) if stop.load(Ordering::SeqCst) => break,
                        Err(error) => panic!("{error} before the end"),
                    }
                }
                acknowledged
            };
            let writers: Vec<_> = (0..8)
                .map(|writer| scope.spawn(move || write(writer)))
                .collect();
            thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::SeqCst);
            server.signal("TERM");
            writers
                .into_iter()
                .flat_map(|writer| writer.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert!(server.wait().success(), "the end was not clean");
        let again = Server::on(data.path(), &SMALL_PARTS);
        let mut expected = before;
        expected.append(&mut acknowledged);
        let mut found = stored(&mut again.client());
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[test]
fn what_is_exported_imports_identically() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &SMALL_PARTS);
    let mut client = server.client();
    let source = client.create_namespace("source");
    let target = client.create_namespace("target");
    let mut writer = server.client_with(&source);
    for n in 0..25 {
        let event = |part: u64| {
            json!({"stream": format!("move-{}", (n * part) % 40), "type": format!("T{part}"),
                "data": {"n": n, "exact": "DIGITS", "text": "Grüße\n\"x\""},
                "metadata": {"correlationStreamName": "saga-1"}, "tags": ["a", "b"]})
        };
        let events: Vec<Value> = (1..30).map(event).collect();
        let call = json!(["commit", {"events": events}]).to_string();
        // A number that no usual type can hold.
        let call = call.replace("\"DIGITS\"", "12345678901234567890123.50");
        writer.post("/rpc", call.as_bytes()).ok();
    }
    let file = data.path().join("export.ndjson");
    let url = format!("http://127.0.0.1:{}", server.port);
    let run = |arguments: &[&str]| {
        let output = binary()
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    let path = file.to_str().unwrap();
    run(&[
        "export", "--url", &url, "--token", &source, "--output", path,
    ]);
    run(&["import", "--url", &url, "--token", &target, "--input", path]);
    let everything = json!(["category.get", "", {"batchSize": -1}]);
    let (one, two) = (
        writer.rpc(&everything),
        server.client_with(&target).rpc(&everything),
    );
    assert_eq!(one.ok().as_array().unwrap().len(), 25 * 29);
    assert!(one.text().contains("12345678901234567890123.50"));
    assert!(one.body == two.body, "the copy differs");
    let again = binary()
        .args(["import", "--url", &url, "--token", &target, "--input", path])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        !again.status.success(),
        "positions that are taken were imported again"
    );
}

/// Writes until the server refuses, and returns how many it took and the refusal.
fn write_until_refused(client: &mut Client) -> (u64, u16, String) {
    let text = "x".repeat(4000);
    let started = Instant::now();
    for n in 0.. {
        let message = json!({"type": "E", "data": {"key": n, "text": text}});
        let answer = client.rpc(&json!(["stream.write", "full-1", message]));
        if answer.status != 200 {
            return (n, answer.status, answer.text().to_owned());
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the limit was never reached"
        );
    }
    unreachable!()
}

fn count(client: &mut Client) -> u64 {
    client
        .rpc(&json!(["stream.version", "full-1"]))
        .ok()
        .as_i64()
        .map_or(0, |v| v as u64 + 1)
}

/// A small file system of its own for the server, where the machine allows that.
#[test]
fn a_full_disk_refuses_writes_keeps_reads_and_recovers_when_space_returns() {
    let directory = TempDir::new().unwrap();
    let mount = directory.path().to_str().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=24m tmpfs {mount} && head -c 8m /dev/zero > {mount}/filler && exec \"$@\""
    );
    let mut own_mounts = Command::new("unshare");
    own_mounts.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    let allowed = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "mount",
            "-t",
            "tmpfs",
            "tmpfs",
            mount,
        ])
        .output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine lets nobody mount a file system of their own");
        return;
    }
    own_mounts.args([&script, "sh", env!("CARGO_BIN_EXE_trefoil")]);
    let data = format!("{mount}/data");
    let arguments = [
        "--data-dir",
        data.as_str(),
        "--token",
        ADMIN,
        "--segment-size-max=1MiB",
    ];
    let server = Server::try_launch(own_mounts, &arguments).expect("the server starts");
    let mut client = server.client();
    let (taken, status, text) = write_until_refused(&mut client);
    assert_eq!(status, 507, "{text}");
    assert!(text.contains("DISK_FULL"), "{text}");
    assert_eq!(
        count(&mut client),
        taken,
        "what was acknowledged is there, no more"
    );
    assert_eq!(client.get("/health").status, 200);
    let seen_from_here = format!("/proc/{}/root{mount}/filler", server.pid());
    std::fs::remove_file(Path::new(&seen_from_here)).unwrap();
    let message = json!({"type": "E", "data": {"key": "after"}});
    let answer = client.rpc(&json!(["stream.write", "full-1", message]));
    assert_eq!(answer.status, 200, "space is back: {}", answer.text());
    assert_eq!(count(&mut client), taken + 1);
}

/// An I/O error other than a full disk: no file may grow beyond a limit of the process.
#[test]
fn after_an_io_error_nothing_acknowledged_is_lost_and_a_restart_recovers() {
    let data = TempDir::new().unwrap();
    let mut limited = Command::new("sh");
    // Ignored, the signal becomes an error of the write.
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$@\"";
    limited.args(["-c", script, "sh", env!("CARGO_BIN_EXE_trefoil")]);
    let directory = data.path().to_str().unwrap();
    let arguments = [
        "--data-dir",
        directory,
        "--token",
        ADMIN,
        "--log-level=warn",
    ];
    let server = Server::try_launch(limited, &arguments).expect("the server starts");
    let mut client = server.client();
    let (taken, status, text) = write_until_refused(&mut client);
    assert!((500..600).contains(&status), "{status} {text}");
    assert_eq!(count(&mut client), taken, "reads go on");
    server.kill();
    let server = Server::on(data.path(), &[]);
    let found = count(&mut server.client());
    assert!(
        found == taken || found == taken + 1,
        "{taken} acknowledged, {found} found"
    );
    let rows = server
        .client()
        .rpc(&json!(["stream.get", "full-1", {"batchSize": -1}]))
        .ok();
    for (row, n) in rows.as_array().unwrap().iter().zip(0..) {
        assert_eq!(row[4]["key"], n);
    }
    server.client().write("full-1", &json!({"key": "after"}));
}
