//! Keys, fields and members: what it costs to write and to read one among more and more of them.
//!
//! Servers are filled one after the other, then asked by turns. The ratio of a row is its processor
//! time per operation to that at the smallest size.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::scattered::{Scattered, name};
use crate::closed_loop::{ALL_DAY, Clients};
use crate::options::{Options, TREFOIL};
use crate::outcome::{Figure, Outcome, Rounds, by_turns};
use crate::report::{Report, Row, Target};
use crate::resp::server::{REDIS, Server, System};
use crate::resp::{ask as ask_server, open, put_command};
use crate::usage::bytes_read;

/// The clients that fill a server, and their pipelines.
const FILLING: (usize, u64) = (8, 100);
/// The clients that ask, one operation at a time.
const ASKING: usize = 50;
/// Names with numbers from here on do not exist.
const MISSING: u64 = 1 << 40;
const VALUE: &[u8] = b"0123456789abcdef0123456789abcdef";
const HASH: &[u8] = b"fields";
const SORTED_SET: &[u8] = b"members";
/// The share of what Redis reaches at the largest size that is aimed for.
const SHARE_OF_REDIS: f64 = 0.5;
/// How much more an operation may cost at the largest size than at the smallest.
const GROWTH_MAX: f64 = 2.0;
const RESTART_MAX_MILLIS: f64 = 2000.0;

/// What grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Collection {
    Keys,
    Fields,
    Members,
}

/// What is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Get,
    GetMissing,
    Hset,
    HgetMissing,
    Zadd,
    Zrank,
}

impl Collection {
    const ALL: [Self; 3] = [Self::Keys, Self::Fields, Self::Members];

    fn title(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Fields => "fields of one hash",
            Self::Members => "members of one sorted set",
        }
    }

    /// Adds the element with a number.
    fn put(self, number: u64) -> Vec<Vec<u8>> {
        let name = name(number).into_bytes();
        match self {
            Self::Keys => vec![b"SET".to_vec(), name, VALUE.to_vec()],
            Self::Fields => vec![b"HSET".to_vec(), HASH.to_vec(), name, VALUE.to_vec()],
            Self::Members => vec![b"ZADD".to_vec(), SORTED_SET.to_vec(), score(number), name],
        }
    }

    fn questions(self) -> [Question; 2] {
        match self {
            Self::Keys => [Question::Get, Question::GetMissing],
            Self::Fields => [Question::Hset, Question::HgetMissing],
            Self::Members => [Question::Zadd, Question::Zrank],
        }
    }
}

/// A score that says nothing about the order of names.
fn score(number: u64) -> Vec<u8> {
    (number.wrapping_mul(0xd134_2543_de82_ef95) >> 24)
        .to_string()
        .into_bytes()
}

impl Question {
    fn title(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::GetMissing => "GET of a key that does not exist",
            Self::Hset => "HSET of a field that exists",
            Self::HgetMissing => "HGET of a field that does not exist",
            Self::Zadd => "ZADD of a member that exists, with another score",
            Self::Zrank => "ZRANK",
        }
    }

    fn finds_nothing(self) -> bool {
        matches!(self, Self::GetMissing | Self::HgetMissing)
    }

    /// The words of one operation; `number` is random.
    fn words(self, size: u64, number: u64) -> Vec<Vec<u8>> {
        let number = match self.finds_nothing() {
            true => MISSING + number % size,
            false => number % size,
        };
        let element = name(number).into_bytes();
        match self {
            Self::Get | Self::GetMissing => vec![b"GET".to_vec(), element],
            Self::Hset => {
                let value = fastrand::u64(..).to_string().into_bytes();
                vec![b"HSET".to_vec(), HASH.to_vec(), element, value]
            }
            Self::HgetMissing => vec![b"HGET".to_vec(), HASH.to_vec(), element],
            Self::Zadd => {
                let score = score(fastrand::u64(..));
                vec![b"ZADD".to_vec(), SORTED_SET.to_vec(), score, element]
            }
            Self::Zrank => vec![b"ZRANK".to_vec(), SORTED_SET.to_vec(), element],
        }
    }
}

/// Measures every collection at every size.
pub(super) fn measure(options: &Options, sizes: &[u64], report: &mut Report) -> Result<()> {
    report.part("As keys, fields and members grow");
    for collection in Collection::ALL {
        // Each collection has servers of its own, so that none pays for another.
        let systems = [System::Redis, System::Trefoil];
        let mut servers = Server::start_all(options, &systems, report)?;
        let mut growth = Growth::default();
        let mut filled = 0;
        for size in sizes.iter().copied() {
            fill(&servers, collection, filled..size, report)?;
            filled = size;
            for question in collection.questions() {
                let is_largest = Some(&size) == sizes.last();
                let rows = ask(options, &servers, question, size)?;
                let rows = growth.judge(question, rows, is_largest);
                let title = format!("{}, {size} {}", question.title(), collection.title());
                report.table(&title, "operations/s", rows);
            }
        }
        restart(&mut servers, collection, report)?;
    }
    Ok(())
}

