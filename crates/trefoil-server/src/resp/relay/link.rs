//! A client's connection to the node that has its namespace.
//!
//! Two rules between nodes say what was carried out. A node whose reply is `WRONGNODE` carries out
//! nothing after it. And one that ends a connection properly has answered all that it has carried out. Only
//! when a connection breaks, nobody knows.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use futures_util::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::time::timeout;

use super::super::encoder::RespVersion;
use super::super::output::RespOutput;
use super::errand::Parcel;
use super::scanner::{NoReply, ReplyScanner};
use crate::budget::Reservation;
use crate::limits::{PEER_DIAL_TIMEOUT, RESP_LINE_BYTES_MAX, RESP_LINK_BYTES};
use crate::peers::PeerStream;

/// Why there are no more replies.
#[derive(Debug)]
pub(super) enum LinkEnd {
    /// What is not answered was certainly not carried out.
    Proper,
    /// Nobody knows.
    Broken(String),
}

impl From<NoReply> for LinkEnd {
    fn from(_: NoReply) -> Self {
        Self::Broken("it was answered with something that is no reply".into())
    }
}

/// A reply.
#[derive(Debug)]
pub(super) enum LinkReply {
    Error(String),
    /// What it begins with is in the buffer.
    Other,
}

/// A connection to another node, on which the client has shown who it is.
#[derive(Debug)]
pub(super) struct OwnerLink {
    pub(super) address: Arc<str>,
    pub(super) replies: LinkReader,
    pub(super) requests: WriteHalf<PeerStream>,
    /// What the node was told last.
    pub(super) protocol: RespVersion,
    pub(super) strict: Option<bool>,
    /// What it takes of the memory for clients.
    pub(super) memory: Reservation,
}

/// The replies that arrive.
#[derive(Debug)]
pub(super) struct LinkReader {
    stream: ReadHalf<PeerStream>,
    buffer: BytesMut,
}

/// How a client shows who it is.
pub(super) struct Introduction<'a> {
    pub(super) protocol: RespVersion,
    /// The namespace and its token; `None` if none is needed.
    pub(super) token: Option<(&'a str, &'a str)>,
    pub(super) name: &'a str,
}

/// Why a connection cannot be used.
pub(super) enum NoLink {
    /// Another node may be asked.
    Unreachable(String),
    /// The client is told so.
    Refused(String),
}

impl OwnerLink {
    /// Shows who the client is on a connection that was opened.
    pub(super) async fn begin(
        stream: PeerStream,
        address: &Arc<str>,
        client: Introduction<'_>,
        memory: Reservation,
    ) -> Result<Self, NoLink> {
        let (stream, requests) = tokio::io::split(stream);
        let replies = LinkReader {
            stream,
            buffer: BytesMut::new(),
        };
        let mut link = Self {
            address: Arc::clone(address),
            replies,
            requests,
            protocol: client.protocol,
            strict: None,
            memory,
        };
        let shown = timeout(PEER_DIAL_TIMEOUT, link.introduce(&client)).await;
        let unreachable = |why: String| NoLink::Unreachable(format!("{address}: {why}"));
        match shown {
            Ok(Ok(None)) => Ok(link),
            Ok(Ok(Some(refusal))) => Err(NoLink::Refused(refusal)),
            Ok(Err(LinkEnd::Proper)) => Err(unreachable("it ended the connection".into())),
            Ok(Err(LinkEnd::Broken(why))) => Err(unreachable(why)),
            Err(_) => Err(unreachable("it does not answer".into())),
        }
    }

    /// Returns the error that the node answers with, if it does.
    async fn introduce(&mut self, client: &Introduction<'_>) -> Result<Option<String>, LinkEnd> {
        let version = client.protocol.number().to_string();
        let mut words = vec!["HELLO", &version];
        if let Some((namespace, token)) = client.token {
            words.extend(["AUTH", namespace, token]);
        }
        if !client.name.is_empty() {
            words.extend(["SETNAME", client.name]);
        }
        let mut parcel = Parcel::default();
        parcel.add_words(&words);
        let (parts, _) = parcel.close();
        let sent = send(&mut self.requests, parts).await;
        sent.map_err(|error| LinkEnd::Broken(error.to_string()))?;
        match self.replies.next().await? {
            LinkReply::Error(text) => Ok(Some(text)),
            LinkReply::Other => self.replies.skip().await.map(|()| None),
        }
    }

    /// Returns the connection if it is one to this node, which has not ended it.
    pub(super) fn usable_for(mut self, address: &str) -> Option<Self> {
        // Nothing arrives that nobody asked for.
        let is_quiet = self.replies.more().now_or_never().is_none();
        (is_quiet && *self.address == *address).then_some(self)
    }
}

/// Sends parts of requests.
pub(super) async fn send(
    stream: &mut WriteHalf<PeerStream>,
    parts: Vec<bytes::Bytes>,
) -> io::Result<()> {
    for part in parts {
        stream.write_all(&part).await?;
    }
    stream.flush().await
}

impl LinkReader {
    /// Reads more.
    async fn more(&mut self) -> Result<(), LinkEnd> {
        self.buffer.reserve(RESP_LINK_BYTES / 2);
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) => Err(LinkEnd::Proper),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(LinkEnd::Broken("it was cut off".into()))
            }
            Err(error) => Err(LinkEnd::Broken(error.to_string())),
        }
    }

    /// Waits for the next reply. An error is returned as a whole, anything else is still to be passed
    /// on or skipped.
    pub(super) async fn next(&mut self) -> Result<LinkReply, LinkEnd> {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
            self.more().await?;
        }
        if self.buffer[0] != b'-' {
            return Ok(LinkReply::Other);
        }
        loop {
            let end = self.buffer.iter().position(|byte| *byte == b'\n');
            match end {
                Some(end) => {
                    let line = self.buffer.split_to(end + 1);
                    let text = String::from_utf8_lossy(&line[1..]);
                    return Ok(LinkReply::Error(text.trim_end().to_owned()));
                }
                None if self.buffer.len() > RESP_LINE_BYTES_MAX => return Err(NoReply.into()),
                None => self.rest().await?,
            }
        }
    }

    /// Reads more of a reply that has begun: if it is cut off, it is not known what it was for.
    async fn rest(&mut self) -> Result<(), LinkEnd> {
        self.more().await.map_err(|end| match end {
            LinkEnd::Proper => LinkEnd::Broken("a reply was cut short".into()),
            broken @ LinkEnd::Broken(_) => broken,
        })
    }

    /// Skips a reply that nobody wants.
    pub(super) async fn skip(&mut self) -> Result<(), LinkEnd> {
        let mut scanner = ReplyScanner::new();
        loop {
            let seen = scanner.advance(&self.buffer)?;
            let _ = self.buffer.split_to(seen);
            if scanner.is_done() {
                return Ok(());
            }
            self.rest().await?;
        }
    }

    /// Passes a reply on in pieces. If its rest does not come, the client's connection cannot go on.
    pub(super) async fn pass(&mut self, output: &mut RespOutput) -> io::Result<()> {
        let cut_off = |end: LinkEnd| {
            io::Error::other(format!("a reply of another node was cut short: {end:?}"))
        };
        let mut scanner = ReplyScanner::new();
        loop {
            let seen = scanner.advance(&self.buffer);
            let seen = seen.map_err(|wrong| cut_off(wrong.into()))?;
            let piece = self.buffer.split_to(seen);
            output.put_bytes(&piece).await?;
            if scanner.is_done() {
                return Ok(());
            }
            self.rest().await.map_err(cut_off)?;
        }
    }
}
