//! Writing the state of one commit as lines, a few at a time.

use std::collections::VecDeque;

use bytes::Bytes;
use trefoil_core::{Error, Result};
use trefoil_state::{Commands, Meter, Reply};

use super::StateLine;
use crate::Database;
use crate::read::listing::List;
use crate::read::look::StateSnapshot;

/// How many elements, keys or sources are read together.
const PAGE: usize = 256;

/// How many bytes of a string a line has.
const CHUNK_BYTES: usize = 1024 * 1024;

/// How many bytes of elements a line has at most. A line is no longer than `/import` takes, however its
/// words are written.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The state of one commit, which stays as it is while it is written.
#[derive(Debug)]
pub struct StateExport {
    snapshot: StateSnapshot,
    commands: Commands,
    position: u64,
    stage: ExportStage,
}

/// What is written next.
#[derive(Debug)]
enum ExportStage {
    /// The sources after this one.
    Trackings(String),
    Keys(KeyWalk),
    /// The timers from this entry on.
    Timers(Bytes),
    Done,
}

/// How far the keys have been written.
#[derive(Debug)]
struct KeyWalk {
    /// Where to look for more; `None` if there are none.
    cursor: Option<Bytes>,
    waiting: VecDeque<Bytes>,
    /// The one of which something was written.
    current: Option<KeyPart>,
}

/// What is left to write of a key.
#[derive(Debug)]
struct KeyPart {
    key: Bytes,
    kind: String,
    /// Where its next elements are: an offset, an index or a cursor.
    next: u64,
}

impl Database {
    /// Returns the state as it is now, to be written as lines.
    pub fn export_state(&self) -> Result<StateExport> {
        let (snapshot, position) = self.ask(|engine| Ok(StateSnapshot::with_position(engine)))?;
        Ok(StateExport {
            snapshot,
            commands: self.commands().clone(),
            position,
            stage: ExportStage::Trackings(String::new()),
        })
    }
}

impl StateExport {
    /// Returns where the log ended for it: the state is that after the event at this position.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the next lines; `None` when there are no more. Blocks the thread for a moment.
    pub fn next_lines(&mut self) -> Result<Option<Vec<StateLine>>> {
        match std::mem::replace(&mut self.stage, ExportStage::Done) {
            ExportStage::Trackings(after) => self.trackings(after).map(Some),
            ExportStage::Keys(walk) => self.keys(walk).map(Some),
            ExportStage::Timers(from) => self.timers(&from).map(Some),
            ExportStage::Done => Ok(None),
        }
    }

    fn trackings(&mut self, after: String) -> Result<Vec<StateLine>> {
        let list = List {
            after,
            limit: PAGE,
            ..List::default()
        };
        let found = self.snapshot.trackings(&list)?;
        self.stage = match found.last() {
            Some(last) if found.len() == PAGE => ExportStage::Trackings(last.source.clone()),
            _ => ExportStage::Keys(KeyWalk {
                cursor: Some(Bytes::from_static(b"0")),
                waiting: VecDeque::new(),
                current: None,
            }),
        };
        Ok(found.into_iter().map(StateLine::Tracking).collect())
    }

    fn timers(&mut self, from: &[u8]) -> Result<Vec<StateLine>> {
        let (found, next) = self.snapshot.timers(from)?;
        if let Some(next) = next {
            self.stage = ExportStage::Timers(next);
        }
        Ok(found.into_iter().map(StateLine::Timer).collect())
    }

    fn keys(&mut self, mut walk: KeyWalk) -> Result<Vec<StateLine>> {
        let mut lines = Vec::new();
        if let Some(part) = walk.current.take() {
            walk.current = self.elements(part, &mut lines)?;
        } else if let Some(key) = walk.waiting.pop_front() {
            let kind = self.ask(&[b"TYPE", &key])?;
            let kind = kind.as_str().unwrap_or_default().to_owned();
            walk.current = Some(KeyPart { key, kind, next: 0 });
        } else if let Some(cursor) = walk.cursor.take() {
            let (next, found) = self.scan(&[b"SCAN", &cursor])?;
            walk.cursor = (next != 0).then(|| Bytes::from(next.to_string()));
            walk.waiting = found.into();
        } else {
            self.stage = ExportStage::Timers(Bytes::new());
            return Ok(lines);
        }
        self.stage = ExportStage::Keys(walk);
        Ok(lines)
    }

