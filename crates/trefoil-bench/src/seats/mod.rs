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

use crate::closed_loop::{Clients, connect};
use crate::machine::Machine;
use crate::options::Options;
use crate::outcome::{Figure, Rounds, by_turns};
use crate::report::{Report, Row, Target};
use crate::resp::server::{Server, System};
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
    #[command(flatten)]
    options: Options,

    /// Only these systems.
    #[arg(long, value_name = "SYSTEMS", value_enum, value_delimiter = ',')]
    systems: Vec<System>,

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
    let options = &arguments.options;
    options.check()?;
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(200));
    let machine = Machine::this();
    let mut report = Report::new(options.json);
    report.line(&machine.text());
    let mut servers = Server::start_all(options, &arguments.systems, &report)?;
    report.line("CPU: microseconds of the server and of the clients per seat.");
    let mut bench = Bench {
        servers: &servers,
        time: options.time(),
        rounds: options.rounds(),
        progress: &progress,
        n_venues: 0,
    };
    for seats in &arguments.seats {
        bench.table(*seats, &arguments.buyers, &mut report)?;
    }
    let mut servers = servers.iter_mut();
    servers.try_for_each(|server| server.running.check())?;
    progress.finish_and_clear();
    report.finish(&options.context(&machine))
}

struct Bench<'a> {
    servers: &'a [Server],
    time: Duration,
    rounds: u32,
    progress: &'a ProgressBar,
    n_venues: usize,
}

/// A server, a way to reserve, and the buyers that do.
struct Driven<'a> {
    server: &'a Server,
    way: Way,
    clients: Clients<Buyer<'a>>,
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
        let mut driven = Vec::new();
        for (server, way, venue, tries) in &venues {
            let buyer = |index| {
                let buyer = Buyer::new(*way, server, venue, (index, buyers), tries);
                Ok((socket(server, *way)?, buyer))
            };
            let connected: Result<Vec<_>> = (0..buyers).map(buyer).collect();
            let mut clients = Clients::new(connected?)?;
            clients.run(self.time / 8, || server.usage())?;
            tries.store(0, Ordering::Relaxed);
            let way = *way;
            driven.push(Driven {
                server,
                way,
                clients,
            });
        }
        let rounds = by_turns(&mut driven, self.rounds, |driven| {
            let server = driven.server;
            driven.clients.run(self.time, || server.usage())
        })?;
        let tries = venues.iter();
        let tries = tries.map(|(.., tries)| tries.load(Ordering::Relaxed));
        let seen = driven.iter().zip(rounds).zip(tries);
        let seen: Vec<Seen> = seen
            .map(|((driven, rounds), tries)| Seen {
                name: driven.way.name(driven.server),
                way: driven.way,
                rounds,
                tries,
            })
            .collect();
        Ok((rows(&seen, seats, buyers)?, medians(&seen, seats, buyers)?))
    }
}

fn socket(server: &Server, way: Way) -> Result<TcpStream> {
    match (way, server.http) {
        (Way::Http, Some(address)) => connect(address),
        _ => server.connect(),
    }
}

/// What one way to reserve showed.
struct Seen {
    name: String,
    way: Way,
    rounds: Rounds,
    tries: u64,
}

fn rows(seen: &[Seen], seats: usize, buyers: usize) -> Result<Vec<Row>> {
    let plural = if buyers == 1 { "buyer" } else { "buyers" };
    let mut rows = Vec::new();
    for one in seen {
        let name = format!("{}, {buyers} {plural}", one.name);
        let mut row = one.rounds.row(name, Figure::UnitsPerSecond)?;
        if one.way == Way::Watch {
            let n_reservations = (one.rounds.units() / seats as u64).max(1);
            row.note = format!("{:.2} tries", one.tries as f64 / n_reservations as f64);
        }
        if one.way != Way::Watch && buyers == PUBLISHED_BUYERS && seats == 1 {
            row.targets.push(Target::AtLeast(SEATS_PER_SECOND_MIN));
        }
        rows.push(row);
    }
    let peers = seen.iter().zip(&rows);
    let peers = peers.filter(|(one, _)| one.way == Way::Watch);
    let best = peers.filter_map(|(_, row)| row.figure).reduce(f64::max);
    for row in &mut rows {
        row.ratio = row.figure.zip(best).map(|(own, best)| own / best);
    }
    Ok(rows)
}

fn medians(seen: &[Seen], seats: usize, buyers: usize) -> Result<Vec<Row>> {
    let goal = GOALS.iter().find(|(of, _)| *of == seats && buyers == 1);
    let Some((_, milliseconds)) = goal else {
        return Ok(Vec::new());
    };
    let row = |one: &Seen| {
        let row = one.rounds.row(&one.name, Figure::MedianMilliseconds)?;
        Ok(match one.way {
            Way::Watch => row,
            _ => row.target(Target::AtMost(*milliseconds)),
        })
    };
    seen.iter().map(row).collect()
}
