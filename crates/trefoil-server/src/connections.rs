//! Who is connected: how many by protocol, and who has yet to show who it is.
//!
//! Each protocol has a part of all connections to itself, so that none keeps the others away. When
//! there is no room, the oldest stranger has to go: a connection that has not authenticated, or has
//! asked for nothing where that is not needed. If there is none, a few more HTTP connections are
//! let in for a moment, to ask for `/health` and its like.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::budget::{Budget, Share};
use crate::error::{Failure, Result};
use crate::limits::{PROTOCOL_FRACTION, SURPLUS_CONNECTIONS_MAX};

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    Http,
    Grpc,
    Resp,
}

impl Protocol {
    /// All of them.
    pub(crate) const EVERY: [Self; 3] = [Self::Http, Self::Grpc, Self::Resp];

    /// Returns what metrics and the log call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Resp => "resp",
        }
    }
}

/// The connections of a protocol, in numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectionCounts {
    /// How many there are, besides those beyond the limit.
    pub(crate) open: usize,
    /// How many were let in since the server began.
    pub(crate) accepted: u64,
    /// How many were not, or had to make room for others.
    pub(crate) refused: u64,
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Connections {
    budget: Arc<Budget>,
    max: usize,
    present: Mutex<Present>,
}

#[derive(Debug, Default)]
struct Present {
    /// How many there have been.
    n_guests: u64,
    /// Those of each protocol.
    counts: [ConnectionCounts; Protocol::EVERY.len()],
    /// Those that have yet to show who they are, the oldest first.
    strangers: BTreeMap<u64, (Protocol, CancellationToken)>,
    /// Those beyond the limit, the oldest first.
    surplus: BTreeMap<u64, CancellationToken>,
}

/// A connection, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Guest {
    connections: Arc<Connections>,
    id: u64,
    protocol: Protocol,
    is_known: AtomicBool,
    /// Whether there was no room for it, so that it may ask for little.
    pub(crate) is_surplus: bool,
    /// Whether it is another node's, which sends the requests of many clients over it.
    pub(crate) is_peer: bool,
    /// Where it comes from, if that is known and not another node.
    pub(crate) address: Option<SocketAddr>,
    /// Cancelled when it has to make room for another one.
    pub(crate) must_leave: CancellationToken,
    /// What it may take of the memory for clients.
    pub(crate) share: Share,
}

impl Connections {
    pub(crate) fn new(connections_max: usize, budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            max: connections_max.min(budget.connections_max()),
            budget,
            present: Mutex::default(),
        })
    }

    /// Returns how many there may be.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.counts().iter().map(|counts| counts.open).sum()
    }

    /// Returns how many there are of each protocol. Those beyond the limit are of HTTP.
    pub(crate) fn counts(&self) -> [ConnectionCounts; Protocol::EVERY.len()] {
        let present = self.present.lock();
        let mut counts = present.counts;
        counts[Protocol::Http as usize].open += present.surplus.len();
        counts
    }

    /// Lets a connection in; `None` if there is no room for it.
    pub(crate) fn enter(self: &Arc<Self>, protocol: Protocol) -> Option<Guest> {
        let must_leave = CancellationToken::new();
        let mut present = self.present.lock();
        present.n_guests += 1;
        let id = present.n_guests;
        let has_room = present.has_room(protocol, self.max)
            || (present.evict(protocol, self.max) && present.has_room(protocol, self.max));
        let counts = &mut present.counts[protocol as usize];
        let share = match has_room || protocol == Protocol::Http {
            true => self.budget.connect(),
            false => None,
        };
        let Some(share) = share else {
            counts.refused += 1;
            return None;
        };
        counts.accepted += 1;
        if has_room {
            counts.open += 1;
            let stranger = (protocol, must_leave.clone());
            present.strangers.insert(id, stranger);
        } else {
            if present.surplus.len() >= SURPLUS_CONNECTIONS_MAX
                && let Some((_, oldest)) = present.surplus.pop_first()
            {
                oldest.cancel();
            }
            present.surplus.insert(id, must_leave.clone());
        }
        drop(present);
        Some(Guest {
            connections: Arc::clone(self),
            id,
            protocol,
            is_known: AtomicBool::new(false),
            is_surplus: !has_room,
            is_peer: false,
            address: None,
            must_leave,
            share,
        })
    }
}

impl Connections {
    /// Lets the connection of a peer in, which has shown that it is one; `None` if there is no room.
    pub(crate) fn enter_peer(self: &Arc<Self>, protocol: Protocol) -> Option<Guest> {
        let mut guest = self.enter(protocol).filter(|guest| !guest.is_surplus)?;
        guest.make_known();
        guest.is_peer = true;
        Some(guest)
    }
}

