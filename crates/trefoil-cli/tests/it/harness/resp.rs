//! A client of the Redis protocol that shows every reply as it was on the wire.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::http::connect;

/// A reply, decoded, with the type that the wire gave it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    /// `$-1`
    NilBulk,
    /// `*-1`
    NilArray,
    /// `_`
    Null,
    /// `,` with the digits as they were.
    Double(String),
    /// `=`
    Verbatim(Vec<u8>),
    Array(Vec<Value>),
    Set(Vec<Value>),
    Map(Vec<(Value, Value)>),
    /// `>`
    Push(Vec<Value>),
}

impl Value {
    pub(crate) fn bulk(text: impl AsRef<[u8]>) -> Self {
        Self::Bulk(text.as_ref().to_vec())
    }

    pub(crate) fn ok() -> Self {
        Self::Simple("OK".to_owned())
    }

    /// The elements of a list, a set or a push.
    pub(crate) fn elements(&self) -> Option<&[Self]> {
        match self {
            Self::Array(all) | Self::Set(all) | Self::Push(all) => Some(all),
            _ => None,
        }
    }

    /// The bytes of a string of any kind.
    #[track_caller]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) | Self::Verbatim(bytes) => bytes,
            Self::Simple(text) | Self::Double(text) => text.as_bytes(),
            _ => panic!("no string: {self:?}"),
        }
    }
}

/// As `redis-cli` shows it, on one line.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) => write!(f, "+{text}"),
            Self::Error(text) => write!(f, "-{text}"),
            Self::Integer(integer) => write!(f, ":{integer}"),
            Self::Bulk(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Verbatim(bytes) => write!(f, "=\"{}\"", bytes.escape_ascii()),
            Self::NilBulk => write!(f, "$nil"),
            Self::NilArray => write!(f, "*nil"),
            Self::Null => write!(f, "_"),
            Self::Double(text) => write!(f, ",{text}"),
            Self::Array(all) => f.debug_list().entries(all).finish(),
            Self::Set(all) => f.debug_set().entries(all).finish(),
            Self::Push(all) => write!(f, ">").and_then(|()| f.debug_list().entries(all).finish()),
            Self::Map(pairs) => {
                write!(f, "%")?;
                f.debug_map()
                    .entries(pairs.iter().map(|(k, v)| (k, v)))
                    .finish()
            }
        }
    }
}

/// One connection.
pub(crate) struct Resp(BufReader<TcpStream>);

impl Resp {
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        Ok(Self(BufReader::new(connect(port)?)))
    }

    /// Sends words that are separated by spaces and returns the reply.
    #[track_caller]
    pub(crate) fn line(&mut self, line: &str) -> Value {
        let words: Vec<&str> = line.split(' ').collect();
        self.call(&words)
    }

    #[track_caller]
    pub(crate) fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Value {
        self.try_call(words).unwrap()
    }

    pub(crate) fn try_call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Value> {
        let mut request = Vec::new();
        encode(words, &mut request);
        self.send(&request)?;
        self.receive()
    }

    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(request)
    }

    pub(crate) fn receive(&mut self) -> io::Result<Value> {
        let line = self.text_line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| wrong(&line))?;
        match kind {
            "+" => Ok(Value::Simple(rest.to_owned())),
            "-" => Ok(Value::Error(rest.to_owned())),
            "," => Ok(Value::Double(rest.to_owned())),
            "_" => Ok(Value::Null),
            ":" => Ok(Value::Integer(rest.parse().map_err(|_| wrong(&line))?)),
            "$" if rest == "-1" => Ok(Value::NilBulk),
            "*" if rest == "-1" => Ok(Value::NilArray),
            _ => {
                let length = rest.parse().map_err(|_| wrong(&line))?;
                self.receive_long(kind, length)
            }
        }
    }

    /// What follows a line with a length.
    fn receive_long(&mut self, kind: &str, length: usize) -> io::Result<Value> {
        match kind {
            "$" => Ok(Value::Bulk(self.bytes(length)?)),
            "=" => Ok(Value::Verbatim(self.bytes(length)?)),
            "*" => Ok(Value::Array(self.values(length)?)),
            "~" => Ok(Value::Set(self.values(length)?)),
            ">" => Ok(Value::Push(self.values(length)?)),
            "%" => {
                let pair = |_| Ok((self.receive()?, self.receive()?));
                let pairs: io::Result<_> = (0..length).map(pair).collect();
                Ok(Value::Map(pairs?))
            }
            _ => Err(wrong(kind)),
        }
    }

    fn values(&mut self, n: usize) -> io::Result<Vec<Value>> {
        (0..n).map(|_| self.receive()).collect()
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        match bytes.ends_with(b"\r\n") {
            true => bytes.truncate(length),
            false => return Err(wrong("a string without its end")),
        }
        Ok(bytes)
    }

    fn text_line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        if self.0.read_until(b'\n', &mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
            None => Err(wrong("a line without its end")),
        }
    }
}

/// A request in the form that clients send.
pub(crate) fn encode<W: AsRef<[u8]>>(words: &[W], out: &mut Vec<u8>) {
    out.extend(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        let word = word.as_ref();
        out.extend(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn wrong(line: &str) -> io::Error {
    io::Error::other(format!("not a reply: {line:?}"))
}