    /// Writes some elements of a key, and after the last ones when it expires. Returns what is left.
    fn elements(&mut self, part: KeyPart, lines: &mut Vec<StateLine>) -> Result<Option<KeyPart>> {
        let next = match part.kind.as_str() {
            "string" => self.string(&part, lines)?,
            "list" => self.list(&part, lines)?,
            "hash" => self.hash(&part, lines)?,
            "set" => self.set(&part, lines)?,
            "zset" => self.sorted_set(&part, lines)?,
            kind => {
                let what = format!("no export knows values of the type {kind:?}");
                return Err(Error::Internal(what));
            }
        };
        if let Some(next) = next {
            return Ok(Some(KeyPart { next, ..part }));
        }
        let expires = self.ask(&[b"PEXPIRETIME", &part.key])?.as_int();
        if let Some(time) = expires.filter(|time| *time >= 0) {
            lines.push(command(&[b"PEXPIREAT", &part.key, &number(time)]));
        }
        Ok(None)
    }

    fn string(&mut self, part: &KeyPart, lines: &mut Vec<StateLine>) -> Result<Option<u64>> {
        let end = part.next + CHUNK_BYTES as u64;
        let (first, last) = (number(part.next), number(end - 1));
        let chunk = match self.ask(&[b"GETRANGE", &part.key, &first, &last])? {
            Reply::Bulk(chunk) => chunk,
            _ => Bytes::new(),
        };
        if part.next == 0 {
            lines.push(command(&[b"SET", &part.key, &chunk]));
        } else if !chunk.is_empty() {
            lines.push(command(&[b"APPEND", &part.key, &chunk]));
        }
        Ok((chunk.len() == CHUNK_BYTES).then_some(end))
    }

    fn list(&mut self, part: &KeyPart, lines: &mut Vec<StateLine>) -> Result<Option<u64>> {
        let first = number(part.next);
        let (found, count) = self.page(&part.key, |count| {
            let last = number(part.next + count as u64 - 1);
            let words: [&[u8]; 4] = [b"LRANGE", &part.key, &first, &last];
            words.map(Bytes::copy_from_slice).into()
        })?;
        let elements = bulks(found)?;
        let is_full = elements.len() == count;
        push_words(lines, b"RPUSH", &part.key, elements);
        Ok(is_full.then_some(part.next + count as u64))
    }

    fn hash(&mut self, part: &KeyPart, lines: &mut Vec<StateLine>) -> Result<Option<u64>> {
        let (next, fields) = self.scan_elements(b"HSCAN", part)?;
        let names: Vec<Bytes> = fields.iter().step_by(2).cloned().collect();
        push_words(lines, b"HSET", &part.key, fields);
        let count = number(names.len());
        let mut words: Vec<&[u8]> = vec![b"HPEXPIRETIME", &part.key, b"FIELDS", &count];
        words.extend(names.iter().map(|name| &name[..]));
        let times = match names.is_empty() {
            true => Reply::Array(Vec::new()),
            false => self.ask(&words)?,
        };
        for (name, time) in names.iter().zip(times.as_array().unwrap_or_default()) {
            if let Some(time) = time.as_int().filter(|time| *time >= 0) {
                let time = number(time);
                let words: [&[u8]; 6] = [b"HPEXPIREAT", &part.key, &time, b"FIELDS", b"1", name];
                lines.push(command(&words));
            }
        }
        Ok(next)
    }

    fn set(&mut self, part: &KeyPart, lines: &mut Vec<StateLine>) -> Result<Option<u64>> {
        let (next, members) = self.scan_elements(b"SSCAN", part)?;
        push_words(lines, b"SADD", &part.key, members);
        Ok(next)
    }

    fn sorted_set(&mut self, part: &KeyPart, lines: &mut Vec<StateLine>) -> Result<Option<u64>> {
        let (next, mut members) = self.scan_elements(b"ZSCAN", part)?;
        // Scores are read after their members, and written before them.
        members.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
        push_words(lines, b"ZADD", &part.key, members);
        Ok(next)
    }

