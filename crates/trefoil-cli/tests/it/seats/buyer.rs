//! One of many buyers: reserves seats and then sells, releases or forgets them, sends some requests
//! twice, and repeats whatever was not answered.

use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value as Json, json};

use super::line::{Line, Outcome, Protocol, Refusal};
use super::sell_out::{EVENT, ROWS, SEATS_PER_ROW, Shop, section};

/// How long a buyer waits before trying again where there was nothing to get.
const PAUSE: Duration = Duration::from_millis(5);
/// One of this many requests is sent twice.
const TWICE: u64 = 5;

/// What is to become of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Buy,
    /// To buy when the hold is just about to end.
    BuyLate,
    Release,
    Forget,
}

/// A booking that has come to its end, as its buyer was told.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) booking: String,
    pub(super) buyer: String,
    pub(super) section: String,
    pub(super) seats: Json,
    pub(super) status: &'static str,
}

/// What a buyer has to tell in the end.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) settled: Vec<Settled>,
    /// How often the connection was lost before the answer.
    pub(super) n_lost: usize,
    /// How often the request had been carried out nevertheless.
    pub(super) n_survived: usize,
    /// How often there were no such seats any more.
    pub(super) n_refused: usize,
}

pub(super) struct Buyer<'s> {
    shop: &'s Shop,
    name: String,
    protocol: Protocol,
    /// The connection, and the life of the server that it belongs to.
    line: Option<(u64, Line)>,
    random: Rng,
    n_bookings: u64,
    /// Whether to take whatever there is, after being refused.
    is_modest: bool,
    record: Record,
}

impl Drop for Buyer<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.shop.give_up();
        }
    }
}

impl<'s> Buyer<'s> {
    pub(super) fn new(shop: &'s Shop, number: usize, random: Rng) -> Self {
        Self {
            shop,
            name: format!("buyer{number}"),
            protocol: Protocol::BOTH[number % 2],
            line: None,
            random,
            n_bookings: 0,
            is_modest: false,
            record: Record::default(),
        }
    }

    /// Buys until everything is sold.
    pub(super) fn run(mut self) -> Record {
        while !self.shop.is_sold_out() {
            self.book();
        }
        std::mem::take(&mut self.record)
    }

    fn is_one_of(&mut self, n: u64) -> bool {
        self.random.u64(..n) == 0
    }

    fn book(&mut self) {
        self.n_bookings += 1;
        let section = section(self.random.u64(..self.shop.n_sections));
        let plan = match self.random.u64(..10) {
            0 => Plan::Release,
            1 => Plan::Forget,
            2 => Plan::BuyLate,
            _ => Plan::Buy,
        };
        let mut request = json!({
            "event": EVENT, "section": section, "buyer": self.name,
            "booking": format!("{}-{}", self.name, self.n_bookings),
        });
        self.choose_seats(&mut request);
        if matches!(plan, Plan::BuyLate | Plan::Forget) {
            request["holdMs"] = json!(20 + self.random.u64(..150));
        } else if self.is_one_of(2) {
            request["hold"] = json!(600);
        }
        let reserved_at = Instant::now();
        match self.reserve(&request) {
            Ok(answer) => self.carry_out(plan, &request, &answer, reserved_at),
            Err(refusal) => self.be_refused(&request, &refusal),
        }
    }

    /// Seats side by side somewhere, or the best ones.
    fn choose_seats(&mut self, request: &mut Json) {
        let n = match self.is_modest {
            true => 1,
            false => 1 + self.random.u64(..4),
        };
        let is_manual = !self.is_modest && self.is_one_of(2);
        if is_manual {
            let row = 1 + self.random.u64(..ROWS * self.shop.scale);
            let first = 1 + self.random.u64(..SEATS_PER_ROW - n + 1);
            let seats = (first..first + n).map(|number| json!(format!("{row}-{number}")));
            request["seats"] = seats.collect();
        } else {
            // Somebody always wants too many.
            let is_greedy = self.is_one_of(50);
            request["best"] = json!(if is_greedy { 5 } else { n });
        }
    }

