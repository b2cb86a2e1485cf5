//! The continuous archive: whatever is lost with the machine, what was reported as archived is not.
//!
//! `TREFOIL_SOAK_ROUNDS` sets how many rounds there are; `cargo xtask soak archive` runs 20.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use trefoil::Timestamp;

use super::commands::files;
use super::load::{ARGUMENTS, check, rounds, under_load};
use super::{Backups, exported};
use crate::harness::{SMALL_PARTS, Server, Value, seeded};

/// How long an archive may take to catch up here.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take under load to promise anything.
const PATIENCE_UNDER_LOAD: Duration = Duration::from_secs(120);

/// What a server says of its archive.
struct Archived {
    /// How far the default namespace is.
    commit: u64,
    lag: Duration,
    waiting: u64,
    failures: u64,
}

impl Archived {
    fn of(server: &Server) -> Self {
        let answer = server.anonymous().get("/metrics");
        let text = answer.text();
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
            let value = lines.next().map(|value| value.trim().parse::<f64>());
            value.map_or(0.0, Result::unwrap)
        };
        Self {
            commit: value(r#"trefoil_archive_commit{namespace="default"}"#) as u64,
            lag: Duration::from_secs_f64(value("trefoil_archive_lag_seconds ")),
            waiting: value("trefoil_archive_waiting_namespaces ") as u64,
            failures: value("trefoil_archive_failures_total ") as u64,
        }
    }
}

fn now() -> Timestamp {
    trefoil::Clock::default().now()
}