    fn scan_elements(&mut self, name: &[u8], part: &KeyPart) -> Result<(Option<u64>, Vec<Bytes>)> {
        let cursor = number(part.next);
        let (found, _) = self.page(&part.key, |count| {
            let count = number(count);
            let words: [&[u8]; 5] = [name, &part.key, &cursor, b"COUNT", &count];
            words.map(Bytes::copy_from_slice).into()
        })?;
        let (next, found) = scanned(found)?;
        Ok(((next != 0).then_some(next), found))
    }

    fn scan(&mut self, words: &[&[u8]]) -> Result<(u64, Vec<Bytes>)> {
        let count = number(PAGE);
        scanned(self.ask(&[words, &[b"COUNT", &count]].concat())?)
    }

    fn ask(&mut self, words: &[&[u8]]) -> Result<Reply> {
        let words = words.iter().map(|word| Bytes::copy_from_slice(word));
        self.look(words.collect(), &Meter::asking(None))
    }

    /// Reads elements of a key, fewer at a time if they are large. Returns for how many was asked.
    fn page(&mut self, key: &[u8], words: impl Fn(usize) -> Vec<Bytes>) -> Result<(Reply, usize)> {
        let mut count = PAGE;
        loop {
            let meter = Meter::within(LINE_BYTES_MAX);
            match self.look(words(count), &meter) {
                Ok(reply) if !meter.is_exceeded() => return Ok((reply, count)),
                _ if meter.is_exceeded() && count > 1 => count /= 2,
                Err(error) if !meter.is_exceeded() => return Err(error),
                _ => {
                    let key = String::from_utf8_lossy(key);
                    return Err(Error::invalid(format!(
                        "an element under the key {key:?} has more than {LINE_BYTES_MAX} bytes, which no line \
                         of an export holds: make a backup"
                    )));
                }
            }
        }
    }

    fn look(&mut self, words: Vec<Bytes>, meter: &Meter<'_>) -> Result<Reply> {
        let name =
            String::from_utf8_lossy(words.first().map_or(&[], |name| &name[..])).into_owned();
        let wrong = |what: &str| Error::Internal(format!("{name} of an export: {what}"));
        let call = self.commands.call(words).ok_or_else(|| wrong("unknown"))?;
        let call = call.map_err(|error| wrong(&format!("{error:?}")))?;
        match self.snapshot.look(&call, meter)? {
            Reply::Error(text) if !meter.is_exceeded() => Err(wrong(&text)),
            reply => Ok(reply),
        }
    }
}

fn number(number: impl Copy + std::fmt::Display) -> Bytes {
    Bytes::from(number.to_string())
}

fn command(words: &[&[u8]]) -> StateLine {
    let words = words.iter().map(|word| Bytes::copy_from_slice(word));
    StateLine::Command(words.collect())
}

/// Adds a command on a key with these words, if there are any.
fn push_words(lines: &mut Vec<StateLine>, name: &'static [u8], key: &Bytes, words: Vec<Bytes>) {
    if !words.is_empty() {
        let begin = [Bytes::from_static(name), key.clone()];
        lines.push(StateLine::Command(begin.into_iter().chain(words).collect()));
    }
}

fn unexpected() -> Error {
    Error::Internal("a command of an export replied something else".to_owned())
}

fn bulks(reply: Reply) -> Result<Vec<Bytes>> {
    let (Reply::Array(found) | Reply::Set(found)) = reply else {
        return Err(unexpected());
    };
    let bulk = |reply| match reply {
        Reply::Bulk(bytes) => Ok(bytes),
        _ => Err(unexpected()),
    };
    found.into_iter().map(bulk).collect()
}

/// Takes the reply of a scan apart: where it goes on, and what it has found.
fn scanned(reply: Reply) -> Result<(u64, Vec<Bytes>)> {
    let Reply::Array(parts) = reply else {
        return Err(unexpected());
    };
    let [cursor, found] = <[Reply; 2]>::try_from(parts).map_err(|_| unexpected())?;
    let next = cursor.as_str().and_then(|cursor| cursor.parse().ok());
    Ok((next.ok_or_else(unexpected)?, bulks(found)?))
}
