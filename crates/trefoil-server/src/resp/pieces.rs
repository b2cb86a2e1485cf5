//! Long replies, made piece by piece as the client takes them, all on one snapshot of the state.
//!
//! A string is read by ranges, a collection by pages, so a reply needs little memory whatever its
//! size. Each piece is read on a thread for such work. A client that takes too long is cut off: it
//! keeps the state of a moment meanwhile.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use trefoil::redis::{index_range, parse_integer, string_range};
use trefoil::{Call, Meter, OpenDatabase, Reply, StateSnapshot};

use super::encoder::RespVersion;
use super::failure::{of_error, of_failure};
use super::output::RespOutput;
use super::words::{ReplyResult, error};
use crate::limits::{
    RESP_PIECE_BYTES, RESP_PIECE_ELEMENTS, RESP_REPLY_BYTES_PER_SECOND, RESP_SHORT_REPLY_BYTES,
};
use crate::service::reading;

/// What a long reply is made of.
#[derive(Debug)]
enum PiecePlan {
    /// A string, or the part of it between two indexes.
    String(Bytes, Option<(i64, i64)>),
    Strings(Vec<Bytes>),
    /// A hash or a set.
    NamedElements(NamedElements, Bytes),
    /// Elements of a list between two indexes.
    List(Bytes, (i64, i64)),
}

/// How all elements of a hash or a set are read, and what of them is answered.
#[derive(Debug, Clone, Copy)]
struct NamedElements {
    len: &'static str,
    scan: &'static str,
    option: Option<&'static str>,
    /// Of each name and value only the value.
    values_only: bool,
    is_map: bool,
    is_set: bool,
}

const FIELDS: NamedElements = NamedElements {
    len: "hlen",
    scan: "hscan",
    option: None,
    values_only: false,
    is_map: false,
    is_set: false,
};

impl PiecePlan {
    /// How to answer a call in pieces, if that is possible.
    fn new(call: &Call) -> Option<Self> {
        let words = call.arguments();
        let key = words.get(1)?.clone();
        let indexes = || Some((parse_integer(words.get(2)?)?, parse_integer(words.get(3)?)?));
        Some(match call.spec().name {
            "get" => Self::String(key, None),
            "getrange" | "substr" => Self::String(key, Some(indexes()?)),
            "mget" => Self::Strings(words[1..].to_vec()),
            "lrange" => Self::List(key, indexes()?),
            "hgetall" => Self::NamedElements(
                NamedElements {
                    is_map: true,
                    ..FIELDS
                },
                key,
            ),
            "hvals" => Self::NamedElements(
                NamedElements {
                    values_only: true,
                    ..FIELDS
                },
                key,
            ),
            "hkeys" => {
                let option = Some("novalues");
                Self::NamedElements(NamedElements { option, ..FIELDS }, key)
            }
            "smembers" => {
                let (len, scan, is_set) = ("scard", "sscan", true);
                Self::NamedElements(
                    NamedElements {
                        len,
                        scan,
                        is_set,
                        ..FIELDS
                    },
                    key,
                )
            }
            _ => return None,
        })
    }
}

/// Answers a call in pieces. `None` if it cannot be answered so; an error that it is to be answered
/// with is handed back.
pub(super) async fn answer(
    database: &OpenDatabase,
    call: &Call,
    protocol: RespVersion,
    output: &mut RespOutput,
) -> Option<io::Result<Option<Reply>>> {
    let plan = PiecePlan::new(call)?;
    let snapshot = match database.snapshot() {
        Ok(snapshot) => snapshot,
        Err(failure) => return Some(Ok(Some(of_error(&failure)))),
    };
    // The next piece could not be had of another node.
    let database = &database.clone().staying();
    let mut pieces = Pieces {
        database,
        snapshot: Some(snapshot),
        protocol,
        began: output.shared.clock().steady(),
        n_bytes: 0,
        output,
    };
    Some(pieces.run(plan).await)
}

/// A reply on its way.
struct Pieces<'o> {
    database: &'o OpenDatabase,
    /// `None` while it is used elsewhere.
    snapshot: Option<StateSnapshot>,
    protocol: RespVersion,
    /// When the answer began, by the steady clock.
    began: Duration,
    n_bytes: u64,
    output: &'o mut RespOutput,
}

