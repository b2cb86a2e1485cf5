//! A server process under measurement, with a data directory of its own.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::place::{CACHE, Place};
use crate::report::Row;
use crate::usage::{Disk, Memory, Meter, Usage};

/// How long a server may take to answer its first request, or to end.
const START_MAX: Duration = Duration::from_secs(60);
/// How often it is asked until it answers.
const ASK_EVERY: Duration = Duration::from_millis(1);
/// A server has settled when it uses less than this share of a core...
const IDLE_SHARE: f64 = 0.03;
/// ... over this time; it gets at most so long.
const IDLE_TIME: Duration = Duration::from_millis(500);
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// A process and its data; both go when this is dropped.
pub(crate) struct Running {
    command: Command,
    process: Child,
    meter: Meter,
    /// Removed after the process has ended.
    data: TempDir,
}

impl Running {
    /// Starts what `command` says of a new data directory in `directory`.
    pub(crate) fn start(directory: &Path, command: impl FnOnce(&Path) -> Command) -> Result<Self> {
        let data = tempfile::Builder::new()
            .prefix("trefoil-bench-")
            .tempdir_in(directory)
            .with_context(|| format!("cannot use --dir {}", directory.display()))?;
        let mut command = command(data.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = spawn(&mut command)?;
        let meter = Meter {
            process: process.id(),
            disk: Disk::of(data.path()),
            metrics: None,
        };
        Ok(Self {
            process,
            command,
            meter,
            data,
        })
    }

    /// Starts a `trefoil` that asks for no token: the published client of UmaDB sends none without
    /// TLS. `ports` are those of protocols besides HTTP.
    pub(crate) fn trefoil(
        program: &Path,
        directory: &Path,
        http: SocketAddr,
        ports: &[(&str, u16)],
    ) -> Result<Self> {
        let place = Place::Directory;
        Self::trefoil_in(&place, program, directory, http, ports)
    }

    /// Starts the same one, whose data is in a place.
    pub(crate) fn trefoil_in(
        place: &Place,
        program: &Path,
        directory: &Path,
        http: SocketAddr,
        ports: &[(&str, u16)],
    ) -> Result<Self> {
        let mut running = Self::start(directory, |data| {
            let mut command = Command::new(program);
            command.args(["dev", "--log-level", "error"]);
            place.put_arguments(&mut command, data);
            for protocol in ["grpc-port", "resp-port"] {
                let port = ports.iter().find(|(name, _)| *name == protocol);
                let port = port.map_or("off".to_owned(), |(_, port)| port.to_string());
                command.arg(format!("--{protocol}")).arg(port);
            }
            command.args(["--port", &http.port().to_string()]);
            command
        })?;
        running.meter.metrics = Some(http);
        Ok(running)
    }

    /// Returns the directory that is its own.
    pub(crate) fn directory(&self) -> &Path {
        self.data.path()
    }

    /// Removes the copies that a server has of an object storage. It is not running.
    pub(crate) fn remove_cache(&self) -> Result<()> {
        let cache = self.data.path().join(CACHE);
        match cache.exists() {
            true => Ok(std::fs::remove_dir_all(cache)?),
            false => Ok(()),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends the process without warning.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Asks the process to end and waits until it has.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let process = self.process.id().to_string();
        let asked = Command::new("kill").arg(process).status()?;
        ensure!(asked.success(), "the server cannot be asked to end");
        let begin = Instant::now();
        while self.process.try_wait()?.is_none() {
            if begin.elapsed() > START_MAX {
                bail!(
                    "the server did not end within {} seconds",
                    START_MAX.as_secs()
                );
            }
            std::thread::sleep(ASK_EVERY);
        }
        Ok(())
    }

    /// Starts a process that has ended again, on the same data.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        self.process = spawn(&mut self.command)?;
        self.meter.process = self.process.id();
        Ok(())
    }

    /// Waits until `is_ready` says so.
    pub(crate) fn wait_until(&mut self, mut is_ready: impl FnMut() -> bool) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < START_MAX {
            if is_ready() {
                return Ok(());
            }
            self.check()?;
            std::thread::sleep(ASK_EVERY);
        }
        bail!(
            "the server did not answer within {} seconds",
            START_MAX.as_secs()
        )
    }

    /// Waits until work in the background is done.
    pub(crate) fn settle(&self) {
        let begin = Instant::now();
        while begin.elapsed() < SETTLE_MAX {
            let before = self.meter.cpu();
            std::thread::sleep(IDLE_TIME);
            let used = self.meter.cpu().zip(before);
            let used = used.map(|(after, before)| after - before);
            if used.is_none_or(|used| used < IDLE_TIME.mul_f64(IDLE_SHARE)) {
                return;
            }
        }
    }

    /// An error if the process has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            Some(status) => bail!("the server ended by itself: {status}"),
            None => Ok(()),
        }
    }

    /// What the process has used so far.
    pub(crate) fn usage(&self) -> Usage {
        self.meter.read()
    }

    /// The bytes that its data takes on the disk.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        allocated(self.data.path())
    }

    /// A row of the memory that the process has now, in MiB.
    pub(crate) fn memory_row(&self, system: &str) -> Row {
        match Memory::of(self.meter.process) {
            Some(memory) => Row::new(system, memory.resident)
                .note(format!("{:.0} of it in no file", memory.anonymous)),
            None => Row::missing(system, "/proc does not say"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The bytes that the disk has given to a file, or to all files below a directory.
fn allocated(path: &Path) -> Result<u64> {
    let metadata = path.symlink_metadata()?;
    // The kernel counts in units of 512 bytes, whatever the disk has.
    let mut bytes = metadata.blocks() * 512;
    if metadata.is_dir() {
        for entry in path.read_dir()? {
            bytes += allocated(&entry?.path())?;
        }
    }
    Ok(bytes)
}

fn spawn(command: &mut Command) -> Result<Child> {
    let program = command.get_program().to_owned();
    command
        .spawn()
        .with_context(|| format!("cannot start {}", Path::new(&program).display()))
}

/// An address of this machine that nobody listens on.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}