impl Present {
    /// Returns whether there is room for one more, besides what belongs to the others.
    fn has_room(&self, protocol: Protocol, max: usize) -> bool {
        let own = max / PROTOCOL_FRACTION;
        let others = Protocol::EVERY.iter().filter(|other| **other != protocol);
        let others = others.map(|other| self.counts[*other as usize].open.max(own));
        self.counts[protocol as usize].open + others.sum::<usize>() < max
    }

    /// Tells the oldest stranger to go that stands in the way. Returns whether there was one.
    fn evict(&mut self, protocol: Protocol, max: usize) -> bool {
        let own = max / PROTOCOL_FRACTION;
        let is_in_the_way =
            |other: Protocol| other == protocol || self.counts[other as usize].open > own;
        let mut strangers = self.strangers.iter();
        let oldest = strangers.find(|(_, (other, _))| is_in_the_way(*other));
        let Some(id) = oldest.map(|(id, _)| *id) else {
            return false;
        };
        if let Some((other, must_leave)) = self.strangers.remove(&id) {
            self.counts[other as usize].open -= 1;
            self.counts[other as usize].refused += 1;
            must_leave.cancel();
        }
        true
    }
}

impl Guest {
    /// Notes where the connection comes from.
    pub(crate) fn at_address(mut self, address: Option<SocketAddr>) -> Self {
        self.address = address;
        self
    }

    /// Returns whether the client has shown who it is.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Returns what a request may take of the memory for clients: what its connection may, or a share
    /// of its own if it is one of many that a peer sends on.
    pub(crate) fn request_share(&self) -> Result<Share> {
        if !self.is_peer {
            return Ok(self.share.clone());
        }
        let share = self.connections.budget.connect();
        share.ok_or_else(|| {
            Failure::overloaded("overloaded: there is no memory for one more client")
        })
    }

    /// The client has shown who it is, or need not: it does not have to go any more.
    pub(crate) fn make_known(&self) {
        if self.is_known() {
            return;
        }
        let mut present = self.connections.present.lock();
        if present.strangers.remove(&self.id).is_some() {
            self.is_known.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut present = self.connections.present.lock();
        if self.is_surplus {
            present.surplus.remove(&self.id);
            return;
        }
        // One that had to go is not counted any more.
        let is_counted = self.is_known() || present.strangers.remove(&self.id).is_some();
        if is_counted {
            present.counts[self.protocol as usize].open -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(max: usize) -> Arc<Connections> {
        Connections::new(max, Budget::new(1 << 30))
    }

    fn known(connections: &Arc<Connections>, protocol: Protocol) -> Option<Guest> {
        let guest = connections.enter(protocol)?;
        guest.make_known();
        Some(guest)
    }

    #[test]
    fn every_protocol_has_room_whatever_the_others_do() {
        let connections = connections(80);
        let mut resp = Vec::new();
        while let Some(guest) = known(&connections, Protocol::Resp) {
            resp.push(guest);
        }
        assert_eq!(resp.len(), 60);
        let enter = |protocol| known(&connections, protocol).filter(|guest| !guest.is_surplus);
        let http: Vec<Guest> = std::iter::from_fn(|| enter(Protocol::Http)).collect();
        let grpc: Vec<Guest> = std::iter::from_fn(|| enter(Protocol::Grpc)).collect();
        assert_eq!((http.len(), grpc.len()), (10, 10));
        assert_eq!(connections.count(), 80);
        drop((resp, http));
        let http: Vec<Guest> = std::iter::from_fn(|| enter(Protocol::Http)).collect();
        assert_eq!(http.len(), 60);
        drop((http, grpc));
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn the_oldest_stranger_makes_room_and_nobody_who_is_known() {
        let connections = connections(8);
        let guests: Vec<Guest> = (0..6)
            .map(|_| connections.enter(Protocol::Resp).unwrap())
            .collect();
        guests[0].make_known();
        let new = connections.enter(Protocol::Resp).unwrap();
        let gone = |guest: &Guest| guest.must_leave.is_cancelled();
        assert_eq!(
            guests.iter().map(gone).collect::<Vec<_>>(),
            [false, true, false, false, false, false]
        );
        // Who was told to go does not come back, and is counted once.
        guests[1].make_known();
        assert!(!guests[1].is_known());
        drop(new);
        drop(guests);
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn a_few_more_may_ask_for_health() {
        let connections = connections(1);
        let only = known(&connections, Protocol::Http).unwrap();
        assert!(!only.is_surplus);
        assert!(connections.enter(Protocol::Resp).is_none());
        let more: Vec<Guest> = (0..SURPLUS_CONNECTIONS_MAX + 1)
            .map(|_| connections.enter(Protocol::Http).unwrap())
            .collect();
        assert!(more.iter().all(|guest| guest.is_surplus));
        assert!(more[0].must_leave.is_cancelled());
        assert!(!more[1].must_leave.is_cancelled());
    }
}
