//! Buyers: each reserves seats that nobody else wants, again and again.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail, ensure};

use super::venue::{Block, Venue};
use crate::closed_loop::{Client, Progress};
use crate::http;
use crate::resp::server::{Server, System};
use crate::resp::wire::{self, Reply, put_command};

/// How a reservation is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Redis: watch, look, and change in a transaction.
    Watch,
    /// Trefoil: one command over RESP.
    Resp,
    /// Trefoil: the same over HTTP.
    Http,
}

impl Way {
    /// The ways in which a system can be asked.
    pub(super) fn of(system: System) -> &'static [Self] {
        match system {
            System::Redis | System::Valkey => &[Self::Watch],
            System::Trefoil => &[Self::Resp, Self::Http],
        }
    }

    /// How it is called in tables.
    pub(super) fn name(self, server: &Server) -> String {
        let way = match self {
            Self::Watch => "WATCH and MULTI",
            Self::Resp => "RESP",
            Self::Http => "HTTP",
        };
        format!("{}, {way}", server.name)
    }
}

/// One buyer.
pub(super) struct Buyer<'a> {
    way: Way,
    server: &'a Server,
    venue: &'a Venue,
    /// The place of the next seats in the order in which all are wanted.
    next: usize,
    step: usize,
    block: Block,
    stage: Stage,
    request: Vec<u8>,
    replies: usize,
    incoming: wire::Incoming,
    response: http::client::Incoming,
    /// How often all buyers have tried.
    tries: &'a AtomicU64,
}

/// What a buyer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It chooses other seats.
    Choose,
    /// It looks whether its seats are available.
    Look,
    /// It reserves them.
    Reserve,
}

/// What replies have said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Fine,
    /// Somebody else was faster.
    Aborted,
}

impl<'a> Buyer<'a> {
    /// Returns the buyer with an index, of all buyers.
    pub(super) fn new(
        way: Way,
        server: &'a Server,
        venue: &'a Venue,
        (index, buyers): (usize, usize),
        tries: &'a AtomicU64,
    ) -> Self {
        Self {
            way,
            server,
            venue,
            next: index,
            step: buyers,
            block: Block {
                section: 0,
                first: 0,
                count: 0,
            },
            stage: Stage::Choose,
            request: Vec::new(),
            replies: 0,
            incoming: wire::Incoming::default(),
            response: http::client::Incoming::default(),
            tries,
        }
    }

    /// The place in the order is the number of the booking.
    fn ids(&self) -> (String, String) {
        let booking = format!("{}-{}", self.venue.event, self.next);
        (booking, format!("buyer-{}", self.next % 1000))
    }

    fn command(&mut self, words: &[&str]) {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        put_command(&mut self.request, &words);
        self.replies += 1;
    }

    /// `SEATS.RESERVE`
    fn reserve(&mut self) {
        let words = self.reservation();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.command(&words);
    }

    fn reservation(&self) -> Vec<String> {
        let (booking, buyer) = self.ids();
        let (event, section) = (self.venue.event.clone(), self.block.section());
        let mut words = vec!["SEATS.RESERVE".to_owned(), event, section, booking, buyer];
        words.push("SEATS".to_owned());
        let row = self.block.row();
        words.extend(self.block.seats().map(|seat| format!("{row}-{seat}")));
        words
    }

    fn post(&mut self) {
        let words = serde_json::json!(["commit", {"state": [self.reservation()]}]);
        let body = words.to_string();
        if let Some(address) = self.server.http {
            self.request = http::post(address, &body);
        }
    }

    fn key(&self, kind: &str) -> String {
        format!("{kind}:{}:{}", self.venue.event, self.block.section())
    }

    /// The seats as places in the bitfield of the section.
    fn places(&self) -> Vec<String> {
        let numbers = self.block.numbers();
        numbers.map(|number| format!("#{number}")).collect()
    }

