//! S3 services that run on this machine: SeaweedFS, which can be used, and rclone, which cannot.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a service may take to answer.
const START: Duration = Duration::from_secs(60);

/// The bucket that every service has.
pub(crate) const BUCKET: &str = "bucket";

/// Why a service did not start.
enum Failed {
    NotInstalled,
    Ended,
}

/// A service that is killed when it is dropped.
pub(crate) struct Service {
    command: Command,
    process: Child,
    port: u16,
    _directory: TempDir,
}

impl Service {
    /// Starts SeaweedFS; `None` if it is not installed, which is an error where it must be.
    pub(crate) fn seaweedfs() -> Option<Self> {
        Self::retried(Self::try_seaweedfs)
    }

    /// Starts rclone, which accepts every conditional write.
    pub(crate) fn rclone() -> Option<Self> {
        Self::retried(Self::try_rclone)
    }

    /// Somebody else may take a port between its choice and its use: then try others.
    fn retried(start: fn() -> Result<Self, Failed>) -> Option<Self> {
        for _ in 0..5 {
            match start() {
                Ok(service) => return Some(service),
                Err(Failed::NotInstalled) => return None,
                Err(Failed::Ended) => {}
            }
        }
        panic!("the service does not start");
    }

    fn try_seaweedfs() -> Result<Self, Failed> {
        let directory = TempDir::new().unwrap();
        let ports: Vec<u16> = (0..8).map(|_| free_port()).collect();
        let mut command = Command::new("weed");
        command
            .args(["-logtostderr=false", "-logdir"])
            .arg(directory.path());
        command.args(["server", "-ip=127.0.0.1", "-s3", "-master.telemetry=false"]);
        // After a kill it waits for an election that it wins alone.
        command.args([
            "-master.electionTimeout=1s",
            "-master.heartbeatInterval=100ms",
        ]);
        // It would serve more, on ports that only one server can have.
        command.args(["-s3.port.iceberg=0", "-s3.port.lance=0"]);
        command.arg(format!("-dir={}", directory.path().display()));
        let names = ["s3", "master", "volume", "filer"];
        for (name, ports) in names.iter().zip(ports.chunks(2)) {
            command.arg(format!("-{name}.port={}", ports[0]));
            command.arg(format!("-{name}.port.grpc={}", ports[1]));
        }
        Self::start(command, ports[0], directory)
    }

    fn try_rclone() -> Result<Self, Failed> {
        let directory = TempDir::new().unwrap();
        let port = free_port();
        let mut command = Command::new("rclone");
        command.args(["serve", "s3", "--addr", &format!("127.0.0.1:{port}")]);
        command.arg(directory.path());
        Self::start(command, port, directory)
    }

    fn start(mut command: Command, port: u16, directory: TempDir) -> Result<Self, Failed> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = match quiet.stderr(Stdio::null()).spawn() {
            Ok(process) => process,
            Err(error) => {
                let name = command.get_program().to_string_lossy().into_owned();
                let is_needed = std::env::var_os("XTASK_PYTHON").is_some();
                assert!(!is_needed, "there is no {name}: {error}");
                eprintln!("skipped: no {name} on this machine; cargo xtask test installs it");
                return Err(Failed::NotInstalled);
            }
        };
        let mut service = Self {
            command,
            process,
            port,
            _directory: directory,
        };
        service.wait(&[&format!("/{BUCKET}"), &format!("/{BUCKET}/first")])?;
        Ok(service)
    }

    /// Waits until everything can be made; a bucket can be a while after the port is open.
    fn wait(&mut self, paths: &[&str]) -> Result<(), Failed> {
        let started = Instant::now();
        while !paths.iter().all(|path| self.put(path)) {
            assert!(started.elapsed() < START, "the service does not answer");
            if self.process.try_wait().unwrap().is_some() {
                return Err(Failed::Ended);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Sends a PUT without a body. Returns whether it was done.
    fn put(&self, path: &str) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return false;
        };
        let request = format!(
            "PUT {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n",
            self.port
        );
        let mut answer = Vec::new();
        let sent = stream.write_all(request.as_bytes()).is_ok();
        let read = stream.read_to_end(&mut answer).is_ok();
        sent && read && answer.starts_with(b"HTTP/1.1 200")
    }

    /// What a client needs to know besides the URL.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        let pairs = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ACCESS_KEY_ID", "any"),
            ("AWS_SECRET_ACCESS_KEY", "any"),
            ("AWS_REGION", "us-east-1"),
        ];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        pairs.into_iter().map(owned).collect()
    }

    #[allow(
        dead_code,
        reason = "only the tests of the binary put a proxy before it"
    )]
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it at once, without a word.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again after `kill`, where it was, with what it has stored.
    #[allow(dead_code, reason = "only the tests of the binary kill a service")]
    pub(crate) fn start_again(&mut self) {
        self.process = self.command.spawn().unwrap();
        let answers = self.wait(&[&format!("/{BUCKET}/first")]);
        assert!(answers.is_ok(), "the service does not start again");
    }

    /// Stops the service for a while, as `SIGSTOP` does, or lets it go on.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}
