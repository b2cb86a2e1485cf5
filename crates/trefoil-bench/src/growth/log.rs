//! A log that is larger than the memory of its server: the 50 events of a tag, spread over all of it.
//!
//! Beside it stand as many reads of the same files, at random places, without any index.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::fs::{Advice, fadvise};
use trefoil_grpc::AppendRequest;

use super::limit::MemoryLimit;
use crate::dcb::asking::{Asking, Expected, read};
use crate::dcb::connection::{Answer, Driver, Request};
use crate::dcb::events::{Bodies, query};
use crate::dcb::load::{Client, Clients, Until};
use crate::dcb::server::{Server, Store, System};
use crate::machine::drop_pages;
use crate::options::{Options, TREFOIL};
use crate::outcome::{Figure, Outcome, Rounds};
use crate::place::Place;
use crate::report::{Report, Row, Target};
use crate::usage::bytes_from_disk;

/// How many events have the same tag.
const EVENTS_PER_TAG: u64 = 50;
const BATCH: u64 = 1000;
const READERS: usize = 16;
const MEBIBYTE: u64 = 1024 * 1024;
/// How much a read of a tag may take longer than reads of its events' places alone.
const TIMES_RAW_MAX: f64 = 1.5;
/// How many times as much all readers must get as one of them alone.
const READERS_TIMES_MIN: f64 = 8.0;
const BYTES_PER_EVENT_MAX: f64 = 16.0 * 1024.0;
/// The sizes of raw reads, in KiB. What is read is compared with the last one.
const RAW_SIZES: [usize; 2] = [4, 16];

/// A server that may use only so much memory. It ends before its limit goes.
struct Limited {
    server: Server,
    _limit: MemoryLimit,
}

/// Measures reads of a log of so many thousands of events in so many MiB of memory.
pub(super) fn measure(
    options: &Options,
    thousands: u64,
    memory: u64,
    report: &mut Report,
) -> Result<()> {
    ensure!(thousands > 0, "--events must be at least 1");
    report.part("");
    let events = thousands * 1000;
    let bodies = Bodies::new();
    let (mut times, mut rates, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for (name, program) in options.trefoils()? {
        let store = Store {
            system: System::Trefoil,
            name,
            program,
            place: Place::Directory,
        };
        let server = Server::start(&store, &options.dir)?;
        let limit = MemoryLimit::of(server.running.id(), memory * MEBIBYTE)?;
        let limited = Limited {
            server,
            _limit: limit,
        };
        fill(&limited.server, &bodies, events)?;
        if times.is_empty() {
            times.extend(raw(options, limited.server.running.directory())?);
        }
        let base = times[RAW_SIZES.len() - 1].figure;
        let mut alone = None;
        for readers in [1, READERS] {
            let (rounds, from_disk) = ask(options, &limited.server, events, readers)?;
            let title = format!("{name}, {readers} at a time");
            let mut row = rounds.row(title.clone(), Figure::MedianMicroseconds)?;
            row.ratio = row.figure.zip(base).map(|(own, raw)| own / raw);
            let mut rate = rounds.row(title.clone(), Figure::RequestsPerSecond)?;
            rate.ratio = rate.figure.zip(alone).map(|(all, one)| all / one);
            let mut each = Row::new(title, from_disk);
            if name == TREFOIL {
                each.targets.push(Target::AtMost(BYTES_PER_EVENT_MAX));
                match readers {
                    1 => row.targets.push(Target::RatioAtMost(TIMES_RAW_MAX)),
                    _ => rate.targets.push(Target::RatioAtLeast(READERS_TIMES_MIN)),
                }
            }
            alone = alone.or(rate.figure);
            times.push(row);
            rates.push(rate);
            bytes.push(each);
        }
    }
    let place = format!("a log of {events} events, {memory} MiB of memory");
    let title = format!("Read of the {EVENTS_PER_TAG} events of a tag, {place}");
    report.table(&title, "us, median", times);
    report.table(
        &format!("{title}: all readers"),
        "queries per second",
        rates,
    );
    report.table(&format!("{title}: per event"), "bytes from the disk", bytes);
    Ok(())
}

/// The tag of events that lie `n_tags` apart.
fn tag(number: u64) -> String {
    format!("sample:{number}")
}

/// Appends events in batches.
struct Filling<'a> {
    bodies: &'a Bodies,
    n_tags: u64,
    appended: u64,
}

