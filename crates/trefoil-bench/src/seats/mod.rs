//! `cargo xtask bench seats`: reservations of seats, beside the same on Redis.
//!
//! Both servers run at the same time and are measured by turns. No seat is wanted twice, but
//! buyers meet in sections.

mod buyer;
mod venue;

use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use crate::closed_loop::{Clients, Outcome, connect};
use crate::machine::Machine;
use crate::report::{Report, Row, Target};
use crate::resp::server::{Installed, Server, System};
use buyer::{Buyer, Way};
use venue::{ROW_SEATS, Venue};

/// Measures reservations of seats over RESP and HTTP, beside `redis-server` if it is installed.
///
/// Starts both on free ports with new data directories in the same place; Redis with `appendonly
/// yes` and `appendfsync always`. A venue has 100 sections of 10,000 seats. With Trefoil, a buyer
/// sends SEATS.RESERVE, which checks the seats, reserves and counts them, remembers the booking and
/// appends an event. With Redis, a buyer watches the section, reads the states of the seats, and
/// does the same but for the event in a MULTI/EXEC; if another buyer was faster, it tries again.
///
/// Reservations per second count seats. Clients and servers share the machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// What is started, where, and how it is measured.
    #[command(flatten)]
    pub(crate) installed: Installed,

    /// How many buyers, one table row each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [1, 50, 200])]
    pub(crate) buyers: Vec<usize>,

    /// How many seats a reservation has, one table each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [1, 4])]
    pub(crate) seats: Vec<usize>,
}

/// The most buyers one run may use.
const BUYERS_MAX: usize = 10_000;
/// The most seats of one reservation.
const SEATS_MAX: usize = ROW_SEATS;
/// How often the ways take turns in a cell.
const ROUNDS: u32 = 2;
/// With this many buyers, this many seats per second are five times what was published for the same
/// venue on three systems.
const PUBLISHED_BUYERS: usize = 50;
const SEATS_PER_SECOND_MIN: f64 = 5.0 * 1504.0;
/// Numbers of seats, and the milliseconds in which half of their reservations must be done.
const GOALS: [(usize, f64); 2] = [(1, 2.0), (4, 3.0)];

/// Runs the measurement and prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let within = |counts: &[usize], most| counts.iter().all(|count| (1..=most).contains(count));
    ensure!(
        within(&arguments.buyers, BUYERS_MAX),
        "--buyers must be 1 to {BUYERS_MAX} each"
    );
    ensure!(
        within(&arguments.seats, SEATS_MAX),
        "--seats must be 1 to {SEATS_MAX} each"
    );
    let time = arguments.installed.time()?;
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(200));
    let machine = Machine::this();
    let mut servers = arguments.installed.start()?;
    let mut report = Report::new(arguments.installed.json);
    report.line(&machine.text());
    report.line(&arguments.installed.text(&servers));
    report.line("CPU: microseconds of the server per seat; in the note, of the client.");
    let mut bench = Bench {
        servers: &servers,
        time,
        progress: &progress,
        n_venues: 0,
    };
    for seats in &arguments.seats {
        bench.table(*seats, &arguments.buyers, &mut report)?;
    }
    servers.iter_mut().try_for_each(Server::check)?;
    progress.finish_and_clear();
    report.finish(&json!({"machine": machine.json(), "secondsPerCell": time.as_secs_f64()}));
    Ok(())
}

struct Bench<'a> {
    servers: &'a [Server],
    time: Duration,
    progress: &'a ProgressBar,
    n_venues: usize,
}

/// A server, a way to reserve, and what came of it.
struct Measured<'a> {
    server: &'a Server,
    way: Way,
    clients: Clients<Buyer<'a>>,
    outcome: Outcome,
}

