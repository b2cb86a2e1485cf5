//! A client that shows the bytes: one request per connection, or a connection to play with.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use trefoil::Token;

/// How long any answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// The header line with the development token.
pub(crate) fn bearer() -> String {
    bearer_of(Token::development().reveal())
}

pub(crate) fn bearer_of(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

/// Sends a call to `/rpc` with the development token.
pub(crate) fn rpc(address: SocketAddr, body: &str) -> Reply {
    request(address, "POST", "/rpc", &bearer(), body.as_bytes())
}

/// Sends a request on a connection of its own. `headers` are whole lines.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> Reply {
    let mut connection = Connection::open(address);
    let headers = format!("{headers}connection: close\r\n");
    connection.send(method, path, &headers, body);
    connection.reply()
}

/// A connection.
pub(crate) struct Connection {
    pub(crate) reader: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self {
            reader: BufReader::new(socket),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Sends a request with a body of known length.
    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) {
        let length = body.len();
        // So that JSON in a query string is legible in a test.
        let path = path.replace('"', "%22");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n"
        );
        self.write(&[head.as_bytes(), body].concat()).unwrap();
    }

    /// Reads a head: the status and the headers.
    pub(crate) fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let status = self.line();
        let status = status
            .split(' ')
            .nth(1)
            .unwrap_or_else(|| panic!("no status: {status:?}"));
        let status = status.parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        (status, headers)
    }

    pub(crate) fn reply(&mut self) -> Reply {
        let (status, headers) = self.head();
        let mut reply = Reply {
            status,
            headers,
            body: Vec::new(),
        };
        if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                reply.body.extend_from_slice(&chunk);
            }
        } else if let Some(length) = reply.header("content-length") {
            reply.body.resize(length.parse().unwrap(), 0);
            self.reader.read_exact(&mut reply.body).unwrap();
        }
        reply
    }

    /// The next chunk of a chunked body; `None` at its end.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.line();
        let size = usize::from_str_radix(size.trim_end(), 16)
            .unwrap_or_else(|_| panic!("no chunk size: {size:?}"));
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).unwrap();
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }

    /// Reads until the other side closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.reader.read_to_end(&mut rest);
        rest
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line
    }
}

/// A subscription: the frames that come in.
pub(crate) struct Frames {
    connection: Connection,
    pending: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Frames {
    /// Subscribes with the development token.
    pub(crate) fn open(address: SocketAddr, path: &str) -> Self {
        Self::open_with(address, path, &bearer())
    }

    pub(crate) fn open_with(address: SocketAddr, path: &str, headers: &str) -> Self {
        let mut connection = Connection::open(address);
        connection.send("GET", path, headers, b"");
        let (status, headers) = connection.head();
        assert_eq!(status, 200, "{path}");
        Self {
            connection,
            pending: String::new(),
            headers,
        }
    }

    /// The next frame without its blank line; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.pending.split_once("\n\n") {
                let frame = frame.to_owned();
                self.pending = rest.to_owned();
                return Some(frame);
            }
            let chunk = self.connection.chunk()?;
            self.pending.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next frame that is not a comment.
    pub(crate) fn next_data(&mut self) -> Option<String> {
        loop {
            let frame = self.next()?;
            if !frame.starts_with(':') {
                return Some(frame);
            }
        }
    }
}
