//! A keyspace in memory for the tests of commands, those of applications included.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

use bytes::Bytes;
use trefoil_core::limits::EVENT_DATA_BYTES_DEFAULT;
use trefoil_core::{Direction, NewEvent, Result};

use crate::{
    CommandError, CommandMoment, Commands, ExpiryPlace, GarbagePlace, Keyspace, MemorySpace,
    Portion, Reply, Space, SpaceScan,
};

/// Keys in memory, with a clock that the test sets.
#[derive(Debug)]
pub struct World {
    /// The commands that are known.
    pub commands: Commands,
    /// The entries.
    pub entries: MemorySpace,
    /// The time, and the position that the next event gets.
    pub moment: CommandMoment,
    /// The keys that the last command touched.
    pub touched: Vec<Bytes>,
    /// The events that all commands have had appended; the first one has the position 0.
    pub events: Vec<NewEvent>,
}

impl Default for World {
    /// Returns a world without keys, with the commands of Redis.
    fn default() -> Self {
        Self::new(Commands::redis().clone())
    }
}

impl World {
    /// Returns a world without keys, with these commands.
    pub fn new(commands: Commands) -> Self {
        Self {
            commands,
            entries: MemorySpace::default(),
            moment: CommandMoment::default(),
            touched: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Runs a command that is written as a line of words; a failure is returned as an error, and
    /// leaves nothing behind.
    pub fn run(&mut self, line: &str) -> Reply {
        let words = line
            .split_whitespace()
            .map(|word| Bytes::from(word.to_owned()));
        self.call(words.collect())
    }

    /// Runs lines and compares their replies with what is expected, as [`text`] writes it.
    pub fn check(&mut self, table: &[(&str, &str)]) {
        for (line, expected) in table {
            assert_eq!(text(&self.run(line)), *expected, "{line}");
        }
    }

    /// Returns the entries that are left beside the root and garbage.
    pub fn left(&self) -> Vec<&Bytes> {
        let garbage: Vec<&[u8]> = self
            .entries
            .range(Bytes::from_static(b"g")..Bytes::from_static(b"h"))
            .map(|(name, _)| &name[1..])
            .collect();
        let is_garbage = |name: &Bytes| garbage.iter().any(|prefix| name.starts_with(prefix));
        self.entries
            .keys()
            .filter(|name| name.starts_with(b"s") && !is_garbage(name))
            .collect()
    }

    /// Removes all that is due, as happens in the background.
    pub fn clean(&mut self) {
        let keyspace = Keyspace::new(&mut self.entries, self.moment).unwrap();
        let mut keyspace = keyspace.to_change(&self.commands, EVENT_DATA_BYTES_DEFAULT);
        clean(&mut keyspace, 100);
        let events = keyspace.take_events();
        self.append(events);
    }

    fn append(&mut self, events: Vec<NewEvent>) {
        self.moment.position += events.len() as u64;
        self.events.extend(events);
    }

    /// Runs a command.
    pub fn call(&mut self, words: Vec<Bytes>) -> Reply {
        let before = self.entries.clone();
        self.moment.seed = self.moment.seed.wrapping_add(1);
        let call = match self.commands.call(words).expect("a known command") {
            Ok(call) => call,
            Err(failure) => return error(failure),
        };
        let mut recorder = Recorder {
            entries: &mut self.entries,
            touched: Vec::new(),
        };
        let keyspace = Keyspace::new(&mut recorder, self.moment).unwrap();
        let mut keyspace = keyspace.to_change(&self.commands, EVENT_DATA_BYTES_DEFAULT);
        let reply = call.run(&mut keyspace);
        let events = keyspace.take_events();
        self.touched = recorder.touched;
        match reply {
            Ok(reply) => {
                self.append(events);
                reply
            }
            Err(failure) => {
                self.entries = before;
                error(failure)
            }
        }
    }
}

/// Removes all that has expired and all garbage, in rounds of this many entries.
pub fn clean(keyspace: &mut Keyspace<'_>, n_max: usize) {
    let mut place = ExpiryPlace::default();
    loop {
        let expired = keyspace.expire(&place, n_max).unwrap();
        if expired.is_done {
            break;
        }
        place = expired.place;
    }
    let portion = Portion {
        entries: n_max,
        bytes: usize::MAX,
    };
    let mut place = GarbagePlace::default();
    loop {
        let collected = keyspace.collect(&place, portion).unwrap();
        if collected.is_done {
            break;
        }
        place = collected.place;
    }
}

/// Entries that note what is touched.
struct Recorder<'a> {
    entries: &'a mut MemorySpace,
    touched: Vec<Bytes>,
}

impl Space for Recorder<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Space::get(self.entries, key)
    }

    fn set(&mut self, key: Bytes, value: Option<Bytes>) -> Result<()> {
        self.entries.set(key, value)
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> SpaceScan<'_> {
        self.entries.scan(from, to, direction)
    }

    fn touch(&mut self, key: &Bytes) {
        self.touched.push(key.clone());
    }

    fn touch_all(&mut self) {}

    fn due(&mut self, _: u64) {}

    fn garbage(&mut self, _: &Bytes) {}
}

fn error(failure: CommandError) -> Reply {
    match failure {
        CommandError::Refused(text) => Reply::Error(text),
        CommandError::Engine(error) => panic!("{error}"),
    }
}

/// Returns a reply as text: what is bytes as it is, everything else with the sign of RESP3 before
/// it. What has no order is sorted.
pub fn text(reply: &Reply) -> String {
    let list = |replies: &[Reply]| replies.iter().map(text).collect::<Vec<_>>();
    let pairs = |pairs: &[(Reply, Reply)]| {
        let pair = |(key, value): &(Reply, Reply)| format!("{}={}", text(key), text(value));
        pairs.iter().map(pair).collect::<Vec<_>>()
    };
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts.join(" ")
    };
    match reply {
        Reply::Simple(word) => format!("+{word}"),
        Reply::Error(error) => format!("-{error}"),
        Reply::Integer(number) => format!(":{number}"),
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Double(number) => format!(",{number}"),
        Reply::Nil => "_".to_owned(),
        Reply::NilArray => "*-1".to_owned(),
        Reply::Array(replies) => format!("[{}]", list(replies).join(" ")),
        Reply::Set(replies) => format!("~[{}]", sorted(list(replies))),
        Reply::Map(entries) => format!("%[{}]", sorted(pairs(entries))),
        Reply::Pairs(entries) => format!("[{}]", pairs(entries).join(" ")),
        Reply::Text(text) => format!("={text}"),
    }
}
