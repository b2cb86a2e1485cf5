//! The least HTTP/1.1 client that keeps its connection and lets a test send wrong bytes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The result of a call that succeeded.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or("(no code)")
            .to_owned()
    }
}

/// A client with at most one connection, which it keeps.
pub(crate) struct Client {
    port: u16,
    token: Option<String>,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    pub(crate) fn new(port: u16, token: Option<&str>) -> Self {
        Self {
            port,
            token: token.map(str::to_owned),
            connection: None,
        }
    }

    /// Calls a method; `call` is the JSON array.
    pub(crate) fn rpc(&mut self, call: &Value) -> Response {
        self.post("/rpc", call.to_string().as_bytes())
    }

    pub(crate) fn try_rpc(&mut self, call: &Value) -> io::Result<Response> {
        self.try_request("POST", "/rpc", &[], call.to_string().as_bytes())
    }

    pub(crate) fn post(&mut self, path: &str, body: &[u8]) -> Response {
        self.try_request("POST", path, &[], body).unwrap()
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.try_request("GET", path, &[], b"").unwrap()
    }

    /// Writes one event and returns its global position.
    #[track_caller]
    pub(crate) fn write(&mut self, stream: &str, data: &Value) -> u64 {
        let call = json!(["stream.write", stream, {"type": "Happened", "data": data}]);
        self.rpc(&call).ok()["globalPosition"].as_u64().unwrap()
    }

    /// Creates a namespace and returns its token.
    #[track_caller]
    pub(crate) fn create_namespace(&mut self, id: &str) -> String {
        let created = self.rpc(&json!(["ns.create", id])).ok();
        created["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn try_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        let answer = self
            .send(method, path, headers, body)
            .and_then(|()| self.receive());
        let closes = |answer: &Response| answer.header("connection") == Some("close");
        if answer.as_ref().map_or(true, closes) {
            self.connection = None;
        }
        answer
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += "Host: localhost\r\n";
        }
        head += &format!("Content-Length: {}\r\n", body.len());
        if let Some(token) = &self.token {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let stream = self.connection()?.get_mut();
        stream.write_all(&[head.as_bytes(), body].concat())
    }

    fn connection(&mut self) -> io::Result<&mut BufReader<TcpStream>> {
        if self.connection.is_none() {
            self.connection = Some(BufReader::new(connect(self.port)?));
        }
        Ok(self.connection.as_mut().unwrap())
    }

    fn receive(&mut self) -> io::Result<Response> {
        let connection = self.connection()?;
        let (status, headers) = read_head(connection)?;
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        if response.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = read_chunk(connection)? {
                response.body.extend(chunk);
            }
        } else if let Some(length) = response.header("content-length") {
            response.body = vec![0; length.parse().unwrap()];
            connection.read_exact(&mut response.body)?;
        }
        Ok(response)
    }
}

/// A connection that gives up rather than hang a test.
pub(crate) fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn read_line(connection: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// The status and the headers, with lower-case names.
pub(crate) fn read_head(connection: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let first = read_line(connection)?;
    let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("not HTTP: {first}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(connection)?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok((status, headers));
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// The next chunk of a chunked body; `None` at its end.
pub(crate) fn read_chunk(connection: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let length = usize::from_str_radix(&read_line(connection)?, 16).map_err(io::Error::other)?;
    let mut chunk = vec![0; length + 2];
    connection.read_exact(&mut chunk)?;
    chunk.truncate(length);
    Ok((length > 0).then_some(chunk))
}