    fn be_refused(&mut self, request: &Json, refusal: &Refusal) {
        let expected = match request.get("best") {
            None => "SEATTAKEN",
            Some(n) if *n == 5 => "LIMIT",
            Some(_) => "NOSEATS",
        };
        assert_eq!(refusal.code, expected, "{request}: {refusal:?}");
        self.record.n_refused += 1;
        self.is_modest = expected == "NOSEATS";
        if self.is_modest {
            thread::sleep(PAUSE);
        }
    }

    /// Reserves, if need be after a look at whether that has been done.
    fn reserve(&mut self, request: &Json) -> Outcome {
        let mut outcome = self.try_ask("seats.reserve", request);
        if outcome.is_none() {
            let booking = json!({ "booking": request["booking"] });
            let found = self.ask("seats.booking", &booking).unwrap();
            let repeated = self.ask("seats.reserve", request);
            if !found.is_null() {
                self.record.n_survived += 1;
                let seats = repeated.as_ref().map(|answer| &answer["seats"]);
                assert_eq!(seats, Ok(&found["seats"]), "{request}");
            }
            outcome = Some(repeated);
        }
        let outcome = outcome.unwrap();
        if outcome.is_ok() && self.is_one_of(TWICE) {
            assert_eq!(self.ask("seats.reserve", request), outcome, "{request}");
        }
        outcome
    }

    fn carry_out(&mut self, plan: Plan, request: &Json, answer: &Json, reserved_at: Instant) {
        let hold = request.get("holdMs").map(|hold| hold.as_u64().unwrap());
        let hold = Duration::from_millis(hold.unwrap_or_default());
        if plan == Plan::BuyLate {
            // When exactly the hold began is the server's affair.
            thread::sleep(hold.saturating_sub(reserved_at.elapsed()));
        }
        if plan == Plan::Forget {
            thread::sleep(hold);
        }
        let own = json!({ "booking": request["booking"], "buyer": self.name });
        if self.is_one_of(20) {
            let others = json!({ "booking": request["booking"], "buyer": "thief" });
            let refusal = self.ask("seats.finalize", &others).unwrap_err();
            assert_eq!(refusal.code, "NOTOWNER", "{request}");
        }
        let method = match plan {
            Plan::Release => "seats.release",
            _ => "seats.finalize",
        };
        let outcome = self.ask(method, &own);
        if self.is_one_of(TWICE) {
            assert_eq!(self.ask(method, &own), outcome, "{request}");
        }
        let status = match (&outcome, plan) {
            (Ok(_), Plan::Release) => "RELEASED",
            (Ok(_), Plan::Buy | Plan::BuyLate) => "SOLD",
            (Err(refusal), Plan::Forget | Plan::BuyLate) if refusal.code == "EXPIRED" => "EXPIRED",
            _ => panic!("{plan:?} {request}: {outcome:?}"),
        };
        if let Ok(settled) = outcome {
            assert_eq!(
                (&settled["status"], &settled["seats"]),
                (&json!(status), &answer["seats"]),
                "{request}"
            );
        }
        self.note(request, answer, status);
    }

    fn note(&mut self, request: &Json, answer: &Json, status: &'static str) {
        let text = |name: &str| request[name].as_str().unwrap().to_owned();
        let seats = answer["seats"].clone();
        if status == "SOLD" {
            self.shop.count_sold(seats.as_array().unwrap().len() as u64);
        }
        self.record.settled.push(Settled {
            booking: text("booking"),
            buyer: text("buyer"),
            section: text("section"),
            seats,
            status,
        });
    }

    /// Asks until there is an answer.
    fn ask(&mut self, method: &str, arguments: &Json) -> Outcome {
        loop {
            if let Some(outcome) = self.try_ask(method, arguments) {
                return outcome;
            }
        }
    }

    /// Asks once; `None` if the connection is lost, after waiting for the next life of the server.
    fn try_ask(&mut self, method: &str, arguments: &Json) -> Option<Outcome> {
        let (life, ports) = self.shop.ports();
        if self.line.as_ref().is_none_or(|(of, _)| *of != life) {
            self.line = Line::open(ports, self.protocol)
                .ok()
                .map(|line| (life, line));
        }
        let answer = self
            .line
            .as_mut()
            .and_then(|(_, line)| line.try_call(method, arguments).ok());
        if answer.is_none() {
            self.record.n_lost += 1;
            self.line = None;
            self.shop.wait_for_life_after(life);
        }
        answer
    }
}