fn fill(
    servers: &[Server],
    collection: Collection,
    numbers: std::ops::Range<u64>,
    report: &mut Report,
) -> Result<()> {
    let (n_clients, pipeline) = FILLING;
    let mut rows = Vec::new();
    for server in servers {
        let share = (numbers.end - numbers.start).div_ceil(n_clients as u64);
        let clients: Result<Vec<_>> = (0..n_clients as u64)
            .map(|index| {
                let first = numbers.start + index * share;
                let own = first..(first + share).min(numbers.end);
                let put = move |number| collection.put(number);
                Ok((server.connect()?, Scattered::new(own, pipeline, put)))
            })
            .collect();
        let mut clients = Clients::new(clients?)?;
        let (outcome, read) = counting(server, || clients.run(ALL_DAY, || server.usage()))?;
        rows.push(noted(server, &Rounds::one(outcome), read)?);
        server.running.settle();
    }
    for row in rows.iter_mut().filter(|row| row.system == TREFOIL) {
        row.targets.push(Target::Times(SHARE_OF_REDIS, &[REDIS]));
    }
    let (from, to) = (numbers.start, numbers.end);
    let title = format!("Filling from {from} to {to} {}", collection.title());
    report.table(&title, "operations/s", rows);
    Ok(())
}

fn ask(options: &Options, servers: &[Server], question: Question, size: u64) -> Result<Vec<Row>> {
    let mut read = vec![0; servers.len()];
    let mut driven: Vec<usize> = (0..servers.len()).collect();
    let rounds = by_turns(&mut driven, options.rounds(), |index| {
        let server = &servers[*index];
        let clients: Result<Vec<_>> = (0..ASKING)
            .map(|_| {
                let words = move |_| question.words(size, fastrand::u64(..));
                let client = Scattered::new(0..u64::MAX, 1, words);
                let client = client.expecting_nil(question.finds_nothing());
                Ok((server.connect()?, client))
            })
            .collect();
        let mut clients = Clients::new(clients?)?;
        clients.run(options.time() / 8, || server.usage())?;
        let run = || clients.run(options.time(), || server.usage());
        let (outcome, bytes) = counting(server, run)?;
        read[*index] += bytes;
        Ok(outcome)
    })?;
    let rows = servers.iter().zip(rounds).zip(read);
    rows.map(|((server, rounds), read)| noted(server, &rounds, read))
        .collect()
}

/// Runs something, and counts the bytes that a server read from files meanwhile.
fn counting(server: &Server, run: impl FnOnce() -> Result<Outcome>) -> Result<(Outcome, u64)> {
    let before = bytes_read(server.running.id());
    let outcome = run()?;
    let read = before.zip(bytes_read(server.running.id()));
    Ok((outcome, read.map_or(0, |(before, after)| after - before)))
}

fn noted(server: &Server, rounds: &Rounds, read: u64) -> Result<Row> {
    let row = rounds.row(server.name, Figure::UnitsPerSecond)?;
    let each = read / rounds.units().max(1);
    Ok(row.note(format!("{each} bytes read per operation")))
}

/// What each question cost each system at the smallest size.
#[derive(Debug, Default)]
struct Growth(Vec<(Question, String, f64)>);

impl Growth {
    fn judge(&mut self, question: Question, mut rows: Vec<Row>, is_largest: bool) -> Vec<Row> {
        for row in &mut rows {
            let Some(cost) = row.cpu else { continue };
            let known = self
                .0
                .iter()
                .find(|(asked, system, _)| *asked == question && *system == row.system);
            match known {
                Some((.., first)) => row.ratio = Some(cost / first),
                None => self.0.push((question, row.system.clone(), cost)),
            }
            if is_largest && row.system == TREFOIL {
                row.targets.push(Target::RatioAtMost(GROWTH_MAX));
                row.targets.push(Target::Times(SHARE_OF_REDIS, &[REDIS]));
            }
        }
        rows
    }
}

/// Kills the servers, and measures how long each is away.
fn restart(servers: &mut [Server], collection: Collection, report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    for server in servers {
        server.running.kill()?;
        let begin = Instant::now();
        server.running.start_again()?;
        let address = server.address;
        let mut request = Vec::new();
        put_command(&mut request, &[b"GET", name(0).as_bytes()]);
        // Whether there is such a key depends on the collection; the answer says that data is there.
        server.running.wait_until(|| {
            open(address).is_ok_and(|mut socket| ask_server(&mut socket, &request, 1).is_ok())
        })?;
        let took: Duration = begin.elapsed();
        let row = Row::new(server.name, took.as_secs_f64() * 1e3);
        rows.push(match server.name == TREFOIL {
            true => row.target(Target::AtMost(RESTART_MAX_MILLIS)),
            false => row,
        });
    }
    let title = format!("Ready after kill -9, {}", collection.title());
    report.table(&title, "ms", rows);
    Ok(())
}