impl Bench<'_> {
    fn table(&mut self, seats: usize, buyers: &[usize], report: &mut Report) -> Result<()> {
        let plural = if seats == 1 { "seat" } else { "seats" };
        let title = format!("Reservations of {seats} {plural}, durable");
        let (mut rows, mut medians) = (Vec::new(), Vec::new());
        for buyers in buyers {
            self.progress
                .set_message(format!("{title}: {buyers} buyers"));
            let (mut measured, mut median) = self.cell(seats, *buyers)?;
            rows.append(&mut measured);
            medians.append(&mut median);
        }
        report.table(&title, "seats/s", rows);
        if !medians.is_empty() {
            report.table(&format!("{title}, 1 buyer"), "ms at the median", medians);
        }
        Ok(())
    }

    /// Measures all ways by turns, in a venue of its own each. The second list has the medians of
    /// one buyer, if there is a goal.
    fn cell(&mut self, seats: usize, buyers: usize) -> Result<(Vec<Row>, Vec<Row>)> {
        let mut venues = Vec::new();
        for server in self.servers {
            for way in Way::of(server.system) {
                self.n_venues += 1;
                let venue = Venue::open(server, self.n_venues, seats)?;
                venues.push((server, *way, venue, AtomicU64::new(0)));
            }
        }
        let mut measured = Vec::new();
        for (server, way, venue, tries) in &venues {
            let buyer = |index| {
                let buyer = Buyer::new(*way, server, venue, (index, buyers), tries);
                Ok((socket(server, *way)?, buyer))
            };
            let connected: Result<Vec<_>> = (0..buyers).map(buyer).collect();
            let mut clients = Clients::new(connected?)?;
            clients.run(self.time / 8, || server.cpu())?;
            tries.store(0, Ordering::Relaxed);
            let (way, outcome) = (*way, Outcome::new()?);
            measured.push(Measured {
                server,
                way,
                clients,
                outcome,
            });
        }
        for _ in 0..ROUNDS {
            for Measured {
                server,
                clients,
                outcome,
                ..
            } in &mut measured
            {
                outcome.add(&clients.run(self.time / ROUNDS, || server.cpu())?)?;
            }
        }
        let tries = venues
            .iter()
            .map(|(.., tries)| tries.load(Ordering::Relaxed));
        let measured = measured.into_iter().zip(tries);
        let measured: Vec<_> = measured
            .map(|(one, tries)| (one.way, one.outcome, tries))
            .collect();
        Ok((
            rows(&measured, seats, buyers),
            medians(&measured, seats, buyers),
        ))
    }
}

fn socket(server: &Server, way: Way) -> Result<TcpStream> {
    match (way, &server.http) {
        (Way::Http, Some((address, _))) => connect(*address),
        _ => server.connect(),
    }
}

type Seen = (Way, Outcome, u64);

fn rows(measured: &[Seen], seats: usize, buyers: usize) -> Vec<Row> {
    let plural = if buyers == 1 { "buyer" } else { "buyers" };
    let row = |(way, outcome, tries): &Seen| {
        let mut row = outcome.row(format!("{}, {buyers} {plural}", way.name()));
        if *way == Way::Watch {
            let n_reservations = (outcome.operations / seats as u64).max(1);
            let tries = *tries as f64 / n_reservations as f64;
            row.note.push_str(&format!(", {tries:.2} tries"));
        }
        row
    };
    let mut rows: Vec<Row> = measured.iter().map(row).collect();
    let redis = measured.iter().position(|(way, ..)| *way == Way::Watch);
    let redis = redis.and_then(|index| rows[index].figure);
    for (row, (way, ..)) in rows.iter_mut().zip(measured) {
        row.ratio = row.figure.zip(redis).map(|(own, redis)| own / redis);
        if *way != Way::Watch && buyers == PUBLISHED_BUYERS && seats == 1 {
            row.target = Some(Target::AtLeast(SEATS_PER_SECOND_MIN));
        }
    }
    rows
}

fn medians(measured: &[Seen], seats: usize, buyers: usize) -> Vec<Row> {
    let goal = GOALS.iter().find(|(of, _)| *of == seats && buyers == 1);
    let Some((_, milliseconds)) = goal else {
        return Vec::new();
    };
    let row = |(way, outcome, _): &Seen| {
        let median = outcome.latencies.percentile(0.5).as_secs_f64() * 1e3;
        let row = Row::new(way.name(), median);
        match System::Trefoil == way.system() {
            true => row.target(Target::AtMost(*milliseconds)),
            false => row,
        }
    };
    measured.iter().map(row).collect()
}
