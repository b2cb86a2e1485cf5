//! The server under measurement: a child process of this program, or one that runs already.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tempfile::TempDir;
use trefoil::{NamespaceId, Token};

use super::Arguments;
use crate::cpu;

/// How long a child may take to answer its first request.
const START_MAX: Duration = Duration::from_secs(30);

/// Where the server is and how it is asked; a child is ended when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    token: String,
    child: Option<Running>,
}

struct Running {
    process: Child,
    /// Removed after the process has ended.
    _data: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    pub(crate) fn start_or_use(arguments: &Arguments) -> Result<Self> {
        match (&arguments.url, &arguments.token) {
            (Some(url), Some(token)) => Ok(Self {
                address: address(url)?,
                token: token.clone(),
                child: None,
            }),
            (Some(_), None) => bail!("--url needs --token"),
            (None, _) => Self::start(arguments),
        }
    }

    fn start(arguments: &Arguments) -> Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| anyhow!("no random numbers: {error}"))?;
        let token = Token::from_secret(&NamespaceId::new(trefoil::DEFAULT_NAMESPACE)?, &secret);
        let data = tempfile::Builder::new()
            .prefix("trefoil-bench-")
            .tempdir_in(&arguments.dir)
            .with_context(|| format!("cannot use --dir {}", arguments.dir.display()))?;
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let process = Command::new(std::env::current_exe()?)
            .args(["serve", "--listen", "127.0.0.1", "--log-level", "error"])
            .args(["--port", &port.to_string()])
            .arg("--data-dir")
            .arg(data.path())
            // Not as an argument: those can be seen by everybody.
            .env("TREFOIL_TOKEN", token.reveal())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the server")?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut running = Running {
            process,
            _data: data,
        };
        wait_until_healthy(address, &mut running.process)?;
        Ok(Self {
            address,
            token: token.reveal().to_owned(),
            child: Some(running),
        })
    }

    /// The CPU time that the child has used so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        cpu::of_process(self.child.as_ref()?.process.id())
    }

    /// A whole request to the RPC endpoint.
    pub(crate) fn request(&self, body: &str) -> Vec<u8> {
        format!(
            "POST /rpc HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        )
        .into_bytes()
    }

    /// Ends the child, if there is one.
    pub(crate) fn stop(self) -> Result<()> {
        if let Some(mut running) = self.child {
            let ended = running.process.try_wait()?;
            if let Some(status) = ended {
                bail!("the server ended during the measurement: {status}");
            }
        }
        Ok(())
    }
}

fn wait_until_healthy(address: SocketAddr, process: &mut Child) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < START_MAX {
        if let Some(status) = process.try_wait()? {
            bail!("the server ended before it answered: {status}");
        }
        if is_healthy(address) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!(
        "the server did not answer within {} seconds",
        START_MAX.as_secs()
    )
}

fn is_healthy(address: SocketAddr) -> bool {
    let Ok(mut socket) = TcpStream::connect(address) else {
        return false;
    };
    let request = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut answer = [0; 15];
    socket
        .set_read_timeout(Some(Duration::from_secs(1)))
        .is_ok()
        && socket.write_all(request.as_bytes()).is_ok()
        && socket.read_exact(&mut answer).is_ok()
        && answer.starts_with(b"HTTP/1.1 200")
}

/// The address in a URL without a path.
fn address(url: &str) -> Result<SocketAddr> {
    let host = url
        .strip_prefix("http://")
        .context("--url must begin with http://")?;
    let host = host.trim_end_matches('/');
    let with_port = if host.contains(':') {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let mut addresses = with_port
        .to_socket_addrs()
        .with_context(|| format!("--url {url} cannot be resolved"))?;
    addresses
        .next()
        .with_context(|| format!("--url {url} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_from_a_url() {
        assert_eq!(address("http://127.0.0.1:8080/").unwrap().port(), 8080);
        assert_eq!(address("http://127.0.0.1").unwrap().port(), 80);
        assert!(address("https://127.0.0.1").is_err());
    }
}