    /// Watches the section and looks at the seats.
    fn look(&mut self) {
        self.tries.fetch_add(1, Ordering::Relaxed);
        let states = self.key("seats_bf");
        self.command(&["WATCH", &states]);
        let places = self.places();
        let mut words = vec!["BITFIELD", states.as_str()];
        words.extend(
            places
                .iter()
                .flat_map(|place| ["GET", "u2", place.as_str()]),
        );
        self.command(&words);
    }

    /// The transaction that reserves what was looked at.
    fn change(&mut self) {
        let (states, stats) = (self.key("seats_bf"), self.key("section_stats"));
        let event_stats = format!("event_stats:{}", self.venue.event);
        let (booking, buyer) = self.ids();
        let (more, less) = (
            self.block.count.to_string(),
            format!("-{}", self.block.count),
        );
        self.command(&["MULTI"]);
        let places = self.places();
        let mut words = vec!["BITFIELD", states.as_str()];
        words.extend(
            places
                .iter()
                .flat_map(|place| ["SET", "u2", place.as_str(), "1"]),
        );
        self.command(&words);
        for key in [&stats, &event_stats] {
            self.command(&["HINCRBY", key, "available", &less]);
            self.command(&["HINCRBY", key, "reserved", &more]);
        }
        let owner = format!(
            r#"{{"buyer_id":"{buyer}","booking_id":"{booking}","price":2800,"reserved_at":1759730000}}"#
        );
        let owners = format!("{}:{}", self.key("seat_meta"), self.block.row());
        let seats: Vec<String> = self.block.seats().map(|seat| seat.to_string()).collect();
        let mut words = vec!["HSET", owners.as_str()];
        words.extend(
            seats
                .iter()
                .flat_map(|seat| [seat.as_str(), owner.as_str()]),
        );
        self.command(&words);
        let (key, section) = (format!("booking:{booking}"), self.block.section());
        let seats = seats.join(",");
        let event = &self.venue.event;
        self.command(&[
            "HSET", &key, "event", event, "section", &section, "buyer", &buyer, "row", &owners,
            "seats", &seats, "status", "reserved",
        ]);
        self.command(&["EXEC"]);
    }

    /// Takes replies; `None` if more must come.
    fn hear(&mut self, bytes: &[u8]) -> Result<Option<Said>> {
        let (mut said, replies) = (Said::Fine, &mut self.replies);
        let stage = self.stage;
        self.incoming.take(bytes, |reply| {
            reply.check()?;
            *replies -= 1;
            match (stage, reply) {
                (Stage::Look, Reply::Array(states)) => ensure!(
                    states.iter().all(|state| *state == Reply::Integer(0)),
                    "a seat that nobody else wants is taken"
                ),
                (_, Reply::Nil) => said = Said::Aborted,
                _ => {}
            }
            Ok(())
        })?;
        Ok((self.replies == 0).then_some(said))
    }
}

impl Client for Buyer<'_> {
    fn request(&mut self) -> Option<&[u8]> {
        if self.stage == Stage::Choose {
            self.block = self.venue.block(self.next)?;
            self.stage = match self.way {
                Way::Watch => Stage::Look,
                Way::Resp | Way::Http => Stage::Reserve,
            };
        }
        self.request.clear();
        match (self.stage, self.way) {
            (Stage::Look, _) => self.look(),
            (_, Way::Watch) => self.change(),
            (_, Way::Resp) => self.reserve(),
            (_, Way::Http) => self.post(),
        }
        Some(&self.request)
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Progress> {
        let said = match self.way {
            Way::Http => match self.response.take(bytes)? {
                true if self.response.contains(b"\"error\":") => bail!("a seat was refused"),
                true => Some(Said::Fine),
                false => None,
            },
            Way::Watch | Way::Resp => self.hear(bytes)?,
        };
        Ok(match (said, self.stage) {
            (None, _) => Progress::Waiting,
            (Some(Said::Aborted), _) => {
                self.stage = Stage::Look;
                Progress::Again
            }
            (Some(Said::Fine), Stage::Look) => {
                self.stage = Stage::Reserve;
                Progress::Again
            }
            (Some(Said::Fine), _) => {
                self.next += self.step;
                self.stage = Stage::Choose;
                Progress::Done(self.block.count as u64)
            }
        })
    }
}
