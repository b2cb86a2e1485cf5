//! A real `redis-server`, to compare with.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Resp, Value, free_port};

/// The version that is compared with.
const VERSION: &str = "7.0.";

/// A running `redis-server` that keeps nothing. It is killed when it is dropped.
pub(super) struct Redis {
    child: Child,
    pub(super) port: u16,
}

impl Redis {
    /// Starts one; `None` if the machine has none.
    pub(super) fn start() -> Option<Self> {
        let port = free_port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string()])
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--daemonize", "no"])
            // The order of SORT ALPHA is that of the bytes.
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) => {
                let is_needed = std::env::var_os("XTASK_REDIS").is_some();
                assert!(!is_needed, "cannot start redis-server: {error}");
                eprintln!("skipped: no redis-server on this machine ({error})");
                return None;
            }
        };
        let mut redis = Self { child, port };
        redis.wait_until_it_answers();
        redis.is_the_version().then_some(redis)
    }

    /// Replies are compared with those of one version: each new one changes some.
    fn is_the_version(&self) -> bool {
        let information = Resp::connect(self.port).unwrap().line("INFO server");
        let text = String::from_utf8_lossy(information.bytes()).into_owned();
        let mut lines = text.lines();
        let version = lines.find_map(|line| line.strip_prefix("redis_version:"));
        let is_it = version.is_some_and(|version| version.starts_with(VERSION));
        if !is_it {
            eprintln!("skipped: redis-server is {version:?}, not {VERSION}");
        }
        is_it
    }

    fn wait_until_it_answers(&mut self) {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(30) {
            let answer = Resp::connect(self.port).and_then(|mut client| client.try_call(&["PING"]));
            if answer.is_ok_and(|answer| answer == Value::Simple("PONG".to_owned())) {
                return;
            }
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "redis-server ended"
            );
            thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not answer");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
