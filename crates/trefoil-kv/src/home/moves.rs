//! Where namespaces should be: whether this node should open one, who has it after this one, and how
//! many this one should give away.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use trefoil::Histogram;
use trefoil::home::{ClusterStats, Incarnation};
use trefoil_core::{Error, NamespaceId, Result};

use super::node::{Gift, NodeId, NodeWord};
use super::ownership::Holder;
use super::placement::{NodeCandidate, choose, choose_poorer, surplus};
use super::{HomeShared, elsewhere};

/// After this long a node says itself that it has what it was given.
const SETTLED_AFTER: Duration = Duration::from_secs(6);
/// How many gifts others are told of.
const GIFTS_TOLD: usize = 64;
/// How many namespaces are given away at a time.
const GIVEN_AT_ONCE: u64 = 4;

/// What this node has handed to others of late, and what others have handed to it.
#[derive(Debug, Default)]
pub(super) struct Moves {
    given: Mutex<VecDeque<GivenNamespace>>,
    /// The last gift of each node.
    taken: Mutex<HashMap<NodeId, u64>>,
    n_for_stop: AtomicU64,
    n_for_share: AtomicU64,
    n_taken_over: AtomicU64,
    recoveries: Histogram,
}

impl Moves {
    /// Notes that a namespace is open here, so long after its last owner was known to be dead.
    pub(super) fn note_taken_over(&self, elapsed: Duration) {
        self.n_taken_over.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.recoveries.record(nanos);
    }

    /// Returns what was counted.
    pub(super) fn stats(&self) -> ClusterStats {
        ClusterStats {
            moved_for_stop: self.n_for_stop.load(Ordering::Relaxed),
            moved_for_share: self.n_for_share.load(Ordering::Relaxed),
            taken_over: self.n_taken_over.load(Ordering::Relaxed),
            recoveries: self.recoveries.snapshot(),
            ..ClusterStats::default()
        }
    }
}

#[derive(Debug)]
struct GivenNamespace {
    gift: Gift,
    /// When, by the steady clock.
    since: Duration,
}

impl HomeShared {
    /// Returns what others are told of this node.
    pub(super) fn told(&self) -> NodeWord {
        let n_owned = self.held.lock().len() as u64;
        let word = self.word.lock().clone();
        let given = self.recently_given();
        let gifts = given.iter().rev().take(GIFTS_TOLD);
        NodeWord {
            n_owned,
            gifts: match word.is_leaving {
                // Whoever wants something of them finds them.
                true => Vec::new(),
                false => gifts.cloned().collect(),
            },
            ..word
        }
    }

    fn recently_given(&self) -> Vec<Gift> {
        let now = self.clock.steady();
        let mut given = self.moves.given.lock();
        while given
            .front()
            .is_some_and(|first| now.saturating_sub(first.since) > SETTLED_AFTER)
        {
            given.pop_front();
        }
        given.iter().map(|given| given.gift.clone()).collect()
    }

