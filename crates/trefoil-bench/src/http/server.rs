//! The server under measurement: a child process, or one that runs already.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Arguments;
use crate::running::{Running, free_port, random_token, serve};

/// Where the server is and how it is asked; a child is ended when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    token: String,
    child: Option<Running>,
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
        let program = arguments.server.program()?;
        let (token, port) = (random_token()?, free_port()?);
        let mut running = Running::start(&arguments.dir, |data| {
            let mut command = serve(&program, data, &token);
            command.args(["--port", &port.to_string()]);
            Ok(command)
        })?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        running.wait_until(|| is_healthy(address))?;
        Ok(Self {
            address,
            token: token.reveal().to_owned(),
            child: Some(running),
        })
    }

    /// The CPU time that the child has used so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.child.as_ref()?.cpu()
    }

    /// A whole request to the RPC endpoint.
    pub(crate) fn request(&self, body: &str) -> Vec<u8> {
        post(self.address, &self.token, body)
    }

    /// Ends the child, if there is one.
    pub(crate) fn stop(self) -> Result<()> {
        self.child.map_or(Ok(()), |mut running| running.check())
    }
}

/// A whole request to the RPC endpoint of a server.
pub(crate) fn post(address: SocketAddr, token: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /rpc HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
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
