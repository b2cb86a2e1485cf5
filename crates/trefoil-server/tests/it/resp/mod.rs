//! The RESP server over raw sockets: what every byte of a request does, and every byte of a reply.

mod access;
mod cases;
mod crowd;
mod events;
mod hostile;
mod pipelines;
mod shutdown;
mod transactions;
pub(crate) mod value;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use trefoil::Token;

use crate::harness::TestServer;
use value::{Value, decode};

/// A client that sees every byte.
pub(crate) struct Client {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(server: &TestServer) -> Self {
        let socket = TcpStream::connect(server.resp).unwrap();
        socket.set_nodelay(true).unwrap();
        let timeout = Some(Duration::from_secs(20));
        socket.set_read_timeout(timeout).unwrap();
        let buffer = Vec::new();
        Self { socket, buffer }
    }

    /// A client with the development token.
    pub(crate) fn known(server: &TestServer) -> Self {
        let mut client = Self::connect(server);
        let token = Token::development();
        assert_eq!(client.ask(&["AUTH", token.reveal()]), "+OK");
        client
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub(crate) fn send(&mut self, words: &[&str]) {
        self.write(&request(words));
    }

    /// The next reply.
    pub(crate) fn reply(&mut self) -> Value {
        loop {
            if let Some((value, length)) = decode(&self.buffer) {
                self.buffer.drain(..length);
                return value;
            }
            assert!(self.fill(), "the connection was closed: {:?}", self.buffer);
        }
    }

    /// Another one that uses the same connection.
    pub(crate) fn second(&self) -> Self {
        Self {
            socket: self.socket.try_clone().unwrap(),
            buffer: Vec::new(),
        }
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> bool {
        let mut chunk = vec![0; 256 * 1024];
        let read = self.socket.read(&mut chunk).unwrap();
        self.buffer.extend_from_slice(&chunk[..read]);
        read > 0
    }

    /// Asks, and shows the reply.
    pub(crate) fn ask(&mut self, words: &[&str]) -> String {
        self.send(words);
        self.reply().to_string()
    }

    /// Asks for the words of a line.
    pub(crate) fn say(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.ask(&words)
    }

    /// Checks that nothing comes any more, because the server has closed the connection.
    #[track_caller]
    pub(crate) fn check_closed(&mut self) {
        assert!(self.buffer.is_empty(), "{:?}", self.buffer);
        match self.socket.read(&mut [0; 64]) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("the connection is open: {other:?}"),
        }
    }
}

/// A request of these words.
pub(crate) fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}
