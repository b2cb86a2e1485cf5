//! `trefoil top` in a terminal of tmux, as a person sees it.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Cli, errors};
use crate::harness::{Server, binary};

/// How long something may take until it is on the screen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether tmux is here; where everything has been installed it must be.
fn has_tmux() -> bool {
    let is_there = Command::new("tmux").arg("-V").output().is_ok();
    let is_needed = std::env::var_os("XTASK_REDIS").is_some();
    assert!(is_there || !is_needed, "there is no tmux");
    if !is_there {
        eprintln!("skipped: there is no tmux");
    }
    is_there
}

/// A terminal of 80 columns and 24 lines with a shell that runs `trefoil top`, and then says how it
/// ended and in which state the terminal is.
struct Pane {
    socket: String,
}

impl Pane {
    fn start(name: &str, url: &str) -> Self {
        let socket = format!("trefoil-test-{}-{name}", std::process::id());
        let pane = Self { socket };
        let binary = binary();
        let program = binary.get_program().to_str().unwrap();
        let script = format!(
            "XDG_CONFIG_HOME=/nonexistent '{program}' top --url {url}; \
             echo \"ended with $?\"; stty -a | tr ' ' '\\n' | grep -x -e icanon -e echo; cat"
        );
        pane.tmux(&["new-session", "-d", "-x", "80", "-y", "24", &script]);
        pane
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket, "-f", "/dev/null", "-u"]);
        let output = command
            .args(arguments)
            .env("TERM", "xterm-256color")
            .output();
        let output = output.unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            errors(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as wanted, and returns it.
    #[track_caller]
    fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(started.elapsed() < PATIENCE, "{what}, but:\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// The shell goes on, and the terminal is as it was.
    #[track_caller]
    fn assert_given_back(&self) {
        let has = |screen: &str, line: &str| screen.lines().any(|shown| shown == line);
        let screen = self.wait("the terminal is as it was", |screen| {
            ["ended with 0", "icanon", "echo"]
                .iter()
                .all(|line| has(screen, line))
        });
        assert!(!screen.contains("q quit"), "its screen has gone: {screen}");
    }

    /// The process that draws.
    fn pid(&self) -> String {
        let shell = self.tmux(&["list-panes", "-F", "#{pane_pid}"]);
        let output = Command::new("ps")
            .args(["-o", "pid=", "--ppid", shell.trim()])
            .output();
        String::from_utf8(output.unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        let _ = command.args(["-L", &self.socket, "kill-server"]).output();
    }
}

/// Ends what goes on until the flag is set, also if the test fails.
struct WhileHeld<'a>(&'a AtomicBool);

impl Drop for WhileHeld<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn url(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.port)
}

#[test]
fn it_shows_what_happens_pauses_and_sorts() {
    if !has_tmux() {
        return;
    }
    let server = Server::in_test_mode();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.client();
            while !is_done.load(Ordering::Relaxed) {
                client.rpc(&json!(["stream.write", "a-1", {"type": "T", "data": {}}]));
                client.rpc(&json!(["stream.get", "a-1", {"batchSize": 1}]));
                client.rpc(&json!(["stream.get", 7]));
                thread::sleep(Duration::from_millis(5));
            }
        });
        let _writer = WhileHeld(&is_done);
        let pane = Pane::start("live", &url(&server));
        let screen = pane.wait("both methods", |screen| {
            screen.contains("HTTP      stream.write") && screen.contains("HTTP      stream.get")
        });
        for expected in [
            "writes/s",
            "read time     p50",
            "sync time     p50",
            "commits/s, up to",
            "MiB",
        ] {
            assert!(screen.contains(expected), "{expected}: {screen}");
        }
        assert!(!screen.contains("write time    p50 -"), "{screen}");
        assert!(screen.contains('█') || screen.contains('▇'), "{screen}");
        assert!(screen.contains("CALLS/S▼"), "{screen}");
        pane.press("s");
        pane.wait_for("ERRORS/S▼");
        pane.press("r");
        pane.wait_for("ERRORS/S▲");
        pane.press("+");
        pane.wait_for("every 2s");
        pane.press("-");
        pane.wait_for("every 1s");
        pane.press("p");
        let paused = pane.wait_for("PAUSED");
        thread::sleep(Duration::from_millis(2500));
        assert_eq!(pane.screen(), paused, "nothing moves");
        pane.press("p");
        pane.wait("it goes on", |screen| !screen.contains("PAUSED"));
        // A smaller window is drawn anew.
        pane.tmux(&["resize-window", "-x", "60", "-y", "20"]);
        pane.wait("the last line is the twentieth", |screen| {
            screen.trim_end().lines().count() == 20 && screen.contains("q quit")
        });
        pane.press("q");
        pane.assert_given_back();
    });
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    if !has_tmux() {
        return;
    }
    let server = Server::in_test_mode();
    let pane = Pane::start("interrupt", &url(&server));
    pane.wait_for("q quit");
    pane.press("C-c");
    pane.assert_given_back();

    let pane = Pane::start("terminate", &url(&server));
    pane.wait_for("q quit");
    let kill = Command::new("kill")
        .args(["-s", "TERM", &pane.pid()])
        .status();
    assert!(kill.unwrap().success());
    pane.assert_given_back();

    // A server that goes away is told, and waited for.
    let pane = Pane::start("gone", &url(&server));
    pane.wait_for("q quit");
    server.kill();
    pane.wait_for("cannot reach the server");
    pane.press("q");
    pane.assert_given_back();
}

#[test]
fn where_it_cannot_draw_it_says_so() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let said = cli.fails(2, &["top"]);
    assert!(said.contains("top draws on a terminal"), "{said}");
    let shown = super::in_terminal(&cli.command(&["top", "--url", "http://127.0.0.1:1"]));
    assert!(shown.contains("cannot reach the server"), "{shown:?}");
    assert!(!shown.contains("\u{1b}[?1049h"), "{shown:?}");
    cli.fails(2, &["top", "--every", "0"]);
}