/// Waits until all that was written before is archived.
#[track_caller]
pub(super) fn catch_up(server: &Server) {
    let began = now();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let lag = Archived::of(server).lag;
        let until = now().0 - i64::try_from(lag.as_nanos()).unwrap();
        if until > began.0 {
            return;
        }
        assert!(Instant::now() < deadline, "the archive lags by {lag:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

pub(super) fn archiving(data: &Path, archive: &Path, arguments: &[&str]) -> Server {
    let archive = format!("--archive={}", archive.display());
    Server::on(data, &[arguments, &[archive.as_str()]].concat())
}

#[test]
fn nothing_that_was_archived_is_lost_with_the_data_directory() {
    let directory = TempDir::new().unwrap();
    let (data, archive) = (directory.path().join("data"), directory.path().join("a"));
    let mut random = seeded();
    let mut n_events = 0;
    for round in 0..rounds() {
        let server = archiving(&data, &archive, &ARGUMENTS);
        let backups = Backups::of(&server, &archive);
        let pause = Duration::from_millis(random.u64(300..4000));
        let (promised, archived) = under_load(&server, round, || {
            let promise = wait_for_promise(&server, pause);
            server.signal("KILL");
            promise
        });
        server.kill();
        // What was there, to compare with. Then it is gone.
        let server = Server::on(&data, &ARGUMENTS);
        let original = exported(&server);
        drop(server);
        fs::remove_dir_all(&data).unwrap();
        backups.ok("verify", &["--archive"]);
        let restored = backups.restore(&data).remove(0);
        let commit = restored["commit"].as_u64().unwrap();
        let position = restored["position"].as_u64().unwrap();
        assert!(commit >= archived.commit, "{commit} of {}", archived.commit);
        assert!(position >= promised, "{position} of {promised}");
        let copy = Server::on(&data, &ARGUMENTS);
        n_events = check(&copy, position, &original);
        let lag = archived.lag.as_millis();
        eprintln!(
            "round {round}: killed after {pause:?}, {} of {} events, {commit} commits, {} reported, {promised} events promised, {lag} ms behind",
            n_events,
            original.len(),
            archived.commit
        );
        // The next round goes on where this one was restored.
        assert!(copy.terminate().success());
    }
    assert!(n_events > 100, "{n_events}");
    let lines = fs::read_dir(archive.join("archive/default")).unwrap();
    // The entries, and one line: it is the same log all the time.
    assert_eq!(lines.count(), 2);
}

/// Waits for so long, and until the server says that the archive has all that the log had at a time since then.
/// Returns the last position of that, which must not be lost, and what the server has said.
fn wait_for_promise(server: &Server, time: Duration) -> (u64, Archived) {
    let (began, mut client) = (Instant::now(), server.client());
    // Where the log ended at which time: what it had then was committed before.
    let mut heads: Vec<(Timestamp, u64)> = Vec::new();
    loop {
        let head = client.rpc(&json!(["events.head"])).ok().as_u64();
        heads.push((now(), head.unwrap()));
        if began.elapsed() >= time {
            // What is archived when the time is looked at is archived when the server says so.
            let asked = now();
            let archived = Archived::of(server);
            let until = asked.0 - i64::try_from(archived.lag.as_nanos()).unwrap();
            let promised = heads.iter().rfind(|(time, _)| time.0 < until);
            if let Some((_, head)) = promised
                && *head > 0
            {
                return (*head, archived);
            }
            let (lag, waited) = (archived.lag, began.elapsed() - time);
            assert!(waited < PATIENCE_UNDER_LOAD, "the archive lags by {lag:?}");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Writes an event with state, and returns its commit, position and time.
fn write(server: &Server, number: u64) -> (u64, u64, String) {
    let commit = json!(["commit", {
        "events": [{"stream": "account-1", "type": "Deposited", "data": {"n": number}}],
        "state": [["RPUSH", "list", number.to_string()]],
    }]);
    let told = server.client().rpc(&commit).ok();
    let last = server.client().rpc(&json!(["stream.last", "account-1"]));
    let last = last.ok();
    let time = last.as_array().unwrap().last().unwrap().as_str().unwrap();
    let of = |name: &str| told[name].as_u64().unwrap();
    (of("commit"), of("globalPosition"), time.to_owned())
}

/// What stands in an event and nowhere else.
const SECRET: &str = "nobody-may-read-this";

/// An archive that is encrypted, of a server that was stopped, with a point after each commit.
struct EncryptedArchive {
    directory: TempDir,
    archive: PathBuf,
    url: String,
    key: String,
    tenant: String,
    moments: Vec<(u64, u64, String)>,
}

impl EncryptedArchive {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let (data, archive) = (directory.path().join("data"), directory.path().join("a"));
        let key = directory.path().join("key");
        fs::write(&key, "5a".repeat(32)).unwrap();
        let key = format!("-key-file={}", key.display());
        let encrypt = format!("--archive{key}");
        let server = archiving(&data, &archive, &[&SMALL_PARTS[..], &[&encrypt]].concat());
        let tenant = server.client().create_namespace("tenant-a");
        let mut client = server.client_with(&tenant);
        client.write("a-1", &json!({"of": SECRET}));
        let deleted = server.client().create_namespace("deleted");
        server.client_with(&deleted).write("d-1", &json!({}));
        let write_later = |number| {
            // In different pieces.
            thread::sleep(Duration::from_millis(100));
            write(&server, number)
        };
        let moments = (0..20).map(write_later).collect();
        catch_up(&server);
        server.client().rpc(&json!(["ns.delete", "deleted"])).ok();
        let url = format!("http://127.0.0.1:{}", server.port);
        assert!(server.terminate().success());
        Self {
            directory,
            archive,
            url,
            key: format!("-{key}"),
            tenant,
            moments,
        }
    }

    fn backups(&self) -> Backups<'_> {
        Backups {
            repository: &self.archive,
            url: self.url.clone(),
        }
    }

    #[track_caller]
    fn ok(&self, action: &str, arguments: &[&str]) -> Vec<Json> {
        let backups = self.backups();
        backups.ok(action, &[arguments, &[&self.key]].concat())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

#[test]
fn an_archive_has_every_point() {
    let archive = EncryptedArchive::new();
    let reaches = archive.ok("list", &["--archive"]);
    let reach = |name: &str| reaches.iter().find(|one| one["namespace"] == name);
    assert_eq!(reach("default").unwrap()["commit"], 20);
    assert_eq!(reach("tenant-a").unwrap()["position"], 1);
    archive.ok("verify", &["--archive"]);
    let moments = archive.moments.iter().enumerate().skip(4).step_by(5);
    for (index, (commit, position, time)) in moments {
        let (commit, position) = (commit.to_string(), position.to_string());
        for point in [
            ["--to-commit", &commit],
            ["--to-position", &position],
            ["--to-time", time],
        ] {
            let into = archive.path("restored");
            let chosen = [
                "--data-dir",
                into.to_str().unwrap(),
                "--namespace",
                "default",
            ];
            archive.ok("restore", &[&chosen[..], &point].concat());
            let copy = Server::on(&into, &SMALL_PARTS);
            assert_eq!(exported(&copy).len(), index + 1, "{point:?}");
            let length = Value::Integer(i64::try_from(index + 1).unwrap());
            assert_eq!(copy.resp().line("LLEN list"), length, "{point:?}");
            assert!(copy.terminate().success());
            fs::remove_dir_all(&into).unwrap();
        }
    }
    // All that there was in the end, with the tokens; what was deleted only if it is asked for.
    let into = archive.path("restored");
    let into = ["--data-dir", into.to_str().unwrap()];
    let told = archive.ok("restore", &into);
    let names: Vec<&str> = { told.iter() }
        .map(|one| one["namespace"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["default", "tenant-a"]);
    archive.ok(
        "restore",
        &[&into[..], &["--namespace", "deleted"]].concat(),
    );
    let copy = Server::on(&archive.path("restored"), &SMALL_PARTS);
    let listed = copy.client().rpc(&json!(["ns.list"])).ok();
    assert_eq!(listed.as_array().unwrap().len(), 3);
    let mut client = copy.client_with(&archive.tenant);
    let read = client.rpc(&json!(["stream.get", "a-1"]));
    assert!(read.text().contains(SECRET));
}

#[test]
fn an_archive_is_encrypted_and_damage_is_named() {
    let archive = EncryptedArchive::new();
    let pieces = files(&archive.archive);
    for piece in &pieces {
        let bytes = fs::read(piece).unwrap();
        let mut windows = bytes.windows(SECRET.len());
        let is_plain = windows.any(|bytes| bytes == SECRET.as_bytes());
        assert!(!is_plain, "{}", piece.display());
    }
    let backups = archive.backups();
    let said = backups.fails(1, "list", &["--archive"]);
    assert!(said.contains("is encrypted"), "{said}");
    let mut pieces = pieces.iter();
    let piece = pieces.find(|piece| piece.to_string_lossy().contains("/pieces/"));
    let piece = piece.unwrap();
    let mut bytes = fs::read(piece).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(piece, bytes).unwrap();
    let said = backups.fails(1, "verify", &["--archive", &archive.key]);
    let name = piece.file_name().unwrap().to_str().unwrap();
    assert!(said.contains(name) && said.contains("is damaged"), "{said}");
}

#[test]
fn an_archive_catches_up_after_an_outage() {
    let directory = TempDir::new().unwrap();
    let (data, archive) = (directory.path().join("data"), directory.path().join("a"));
    let away = directory.path().join("away");
    let server = archiving(&data, &archive, &SMALL_PARTS);
    let backups = Backups::of(&server, &archive);
    write(&server, 0);
    catch_up(&server);
    // Nothing can be written there any more.
    fs::rename(&archive, &away).unwrap();
    fs::write(&archive, "").unwrap();
    write(&server, 1);
    let deadline = Instant::now() + PATIENCE;
    while Archived::of(&server).failures == 0 {
        assert!(Instant::now() < deadline, "no failure was counted");
        thread::sleep(Duration::from_millis(50));
    }
    let during = Archived::of(&server);
    assert_eq!((during.commit, during.waiting), (1, 1));
    let (commit, ..) = write(&server, 2);
    thread::sleep(Duration::from_secs(2));
    assert!(Archived::of(&server).lag >= Duration::from_secs(2));
    fs::remove_file(&archive).unwrap();
    fs::rename(&away, &archive).unwrap();
    catch_up(&server);
    assert_eq!(Archived::of(&server).commit, commit);
    assert!(server.log().contains("it is tried again until it works"));

    // A log that was replaced is another one, and so is one that was restored to an earlier point.
    let answer = server.client().post("/import?force=true", b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    write(&server, 7);
    catch_up(&server);
    assert!(server.terminate().success());
    let restore = |name: &str, point: &[&str]| {
        let into = directory.path().join(name);
        let chosen = [
            "--data-dir",
            into.to_str().unwrap(),
            "--namespace",
            "default",
        ];
        backups.ok("restore", &[&chosen[..], point].concat());
        into
    };
    let replaced = restore("replaced", &[]);
    let server = archiving(&replaced, &archive, &SMALL_PARTS);
    assert_eq!(exported(&server).len(), 1);
    assert_eq!(server.resp().line("LLEN list"), Value::Integer(4));
    let position = write(&server, 8).1;
    catch_up(&server);
    assert!(server.terminate().success());
    let earlier = restore("earlier", &["--to-position", "1"]);
    let server = archiving(&earlier, &archive, &SMALL_PARTS);
    assert_eq!(write(&server, 9).1, position);
    catch_up(&server);
    assert!(server.terminate().success());
    let newest = Server::on(&restore("newest", &[]), &SMALL_PARTS);
    let lines = exported(&newest);
    assert_eq!(lines.len(), 2);
    assert!(lines[1].contains(r#""n":9"#), "{lines:?}");
}
