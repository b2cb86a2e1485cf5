//! `examples/box-office`, started by its one command and looked at in a real browser.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::harness::{ADMIN, connect, free_port};
use crate::python;

/// How long it may take until the page is there.
const START: Duration = Duration::from_secs(60);

/// The example, with a Trefoil that it started itself.
struct BoxOffice {
    child: Child,
    port: u16,
    http_port: u16,
    resp_port: u16,
    _data: TempDir,
}

impl BoxOffice {
    fn start() -> Self {
        let data = TempDir::new().unwrap();
        let (port, http_port, resp_port) = (free_port(), free_port(), free_port());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/box-office/run.py");
        let child = Command::new("python3")
            .arg(script)
            .args(["--port", &port.to_string()])
            .args(["--http-port", &http_port.to_string()])
            .args(["--resp-port", &resp_port.to_string()])
            .args(["--binary", env!("CARGO_BIN_EXE_trefoil")])
            .arg("--data")
            .arg(data.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut office = Self {
            child,
            port,
            http_port,
            resp_port,
            _data: data,
        };
        let started = Instant::now();
        while connect(port).is_err() {
            let ended = office.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {ended:?}");
            assert!(started.elapsed() < START, "the page is not there");
            thread::sleep(Duration::from_millis(50));
        }
        office
    }

    /// Ends it politely: it must end what it has started.
    fn close(mut self) {
        self.terminate();
        for port in [self.port, self.http_port, self.resp_port] {
            assert!(connect(port).is_err(), "somebody still listens on {port}");
        }
    }

    fn terminate(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-s", "TERM", &pid]).status();
        let _ = self.child.wait();
    }
}

impl Drop for BoxOffice {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.terminate();
        }
    }
}

/// Where the browser is; `cargo xtask test` installs one.
pub(crate) fn browser() -> Option<PathBuf> {
    let given = std::env::var_os("CHROMIUM");
    let is_needed = given.is_some();
    let path = PathBuf::from(given.unwrap_or_else(|| "/usr/bin/chromium".into()));
    assert!(path.exists() || !is_needed, "there is no {path:?}");
    if !path.exists() {
        eprintln!("skipped: no chromium; cargo xtask test installs it");
        return None;
    }
    Some(path)
}

#[test]
fn the_venue_sells_out_in_a_browser() {
    if browser().is_none() || !python::has("aiohttp, redis, playwright") {
        return;
    }
    let office = BoxOffice::start();
    let url = format!("http://127.0.0.1:{}", office.port);
    let mut script = python::script("box_office.py");
    python::run(script.args([&url, &office.resp_port.to_string(), ADMIN]));
    office.close();
}
