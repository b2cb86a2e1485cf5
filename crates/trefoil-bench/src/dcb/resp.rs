//! A connection to Trefoil over RESP: an append is one transaction, sent in one piece.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trefoil_grpc::{AppendRequest, Event, Query, ReadRequest};

use super::connection::{Answer, Found};
use crate::resp::wire::{Reply, parse, put_command};

const BUFFER_BYTES: usize = 64 * 1024;
/// Where the data of an event is in its description, which is a list of names and values.
const DATA_INDEX: usize = 9;

/// One connection.
pub(crate) struct Resp {
    socket: TcpStream,
    request: Vec<u8>,
    received: Vec<u8>,
}

impl Resp {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            request: Vec::new(),
            received: Vec::with_capacity(BUFFER_BYTES),
        })
    }

    /// `MULTI`, an `EVENT.APPEND` for each event, and `EXEC` with the condition.
    pub(crate) async fn append(&mut self, append: &AppendRequest) -> Result<Answer> {
        put_command(&mut self.request, &[b"MULTI"]);
        for event in &append.events {
            put_event(&mut self.request, event);
        }
        put_exec(&mut self.request, append);
        let replies = append.events.len() + 2;
        self.exchange(replies, appended).await
    }

    pub(crate) async fn read(&mut self, read: &ReadRequest) -> Result<Found> {
        let (start, limit) = (text(read.start), text(read.limit));
        let mut words = vec![&b"EVENT.QUERY"[..]];
        for (name, number) in [(&b"FROM"[..], &start), (b"COUNT", &limit)] {
            words.extend(number.iter().flat_map(|number| [name, number.as_bytes()]));
        }
        if read.backwards.unwrap_or_default() {
            words.push(b"REV");
        }
        let query = read.query.as_ref().map(query_words);
        words.extend(query.iter().flatten());
        put_command(&mut self.request, &words);
        self.exchange(1, found).await
    }

    /// Sends what is to be asked, waits for this many replies and looks at the last one.
    async fn exchange<T>(
        &mut self,
        replies: usize,
        look: impl FnOnce(&Reply<'_>) -> Result<T>,
    ) -> Result<T> {
        self.socket.write_all(&self.request).await?;
        self.request.clear();
        self.received.clear();
        let (mut count, mut read) = (0, 0);
        loop {
            let length = self.socket.read_buf(&mut self.received).await?;
            ensure!(length > 0, "the server closed a connection");
            while let Some((reply, length)) = parse(&self.received[read..])? {
                count += 1;
                read += length;
                if count == replies {
                    return look(&reply);
                }
                reply.check()?;
            }
        }
    }
}

fn text<N: ToString>(number: Option<N>) -> Option<String> {
    number.map(|number| number.to_string())
}

fn put_event(out: &mut Vec<u8>, event: &Event) {
    let event_type = event.event_type.as_bytes();
    let mut words = vec![&b"EVENT.APPEND"[..], b"-", event_type, &event.data];
    let tags = event.tags.iter();
    words.extend(tags.flat_map(|tag| [&b"TAG"[..], tag.as_bytes()]));
    put_command(out, &words);
}

fn put_exec(out: &mut Vec<u8>, append: &AppendRequest) {
    let Some(condition) = &append.condition else {
        return put_command(out, &[b"EXEC"]);
    };
    let after = text(condition.after);
    let mut words = vec![&b"EXEC"[..], b"NOMATCH"];
    words.extend(after.iter().flat_map(|after| [b"AFTER", after.as_bytes()]));
    let query = condition.fail_if_events_match.as_ref().map(query_words);
    words.extend(query.iter().flatten());
    put_command(out, &words);
}

fn query_words(query: &Query) -> Vec<&[u8]> {
    let mut words = Vec::new();
    for (index, item) in query.items.iter().enumerate() {
        if index > 0 {
            words.push(&b"OR"[..]);
        }
        let types = item.types.iter();
        words.extend(types.flat_map(|name| [&b"TYPE"[..], name.as_bytes()]));
        let tags = item.tags.iter();
        words.extend(tags.flat_map(|tag| [&b"TAG"[..], tag.as_bytes()]));
    }
    words
}

/// The position of the last event of a transaction.
fn appended(reply: &Reply<'_>) -> Result<Answer> {
    if *reply == Reply::Nil {
        return Ok(Answer::Refused);
    }
    reply.check()?;
    let Reply::Array(events) = reply else {
        bail!("EXEC answered {reply:?}");
    };
    let Some(Reply::Array(positions)) = events.last() else {
        bail!("EVENT.APPEND answered {reply:?}");
    };
    match positions.first() {
        Some(Reply::Integer(position)) => Ok(Answer::Appended(u64::try_from(*position)?)),
        _ => bail!("EVENT.APPEND answered {reply:?}"),
    }
}

/// What `EVENT.QUERY` found: the head of the log and descriptions of events.
fn found(reply: &Reply<'_>) -> Result<Found> {
    reply.check()?;
    let Reply::Array(parts) = reply else {
        bail!("EVENT.QUERY answered {reply:?}");
    };
    let Some(Reply::Array(events)) = parts.get(1) else {
        bail!("EVENT.QUERY answered {reply:?}");
    };
    let mut found = Found::default();
    for event in events {
        let Reply::Array(fields) = event else {
            bail!("an event is {event:?}");
        };
        let data = fields.get(DATA_INDEX).context("an event has no data")?;
        let Reply::Bulk(data) = data else {
            bail!("the data of an event is {data:?}");
        };
        found.events += 1;
        found.bytes += data.len() as u64;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        let (reply, _) = parse(b"*2\r\n*2\r\n:6\r\n:-1\r\n*2\r\n:7\r\n:-1\r\n")
            .unwrap()
            .unwrap();
        assert_eq!(appended(&reply).unwrap(), Answer::Appended(7));
        assert_eq!(appended(&Reply::Nil).unwrap(), Answer::Refused);
        assert!(appended(&Reply::Error(b"ERR no")).is_err());
        let (none, _) = parse(b"*2\r\n:0\r\n*0\r\n").unwrap().unwrap();
        assert_eq!(found(&none).unwrap(), Found::default());
    }
}
