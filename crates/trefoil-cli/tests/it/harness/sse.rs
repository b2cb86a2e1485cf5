//! A subscriber: reads server-sent events in a thread of its own, as strictly as the strictest
//! client in use (fields with exactly one space, blocks apart by one blank line, LF only).

use std::io::{BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::http::{connect, read_chunk, read_head};
use super::{Response, Server};

/// One block of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Comment(String),
    Event {
        event: Option<String>,
        id: Option<String>,
        data: String,
    },
}

/// What a subscription has for a client that looks.
#[derive(Debug)]
pub(crate) enum Poll {
    Data(Value),
    Nothing,
    /// The server has closed the stream.
    End,
}

/// An open subscription.
pub(crate) struct Sse {
    pub(crate) response: Response,
    stream: TcpStream,
    frames: Receiver<Frame>,
}

impl Sse {
    /// Opens `path`, with more headers if need be. A refusal is in `response`.
    pub(crate) fn open(server: &Server, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut stream = connect(server.port).unwrap();
        stream.set_read_timeout(None).unwrap();
        let mut head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (status, headers) = read_head(&mut reader).unwrap();
        let response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        let (sender, frames) = channel();
        thread::spawn(move || read_frames(reader, &sender));
        Self {
            response,
            stream,
            frames,
        }
    }

    /// Opens `/subscribe` with the given query and waits for `: ready`.
    pub(crate) fn subscribe(server: &Server, token: &str, query: &str) -> Self {
        let subscription = Self::open(server, &format!("/subscribe?token={token}&{query}"), &[]);
        assert_eq!(subscription.response.status, 200);
        assert_eq!(
            subscription.next(),
            Some(Frame::Comment("ready".to_owned()))
        );
        subscription
    }

    /// The next block, or `None` if none came in time or the stream has ended.
    pub(crate) fn next(&self) -> Option<Frame> {
        self.frames.recv_timeout(Duration::from_secs(20)).ok()
    }

    /// The next event's data, past comments.
    #[track_caller]
    pub(crate) fn data(&self) -> Value {
        self.event().1
    }

    /// The next event's id and data, past comments.
    #[track_caller]
    pub(crate) fn event(&self) -> (Option<String>, Value) {
        loop {
            match self.next() {
                Some(Frame::Comment(_)) => {}
                Some(Frame::Event { data, id, .. }) => {
                    return (id, serde_json::from_str(&data).unwrap());
                }
                None => panic!("no event came"),
            }
        }
    }

    /// What has come within a moment.
    pub(crate) fn poll(&self) -> Poll {
        match self.frames.recv_timeout(Duration::from_millis(50)) {
            Ok(Frame::Event { data, .. }) => Poll::Data(serde_json::from_str(&data).unwrap()),
            Ok(Frame::Comment(_)) | Err(RecvTimeoutError::Timeout) => Poll::Nothing,
            Err(RecvTimeoutError::Disconnected) => Poll::End,
        }
    }

    /// Whether nothing but comments comes for this long.
    pub(crate) fn is_silent_for(&self, duration: Duration) -> bool {
        !matches!(self.frames.recv_timeout(duration), Ok(Frame::Event { .. }))
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn read_frames(mut reader: BufReader<TcpStream>, sender: &Sender<Frame>) {
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = read_chunk(&mut reader) {
        text.extend(chunk);
        while let Some(end) = text.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = text.drain(..end + 2).take(end).collect();
            let frame = parse(std::str::from_utf8(&block).unwrap());
            if sender.send(frame).is_err() {
                return;
            }
        }
    }
}

fn parse(block: &str) -> Frame {
    assert!(
        !block.is_empty() && !block.starts_with('\n'),
        "an empty block"
    );
    assert!(!block.contains('\r'), "{block:?}");
    if let Some(comment) = block.strip_prefix(": ") {
        return Frame::Comment(comment.to_owned());
    }
    let field = |name: &str| {
        let prefix = format!("{name}: ");
        let mut values = block
            .lines()
            .filter_map(|line| line.strip_prefix(prefix.as_str()));
        let value = values.next().map(str::to_owned);
        assert_eq!(values.next(), None, "{name} twice in {block:?}");
        value
    };
    let data = field("data").unwrap_or_else(|| panic!("no data in {block:?}"));
    Frame::Event {
        event: field("event"),
        id: field("id"),
        data,
    }
}
