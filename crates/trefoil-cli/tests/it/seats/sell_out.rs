//! Everything is sold, each seat once, by many buyers at a time on a server that is killed again and
//! again. `TREFOIL_SELL_OUT_SCALE` multiplies the size of the house and the number of kills.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::buyer::{Buyer, Record, Settled};
use super::line::{Line, Ports, Protocol};
use super::replayed::{self, SeatEvent};
use crate::harness::{Server, seeded};

pub(super) const EVENT: &str = "premiere";
/// So many rows per section, times the scale.
pub(super) const ROWS: u64 = 20;
pub(super) const SEATS_PER_ROW: u64 = 25;
const SECTIONS: u64 = 20;
const BUYERS: usize = 200;
/// So many kills, times the scale.
const KILLS: u64 = 10;
/// When to give up, times the scale.
const PATIENCE: Duration = Duration::from_secs(240);

/// Small enough parts that many of them are made.
const SETTINGS: [&str; 3] = [
    "--tail-events-max=1024",
    "--segment-size-max=1MiB",
    "--log-level=warn",
];

/// The section of a number.
pub(super) fn section(number: u64) -> String {
    format!(
        "{}-{}",
        char::from(b'A' + (number / 4) as u8),
        number % 4 + 1
    )
}

/// What all buyers share.
pub(super) struct Shop {
    pub(super) n_sections: u64,
    pub(super) scale: u64,
    /// The how manieth life of the server this is, and where it listens.
    life: Mutex<(u64, Ports)>,
    has_changed: Condvar,
    n_sold: AtomicU64,
    has_failed: AtomicBool,
    opened_at: Instant,
}

impl Shop {
    fn new(scale: u64, ports: Ports) -> Self {
        Self {
            n_sections: SECTIONS,
            scale,
            life: Mutex::new((0, ports)),
            has_changed: Condvar::new(),
            n_sold: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            opened_at: Instant::now(),
        }
    }

    fn n_seats(&self) -> u64 {
        SECTIONS * ROWS * SEATS_PER_ROW * self.scale
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Ports)> {
        self.life.lock().unwrap()
    }

    /// The life of the server, and where it listens.
    pub(super) fn ports(&self) -> (u64, Ports) {
        *self.lock()
    }

    fn reopen(&self, ports: Ports) {
        let mut life = self.lock();
        *life = (life.0 + 1, ports);
        self.has_changed.notify_all();
    }

    /// Waits until the server lives again. Its old port may be somebody else's by now.
    pub(super) fn wait_for_life_after(&self, seen: u64) {
        let mut life = self.lock();
        while life.0 == seen {
            self.check();
            let pause = Duration::from_millis(100);
            life = self.has_changed.wait_timeout(life, pause).unwrap().0;
        }
    }

    pub(super) fn count_sold(&self, n: u64) {
        self.n_sold.fetch_add(n, Ordering::SeqCst);
    }

    pub(super) fn is_sold_out(&self) -> bool {
        self.check();
        self.n_sold.load(Ordering::SeqCst) >= self.n_seats()
    }