    /// Notes that a namespace was handed to another node.
    pub(super) fn note_moved(&self, id: &NamespaceId, successor: Option<NodeId>) {
        let Some(to) = successor else {
            return;
        };
        let counter = match self.word.lock().is_leaving {
            true => &self.moves.n_for_stop,
            false => &self.moves.n_for_share,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let (now, wall) = (self.clock.steady(), self.clock.now().millis());
        let mut given = self.moves.given.lock();
        let after = given.back().map_or(0, |last| last.gift.at + 1);
        let gift = Gift {
            namespace: id.to_string(),
            to: to.0,
            at: wall.max(after),
        };
        given.push_back(GivenNamespace { gift, since: now });
    }

    /// Returns the namespaces that other nodes say they have handed to this one.
    pub(super) fn gifts_of_others(&self) -> Vec<NamespaceId> {
        let own = self.node().id;
        let peers = self.peers.all();
        let mut taken = self.moves.taken.lock();
        taken.retain(|id, _| peers.iter().any(|peer| peer.id == *id));
        let mut found = Vec::new();
        for peer in peers {
            let last = taken.entry(peer.id).or_default();
            let before = *last;
            for gift in peer.word.gifts.iter().filter(|gift| gift.at > before) {
                *last = gift.at.max(*last);
                if gift.to == own.0
                    && let Ok(id) = NamespaceId::new(&gift.namespace)
                {
                    found.push(id);
                }
            }
        }
        found
    }

    /// Returns the other nodes that can be given something.
    pub(super) fn others(&self) -> Vec<NodeCandidate> {
        let given = self.recently_given();
        let n_given = |id: NodeId| given.iter().filter(|gift| gift.to == id.0).count() as u64;
        let peers = self.peers.all().into_iter();
        let peers = peers.filter(|peer| peer.seems_alive && !peer.word.is_leaving);
        let candidate = |peer: super::peers::SeenPeer| {
            Some(NodeCandidate {
                id: peer.id,
                address: peer.word.address?,
                n_owned: peer.word.n_owned + n_given(peer.id),
            })
        };
        peers.filter_map(candidate).collect()
    }

    /// Returns this node, if it can be given something.
    fn own_candidate(&self) -> Option<NodeCandidate> {
        let n_owned = self.held.lock().len() as u64;
        let node = self.node();
        let word = self.word.lock();
        let can_take = !word.is_leaving && !node.store_clock.is_off();
        Some(NodeCandidate {
            id: node.id,
            address: word.address.clone().filter(|_| can_take)?,
            n_owned,
        })
    }

    /// Returns an error with the address of another node if that one has a namespace, or should have
    /// it next.
    pub(super) fn check_here(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<()> {
        let others = self.others();
        // Who cannot be reached by others is sent nothing by them, either.
        if others.is_empty() || self.word.lock().address.is_none() {
            return Ok(());
        }
        let own = self.node().id;
        let successor = match self.owners(incarnation, own).holder()? {
            Holder::Owner(owner) if owner == own => return Ok(()),
            Holder::Owner(owner) => match self.peers.address(owner) {
                Some(address) => return Err(elsewhere(id, address)),
                None => None,
            },
            Holder::Successor(successor) => Some(successor),
            Holder::Nobody => None,
        };
        let mut candidates = others;
        candidates.extend(self.own_candidate());
        let successor = candidates.iter().find(|node| Some(node.id) == successor);
        match successor.or_else(|| choose(incarnation, &candidates)) {
            Some(chosen) if chosen.id != own => Err(elsewhere(id, Some(chosen.address.clone()))),
            _ => Ok(()),
        }
    }

    /// Returns an error if this node may own nothing more: with the address of another node if it is
    /// being stopped, or its clock is off.
    pub(super) fn check_staying(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<()> {
        let node = self.node();
        let is_clock_off = node.store_clock.is_off();
        if !self.word.lock().is_leaving && !is_clock_off {
            return Ok(());
        }
        match choose(incarnation, &self.others()) {
            Some(chosen) => Err(elsewhere(id, Some(chosen.address.clone()))),
            None if is_clock_off => Err(Error::Closed(node.store_clock.explain())),
            None => Ok(()),
        }
    }

    /// Returns the node that should have a namespace after this one.
    pub(super) fn choose_successor(&self, incarnation: Incarnation) -> Option<NodeCandidate> {
        let others = self.others();
        match self.own_candidate() {
            Some(own) => choose_poorer(incarnation, own.n_owned, &others).cloned(),
            None => choose(incarnation, &others).cloned(),
        }
    }

    /// Returns how many namespaces this node should give away now.
    pub(super) fn n_to_give(&self) -> usize {
        let node = self.node();
        if !node.has_lease() {
            return 0;
        }
        let others = self.others();
        let n_to_give = match self.own_candidate() {
            Some(own) => surplus(own.n_owned, &others),
            // Its next owner must not judge deadlines by a clock that is off.
            None if node.store_clock.is_off() && !others.is_empty() => GIVEN_AT_ONCE,
            None => 0,
        };
        n_to_give.min(GIVEN_AT_ONCE) as usize
    }
}
