//! A server process under measurement, with a data directory of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tempfile::TempDir;
use trefoil::{NamespaceId, Token};

use crate::cpu;

/// How long a server may take to answer its first request.
const START_MAX: Duration = Duration::from_secs(60);
/// How often it is asked until it answers.
const ASK_EVERY: Duration = Duration::from_millis(1);

/// The server to measure.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerProgram {
    /// The program `trefoil` to measure [default: the one beside this program].
    #[arg(long, value_name = "PROGRAM")]
    trefoil: Option<PathBuf>,
}

impl ServerProgram {
    /// Returns the path of the program.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        let program = match &self.trefoil {
            Some(program) => program.clone(),
            None => std::env::current_exe()?.with_file_name("trefoil"),
        };
        ensure!(
            program.is_file(),
            "{} is not there: name the program to measure with --trefoil",
            program.display()
        );
        Ok(program)
    }
}

/// A process and its data; both go when this is dropped.
pub(crate) struct Running {
    command: Command,
    process: Child,
    /// Removed after the process has ended.
    _data: TempDir,
}

impl Running {
    /// Starts what `command` says of a new data directory in `directory`.
    pub(crate) fn start(
        directory: &Path,
        command: impl FnOnce(&Path) -> Result<Command>,
    ) -> Result<Self> {
        let data = tempfile::Builder::new()
            .prefix("trefoil-bench-")
            .tempdir_in(directory)
            .with_context(|| format!("cannot use --dir {}", directory.display()))?;
        let mut command = command(data.path())?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self {
            process: spawn(&mut command)?,
            command,
            _data: data,
        })
    }

    /// Ends the process without warning.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Starts a process that was killed again, on the same data.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        self.process = spawn(&mut self.command)?;
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

    /// An error if the process has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            Some(status) => bail!("the server ended by itself: {status}"),
            None => Ok(()),
        }
    }

    /// The CPU time that the process has used so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        cpu::of_process(self.process.id())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(command: &mut Command) -> Result<Child> {
    let program = command.get_program().to_owned();
    command
        .spawn()
        .with_context(|| format!("cannot start {}", Path::new(&program).display()))
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// A token for the default namespace.
pub(crate) fn random_token() -> Result<Token> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| anyhow!("no random numbers: {error}"))?;
    let namespace = NamespaceId::new(trefoil::DEFAULT_NAMESPACE)?;
    Ok(Token::from_secret(&namespace, &secret))
}

/// Returns how a `trefoil` is started as a server, without a port.
pub(crate) fn serve(trefoil: &Path, data: &Path, token: &Token) -> Command {
    let mut command = Command::new(trefoil);
    command
        .args(["serve", "--listen", "127.0.0.1", "--log-level", "error"])
        .arg("--data-dir")
        .arg(data)
        // Not as an argument: those can be seen by everybody.
        .env("TREFOIL_TOKEN", token.reveal());
    command
}