impl Pieces<'_> {
    async fn run(&mut self, plan: PiecePlan) -> io::Result<Option<Reply>> {
        let answer = match plan {
            PiecePlan::String(key, indexes) => self.string(&key, indexes).await?,
            PiecePlan::Strings(keys) => self.strings(keys).await?,
            PiecePlan::NamedElements(named, key) => self.named(named, &key).await?,
            PiecePlan::List(key, indexes) => self.list(&key, indexes).await?,
        };
        Ok(answer.err())
    }

    async fn strings(&mut self, keys: Vec<Bytes>) -> io::Result<ReplyResult<()>> {
        self.output.put_head(b'*', keys.len()).await?;
        for key in keys {
            if let Err(refusal) = self.string(&key, None).await? {
                // What is no string is answered as if it were not there. What cannot be read is not.
                let reply = match &refusal {
                    Reply::Error(text) if text.starts_with("WRONGTYPE") => &Reply::Nil,
                    refusal => refusal,
                };
                self.output.put(reply, self.protocol).await?;
            }
        }
        Ok(Ok(()))
    }

    async fn string(
        &mut self,
        key: &Bytes,
        indexes: Option<(i64, i64)>,
    ) -> io::Result<ReplyResult<()>> {
        let len = match self.number("strlen", key).await {
            Ok(len) => len,
            Err(reply) => return Ok(Err(reply)),
        };
        if len == 0 && indexes.is_none() {
            let reply = self.look("get", key, &[], usize::MAX).await;
            return self.put(reply).await;
        }
        let range = indexes.map_or(Some(0..len), |(start, end)| string_range(start, end, len));
        let range = range.unwrap_or(0..0);
        let n_bytes = range.end - range.start;
        self.output.put_head(b'$', n_bytes as usize).await?;
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at + RESP_PIECE_BYTES);
            let words = [at.to_string(), (end - 1).to_string()];
            let words = [words[0].as_str(), words[1].as_str()];
            let piece = self.look("getrange", key, &words, usize::MAX).await;
            let Ok(Reply::Bulk(piece)) = piece else {
                return Err(broken());
            };
            if piece.len() as u64 != end - at {
                return Err(broken());
            }
            self.count(piece.len())?;
            self.output.put_bytes(&piece).await?;
            at = end;
        }
        self.output.put_bytes(b"\r\n").await?;
        Ok(Ok(()))
    }

    async fn named(&mut self, named: NamedElements, key: &Bytes) -> io::Result<ReplyResult<()>> {
        let len = match self.number(named.len, key).await {
            Ok(len) => len as usize,
            Err(reply) => return Ok(Err(reply)),
        };
        let (marker, length) = match self.protocol {
            RespVersion::Three if named.is_map => (b'%', len),
            RespVersion::Three if named.is_set => (b'~', len),
            _ if named.is_map => (b'*', 2 * len),
            _ => (b'*', len),
        };
        self.output.put_head(marker, length).await?;
        let (mut cursor, mut n_items) = (Bytes::from_static(b"0"), 0);
        let each = if named.is_map { 2 } else { 1 };
        loop {
            let (next, items) = self.page(named, key, &cursor).await?;
            let skipped = usize::from(named.values_only);
            let step = 1 + skipped;
            for item in items.iter().skip(skipped).step_by(step) {
                self.count(item.size())?;
                self.output.put(item, self.protocol).await?;
                n_items += 1;
            }
            if next == "0" {
                break;
            }
            cursor = next;
        }
        match n_items == each * len {
            true => Ok(Ok(())),
            false => Err(broken()),
        }
    }

    /// The elements from a cursor on, as many as fit, and the next cursor.
    async fn page(
        &mut self,
        named: NamedElements,
        key: &Bytes,
        cursor: &Bytes,
    ) -> io::Result<(Bytes, Vec<Reply>)> {
        let cursor = std::str::from_utf8(cursor).map_err(|_| broken())?;
        let mut count = RESP_PIECE_ELEMENTS;
        loop {
            let number = count.to_string();
            let mut words = vec![cursor, "count", &number];
            words.extend(named.option);
            let bytes_max = bytes_max(count);
            match self.look(named.scan, key, &words, bytes_max).await {
                Ok(Reply::Array(mut parts)) => {
                    return match (parts.pop(), parts.pop()) {
                        (Some(Reply::Array(items)), Some(Reply::Bulk(next))) => Ok((next, items)),
                        _ => Err(broken()),
                    };
                }
                Err(_) if count > 1 => count /= 2,
                _ => return Err(broken()),
            }
        }
    }

    async fn list(&mut self, key: &Bytes, (start, end): (i64, i64)) -> io::Result<ReplyResult<()>> {
        let len = match self.number("llen", key).await {
            Ok(len) => len,
            Err(reply) => return Ok(Err(reply)),
        };
        let range = index_range(start, end, len);
        self.output
            .put_head(b'*', (range.end - range.start) as usize)
            .await?;
        let (mut at, mut count) = (range.start, RESP_PIECE_ELEMENTS);
        while at < range.end {
            let end = range.end.min(at + count as u64);
            let words = [at.to_string(), (end - 1).to_string()];
            let words = [words[0].as_str(), words[1].as_str()];
            match self.look("lrange", key, &words, bytes_max(count)).await {
                Ok(Reply::Array(items)) if items.len() as u64 == end - at => {
                    for item in &items {
                        self.count(item.size())?;
                        self.output.put(item, self.protocol).await?;
                    }
                    (at, count) = (end, RESP_PIECE_ELEMENTS);
                }
                Err(_) if count > 1 => count /= 2,
                _ => return Err(broken()),
            }
        }
        Ok(Ok(()))
    }

    async fn put(&mut self, reply: ReplyResult) -> io::Result<ReplyResult<()>> {
        match reply {
            Ok(reply) => self.output.put(&reply, self.protocol).await.map(Ok),
            Err(reply) => Ok(Err(reply)),
        }
    }

    /// The number that a command answers.
    async fn number(&mut self, command: &'static str, key: &Bytes) -> ReplyResult<u64> {
        match self.look(command, key, &[], usize::MAX).await? {
            Reply::Integer(number) => Ok(u64::try_from(number).unwrap_or(0)),
            _ => Err(missing()),
        }
    }

    /// Runs a command on the snapshot, elsewhere. An error that it answers is one here.
    async fn look(
        &mut self,
        command: &'static str,
        key: &Bytes,
        words: &[&str],
        bytes_max: usize,
    ) -> ReplyResult {
        let mut all = vec![Bytes::from_static(command.as_bytes()), key.clone()];
        all.extend(
            words
                .iter()
                .map(|word| Bytes::copy_from_slice(word.as_bytes())),
        );
        let Some(Ok(call)) = Call::new(all) else {
            return Err(missing());
        };
        let mut snapshot = self.snapshot.take().ok_or_else(missing)?;
        let looked = reading(self.database, move || {
            let reply = snapshot.look(&call, &Meter::within(bytes_max));
            (snapshot, reply)
        });
        let (snapshot, reply) = looked.await.map_err(|failure| of_failure(&failure))?;
        self.snapshot = Some(snapshot);
        match reply.map_err(|failure| of_error(&failure))? {
            Reply::Error(text) => Err(Reply::Error(text)),
            reply => Ok(reply),
        }
    }

    /// Counts what goes out, and ends a client that takes too long for it.
    fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.n_bytes += bytes as u64;
        let seconds = self.n_bytes / RESP_REPLY_BYTES_PER_SECOND;
        let patience = self.output.reply_timeout() + Duration::from_secs(seconds);
        match self.output.shared.clock().since(self.began) > patience {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }
}

/// Returns how much memory a page may take: one element may take any.
fn bytes_max(count: usize) -> usize {
    match count {
        1 => usize::MAX,
        _ => RESP_SHORT_REPLY_BYTES,
    }
}

/// The rest of a reply is not there: the connection is cut, so that nobody takes what arrived for
/// the whole.
fn broken() -> io::Error {
    io::Error::other("a long reply could not be made to its end")
}

fn missing() -> Reply {
    error("ERR the command has no reply")
}
