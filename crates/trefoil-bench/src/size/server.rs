//! The server whose size is measured, and the requests that make it grow.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use trefoil::Token;

use crate::closed_loop::connect;
use crate::http::{ask, get, parse, post_as};
use crate::resp;
use crate::running::{Running, free_address};
use crate::usage::{Memory, metric};

/// What a client of HTTP/2 begins with: the preface, and settings without any.
const HTTP2_BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// A frame has a head of so many bytes.
const HTTP2_FRAME_BYTES: usize = 9;

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// What a server needs, in MiB.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerSize {
    /// Memory in no file.
    pub(super) memory: f64,
    pub(super) disk: f64,
}

impl ServerSize {
    /// Returns what is more than in the other one.
    pub(super) fn without(self, other: &Self) -> Self {
        Self {
            memory: self.memory - other.memory,
            disk: self.disk - other.disk,
        }
    }
}

/// A server on data of its own.
pub(super) struct SizedServer {
    running: Running,
    http: SocketAddr,
    grpc: SocketAddr,
    resp: SocketAddr,
}

impl SizedServer {
    pub(super) fn start(program: &Path, directory: &Path) -> Result<Self> {
        let (http, grpc, resp) = (free_address()?, free_address()?, free_address()?);
        let ports = [("grpc-port", grpc.port()), ("resp-port", resp.port())];
        let mut running = Running::trefoil(program, directory, http, &ports)?;
        running.wait_until(|| get(http, "/ready").is_ok())?;
        Ok(Self {
            running,
            http,
            grpc,
            resp,
        })
    }

    /// Returns what it needs when it has nothing to do any more.
    pub(super) fn size(&self) -> Result<ServerSize> {
        self.running.settle();
        let memory = Memory::of(self.running.id()).context("/proc does not say")?;
        Ok(ServerSize {
            memory: memory.anonymous,
            disk: self.running.disk_bytes()? as f64 / MEBIBYTE,
        })
    }

    /// Stops it and starts it again. Returns how long it took until it was ready, and what it needs then.
    pub(super) fn restart(&mut self) -> Result<(Duration, ServerSize)> {
        self.running.stop()?;
        let begin = Instant::now();
        self.running.start_again()?;
        let http = self.http;
        self.running.wait_until(|| get(http, "/ready").is_ok())?;
        let took = begin.elapsed();
        Ok((took, self.size()?))
    }

    /// Calls a method with a token, or with that of the server.
    pub(super) fn rpc(&self, token: Option<&str>, call: &Value) -> Result<Value> {
        let development = Token::development();
        let token = token.unwrap_or(development.reveal());
        let answer = ask(self.http, &post_as(token, self.http, &call.to_string()))?;
        Ok(serde_json::from_slice(&answer)?)
    }

    pub(super) fn metric(&self, name: &str) -> Result<u64> {
        let text = String::from_utf8(get(self.http, "/metrics")?)?;
        metric(&text, name).with_context(|| format!("there is no {name}"))
    }

    /// A connection that was answered once.
    pub(super) fn connect_http(&self) -> Result<TcpStream> {
        let mut socket = connect(self.http)?;
        write!(
            socket,
            "GET /health HTTP/1.1\r\nhost: {}\r\n\r\n",
            self.http
        )?;
        let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
        while parse(&received)?.is_none() {
            let length = socket.read(&mut buffer)?;
            ensure!(length > 0, "the server closed a connection");
            received.extend_from_slice(&buffer[..length]);
        }
        Ok(socket)
    }

    /// A connection that both sides have begun.
    pub(super) fn connect_grpc(&self) -> Result<TcpStream> {
        let mut socket = connect(self.grpc)?;
        socket.write_all(HTTP2_BEGIN)?;
        socket.read_exact(&mut [0; HTTP2_FRAME_BYTES])?;
        Ok(socket)
    }

    /// A connection that was answered once.
    pub(super) fn connect_resp(&self) -> Result<TcpStream> {
        resp::open(self.resp)
    }
}
