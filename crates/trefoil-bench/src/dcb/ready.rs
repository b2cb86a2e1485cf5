//! How soon a store answers after a restart, and how much memory it then has.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use trefoil_grpc::AppendRequest;

use super::asking::{Asking, Expected};
use super::connection::Request;
use super::load::{Clients, Until};
use super::loaded::Loaded;
use super::server::Server;
use super::{Bench, aim};
use crate::machine::drop_pages;
use crate::report::{Report, Row, Target};

/// How often each kind of restart is measured; the median counts.
const RESTARTS: usize = 5;
/// So many events are appended just before a kill.
const KILLED_AFTER: u64 = 1000;

/// How a store ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// As a service manager ends it.
    Stop,
    /// Without warning, just after an append.
    Kill,
}

/// What the kernel has of the files when the store starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    Warm,
    Cold,
}

/// The kinds of restarts, and the most milliseconds until the first answer.
const CELLS: [(End, Pages, Option<f64>); 4] = [
    (End::Stop, Pages::Warm, Some(40.0)),
    (End::Stop, Pages::Cold, Some(90.0)),
    (End::Kill, Pages::Warm, None),
    (End::Kill, Pages::Cold, None),
];
/// The most MiB of memory after a restart.
const MEMORY_MAX: f64 = 48.0;

pub(super) fn run(bench: &Bench<'_>, loaded: &mut [Loaded], report: &mut Report) -> Result<()> {
    for (end, pages, millis) in CELLS {
        let title = title(end, pages, bench.events);
        let mut rows = Vec::new();
        for Loaded { server, .. } in loaded.iter_mut() {
            bench.doing(format!("{title}: {}", server.store.name));
            rows.push(row(bench, server, end, pages)?);
        }
        let target = millis.map(Target::AtMost);
        aim(&mut rows, target.as_slice());
        report.table(&title, "ms", rows);
    }
    let title = format!(
        "Memory after SIGTERM and restart at {} events",
        bench.events
    );
    let mut rows = Vec::new();
    for Loaded { server, .. } in loaded.iter_mut() {
        bench.doing(format!("{title}: {}", server.store.name));
        rows.push(memory(server)?);
    }
    aim(&mut rows, &[Target::AtMost(MEMORY_MAX)]);
    report.table(&title, "MiB", rows);
    Ok(())
}

fn title(end: End, pages: Pages, events: u64) -> String {
    let end = match end {
        End::Stop => "SIGTERM",
        End::Kill => "kill -9",
    };
    let pages = match pages {
        Pages::Warm => "warm",
        Pages::Cold => "cold",
    };
    format!("Ready after {end} at {events} events, {pages}")
}

fn row(bench: &Bench<'_>, server: &mut Server, end: End, pages: Pages) -> Result<Row> {
    let name = server.store.name;
    let mut millis = Vec::new();
    for _ in 0..RESTARTS {
        if end == End::Kill {
            append(bench, server)?;
            server.running.kill()?;
        } else {
            server.running.stop()?;
        }
        if pages == Pages::Cold
            && let Err(error) = drop_pages()
        {
            server.start_again()?;
            return Ok(Row::missing(name, format!("not measured: {error:#}")));
        }
        millis.push(start(server)?.as_secs_f64() * 1e3);
    }
    millis.sort_by(f64::total_cmp);
    ensure!(!millis.is_empty(), "no restart was measured");
    let mut row = Row::new(name, millis[millis.len() / 2]);
    row.spread = Some((millis[0], millis[millis.len() - 1]));
    Ok(row)
}

/// Starts a store that has ended and says how long its first answer took.
fn start(server: &mut Server) -> Result<Duration> {
    let begin = Instant::now();
    server.start_again()?;
    Ok(begin.elapsed())
}

/// Appends events that no other cell looks for, in one request.
fn append(bench: &Bench<'_>, server: &Server) -> Result<()> {
    let events = (0..KILLED_AFTER).map(|number| {
        let tags = vec!["restart".to_owned()];
        bench.bodies.event(number, tags)
    });
    let request = AppendRequest {
        events: events.collect(),
        ..AppendRequest::default()
    };
    let asking = Asking::new(|| Request::Append(request.clone()), Expected::Appended);
    let leanest = server.store.system.leanest();
    Clients::connect(server, leanest, [asking])?.run(Until {
        time: Duration::MAX,
        requests: 1,
    })?;
    Ok(())
}

/// What a store has in memory when it was stopped, started again and left alone.
fn memory(server: &mut Server) -> Result<Row> {
    server.running.stop()?;
    server.start_again()?;
    server.running.settle();
    Ok(server.running.memory_row(server.store.name))
}