impl Client for Filling<'_> {
    fn next(&mut self) -> Request {
        let numbers = self.appended..self.appended + BATCH;
        let event = |number: u64| self.bodies.event(number, vec![tag(number % self.n_tags)]);
        Request::Append(AppendRequest {
            events: numbers.map(event).collect(),
            ..AppendRequest::default()
        })
    }

    fn answered(&mut self, answer: Answer) -> Result<u64> {
        let Answer::Appended(_) = answer else {
            bail!("an append without a condition was answered with {answer:?}");
        };
        self.appended += BATCH;
        Ok(BATCH)
    }
}

fn fill(server: &Server, bodies: &Bodies, events: u64) -> Result<()> {
    let filling = Filling {
        bodies,
        n_tags: events / EVENTS_PER_TAG,
        appended: 0,
    };
    let until = Until {
        time: Duration::MAX,
        requests: events / BATCH,
    };
    Clients::connect(server, Driver::Lean, [filling])?.run(until)?;
    server.running.settle();
    Ok(())
}

/// Lets readers ask for random tags. Returns how many bytes each event took from the disk, too.
fn ask(options: &Options, server: &Server, events: u64, readers: usize) -> Result<(Rounds, f64)> {
    let n_tags = events / EVENTS_PER_TAG;
    let readers = (0..readers).map(|_| {
        let make = move || read(query([], [&tag(fastrand::u64(..n_tags))]));
        Asking::new(make, Expected::Events(EVENTS_PER_TAG))
    });
    drop_pages()?;
    // The published client is what applications use.
    let driver = match cfg!(feature = "peers") {
        true => Driver::Published,
        false => Driver::Lean,
    };
    let mut clients = Clients::connect(server, driver, readers)?;
    let process = server.running.id();
    let before = bytes_from_disk(process).context("/proc does not say what was read")?;
    let outcome = clients.run(Until::after(options.time()))?;
    let after = bytes_from_disk(process).context("/proc does not say what was read")?;
    let each = (after - before) as f64 / outcome.units as f64;
    Ok((Rounds::one(outcome), each))
}

/// As many reads of the log's files, at random places.
fn raw(options: &Options, directory: &Path) -> Result<Vec<Row>> {
    let mut files = Vec::new();
    for path in files_below(directory)? {
        let file = File::open(path)?;
        fadvise(&file, 0, None, Advice::Random)?;
        let n_bytes = file.metadata()?.len();
        files.push((file, n_bytes));
    }
    let total: u64 = files.iter().map(|(_, n_bytes)| n_bytes).sum();
    ensure!(total > MEBIBYTE, "there is no log to read");
    let mut rows = Vec::new();
    for kibibytes in RAW_SIZES {
        drop_pages()?;
        let mut buffer = vec![0; kibibytes * 1024];
        let mut outcome = Outcome::new()?;
        let begin = Instant::now();
        while begin.elapsed() < options.time() {
            let asked = Instant::now();
            for _ in 0..EVENTS_PER_TAG {
                let mut offset = fastrand::u64(..total);
                let place = files.iter().find(|(_, n_bytes)| {
                    let is_here = offset < *n_bytes;
                    offset -= if is_here { 0 } else { *n_bytes };
                    is_here
                });
                let (file, _) = place.context("an offset is beyond all files")?;
                file.read_at(&mut buffer, offset / 4096 * 4096)?;
            }
            outcome.count(1, EVENTS_PER_TAG, asked.elapsed());
        }
        outcome.elapsed = begin.elapsed();
        let title = format!("{EVENTS_PER_TAG} raw reads of {kibibytes} KiB");
        rows.push(Rounds::one(outcome).row(title, Figure::MedianMicroseconds)?);
    }
    Ok(rows)
}

/// All files of the log, which lie in directories called `log`.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else if path.parent().is_some_and(|parent| parent.ends_with("log")) {
            files.push(path);
        }
    }
    Ok(files)
}
