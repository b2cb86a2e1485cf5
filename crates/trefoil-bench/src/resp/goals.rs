//! Single reads and reservations of one client, beside what a ticketing system expects of them.

use anyhow::Result;
use fastrand::Rng;

use super::Bench;
use super::operation::{RESERVED, SEATS, Seat, put_reservation};
use super::requests::Requests;
use crate::options::TREFOIL;
use crate::outcome::Figure;
use crate::report::{Report, Target};

/// What is asked, and in how many milliseconds half of the answers must have come.
const GOALS: [(&str, Goal, f64); 6] = [
    ("BITFIELD GET of 1 seat", Goal::Seat, 0.1),
    ("GETRANGE of 100 seats, 25 bytes", Goal::Seats(100), 1.0),
    ("GETRANGE of 500 seats, 125 bytes", Goal::Seats(500), 2.0),
    ("HGETALL of a section's statistics", Goal::Statistics, 0.5),
    ("MULTI/EXEC that reserves 1 seat", Goal::Reserve(1), 2.0),
    ("MULTI/EXEC that reserves 4 seats", Goal::Reserve(4), 3.0),
];

/// Something that one client does.
#[derive(Debug, Clone, Copy)]
enum Goal {
    Seat,
    Seats(u64),
    Statistics,
    Reserve(u64),
}

/// How many seats a byte has.
const SEATS_PER_BYTE: u64 = 4;
/// How many different requests are made before.
const OPERATIONS: usize = 10_000;

impl Goal {
    fn requests(self) -> Requests {
        let mut random = Rng::with_seed(4);
        let mut requests = Requests::new();
        for number in 0..OPERATIONS {
            self.put(&mut requests, &mut random, number);
            requests.end_operation();
        }
        requests
    }

    fn put(self, requests: &mut Requests, random: &mut Rng, number: usize) {
        let seat = Seat::any(random);
        match self {
            Self::Seat => seat.put_get(requests),
            Self::Seats(count) => {
                let n_bytes = count / SEATS_PER_BYTE;
                let first = random.u64(..SEATS / count) * n_bytes;
                let last = (first + n_bytes - 1).to_string();
                let (key, first) = (seat.states(), first.to_string());
                let words = [
                    &b"GETRANGE"[..],
                    key.as_bytes(),
                    first.as_bytes(),
                    last.as_bytes(),
                ];
                requests.command(&words);
            }
            Self::Statistics => requests.command(&[b"HGETALL", seat.stats().as_bytes()]),
            Self::Reserve(count) => {
                let first = random.u64(..SEATS / count) * count;
                let seats = (first..first + count).map(|number| Seat { number, ..seat });
                let seats: Vec<_> = seats.collect();
                put_reservation(requests, &seats, (number, RESERVED), false);
            }
        }
    }
}

pub(super) fn run(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    for (title, goal, milliseconds) in GOALS {
        bench.progress.set_message(title);
        let servers: Vec<_> = bench.servers.iter().collect();
        let figure = Figure::MedianMilliseconds;
        let mut rows = bench.by_turns(&servers, &goal.requests(), (1, 1), figure)?;
        for row in rows.iter_mut().filter(|row| row.system == TREFOIL) {
            row.targets.push(Target::AtMost(milliseconds));
        }
        let title = format!("{title}, 1 client");
        report.table(&title, "ms at the median", rows);
    }
    Ok(())
}