    fn wait_until_sold(&self, n: u64) {
        while self.n_sold.load(Ordering::SeqCst) < n {
            self.check();
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Tells the others that somebody has found a defect.
    pub(super) fn give_up(&self) {
        self.has_failed.store(true, Ordering::SeqCst);
    }

    fn check(&self) {
        assert!(!self.has_failed.load(Ordering::SeqCst), "somebody failed");
        let patience = PATIENCE * self.scale as u32;
        assert!(self.opened_at.elapsed() < patience, "it takes too long");
    }
}

#[test]
fn every_seat_is_sold_once_whatever_happens_to_the_server() {
    let scale = std::env::var("TREFOIL_SELL_OUT_SCALE").ok();
    let scale = scale.map_or(1, |scale| scale.parse().unwrap());
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &SETTINGS);
    let shop = Shop::new(scale, Ports::of(&server));
    open_sections(&server, scale);
    let mut random = seeded();
    let (server, records) = thread::scope(|scope| {
        let mut start = |number| {
            let seed = random.u64(..);
            let buyer = Buyer::new(&shop, number, Rng::with_seed(seed));
            scope.spawn(move || buyer.run())
        };
        let buyers: Vec<_> = (0..BUYERS).map(&mut start).collect();
        let server = kill_and_restart(server, &shop, &data);
        let records: Vec<Record> = buyers
            .into_iter()
            .map(|buyer| buyer.join().unwrap())
            .collect();
        (server, records)
    });
    let events = verify(&server);
    check_sold_once(&server, &shop, &records, &events);
    let count = |of: fn(&Record) -> usize| records.iter().map(of).sum::<usize>();
    let (n_lost, n_survived) = (
        count(|record| record.n_lost),
        count(|record| record.n_survived),
    );
    eprintln!(
        "{} seats in {:?}: {} bookings, {} refusals, {} connections lost, {} of their reservations \
         found nevertheless, {} events",
        shop.n_seats(),
        shop.opened_at.elapsed(),
        count(|record| record.settled.len()),
        count(|record| record.n_refused),
        n_lost,
        n_survived,
        events.len(),
    );
    assert!(n_lost as u64 >= KILLS * scale, "nobody noticed the kills");
    assert!(
        n_survived > 0,
        "no kill came between a write and its answer"
    );
}

fn open_sections(server: &Server, scale: u64) {
    let mut line = Line::to(server, Protocol::Resp);
    for number in 0..SECTIONS {
        let section = section(number);
        let opened = line.ok(
            "seats.init",
            &json!({"event": EVENT, "section": section, "rows": ROWS * scale,
                "seatsPerRow": SEATS_PER_ROW, "price": 10 + number}),
        );
        assert_eq!(opened["created"], 1);
    }
}

/// Kills the server whenever another part of the house is sold, and looks whether all is well
/// before buyers come in again.
fn kill_and_restart(mut server: Server, shop: &Shop, data: &TempDir) -> Server {
    let n_kills = KILLS * shop.scale;
    for kill in 1..=n_kills {
        shop.wait_until_sold(shop.n_seats() * kill / (n_kills + 1));
        server.kill();
        server = Server::on(data.path(), &SETTINGS);
        verify(&server);
        shop.reopen(Ports::of(&server));
    }
    server
}

/// The invariants hold, and the events lead to the keys.
fn verify(server: &Server) -> Vec<SeatEvent> {
    let mut line = Line::to(server, Protocol::Resp);
    let violations = line.ok("seats.check", &json!({ "event": EVENT }));
    assert_eq!(violations, json!([]));
    replayed::check(server)
}

/// What buyers were told is what is stored, and each seat is sold once.
fn check_sold_once(server: &Server, shop: &Shop, records: &[Record], events: &[SeatEvent]) {
    let n_seats = shop.n_seats();
    let mut line = Line::to(server, Protocol::Resp);
    let stats = line.ok("seats.stats", &json!({ "event": EVENT }));
    let counts = ["available", "reserved", "sold", "total"].map(|name| stats[name].as_u64());
    assert_eq!(counts, [Some(0), Some(0), Some(n_seats), Some(n_seats)]);

    let settled = || records.iter().flat_map(|record| &record.settled);
    let mut by_status: BTreeMap<&str, usize> = BTreeMap::new();
    for settled in settled() {
        *by_status.entry(settled.status).or_default() += 1;
        check_booking(&mut line, settled);
    }
    eprintln!("{by_status:?}");
    for status in ["SOLD", "RELEASED", "EXPIRED"] {
        assert!(by_status.contains_key(status), "nothing is {status}");
    }

    let mut told = BTreeSet::new();
    for settled in settled().filter(|settled| settled.status == "SOLD") {
        for seat in settled.seats.as_array().unwrap() {
            let is_new = told.insert((settled.section.clone(), seat.to_string()));
            assert!(is_new, "{settled:?}: {seat} was sold before");
        }
    }
    let mut written = BTreeSet::new();
    for event in events
        .iter()
        .filter(|event| event.event_type == "SeatsSold")
    {
        let section = event.data["section"].as_str().unwrap();
        for seat in event.data["seats"].as_array().unwrap() {
            let is_new = written.insert((section.to_owned(), seat.to_string()));
            assert!(is_new, "{} was sold before", event.data);
        }
    }
    assert_eq!(told.len() as u64, n_seats);
    assert_eq!(told, written, "what was told is not what is written");
}

fn check_booking(line: &mut Line, settled: &Settled) {
    let booking: Json = line.ok("seats.booking", &json!({ "booking": settled.booking }));
    let found = ["status", "buyer", "section"].map(|name| booking[name].as_str());
    let told = [settled.status, &settled.buyer, &settled.section].map(Some);
    assert_eq!(found, told, "{settled:?}");
    assert_eq!(booking["seats"], settled.seats, "{settled:?}");
}
