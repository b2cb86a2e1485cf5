//! What is done to the cluster in a round: faults that begin and end at times of their own.

use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::nodes::{NODES, Nodes};

/// The most faults of one round: the store has one, and each node.
pub(super) const AT_ONCE_MAX: usize = 1 + NODES;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// `SIGKILL` of a node; its disk may be lost, too.
    Kill,
    /// `SIGTERM`: the operator stops it.
    Stop,
    /// `SIGSTOP` and `SIGCONT`: it wakes up long after others went on.
    Pause,
    /// What it sends to the store arrives late.
    Hold,
    /// It cannot reach the store.
    Cut,
    /// Its wall clock jumps.
    Clock,
    /// `SIGKILL` of the store.
    KillStore,
}

const KINDS: [Kind; 7] = [
    Kind::Kill,
    Kind::Stop,
    Kind::Pause,
    Kind::Hold,
    Kind::Cut,
    Kind::Clock,
    Kind::KillStore,
];

/// One of them.
#[derive(Debug)]
pub(super) struct Fault {
    kind: Kind,
    node: usize,
    begins: Duration,
    ends: Duration,
    /// Of `Kill`: with what its machine has.
    loses_disk: bool,
    /// Of `Clock`: by how much it is off, in milliseconds.
    jump: i64,
}

/// Deals out all kinds before one comes again.
pub(super) struct Deck {
    random: Rng,
    left: Vec<Kind>,
}

impl Deck {
    pub(super) fn new(random: Rng) -> Self {
        Self {
            random,
            left: Vec::new(),
        }
    }

    /// At most so many faults, none of which is of a node that has one.
    pub(super) fn deal(&mut self, most: usize) -> Vec<Fault> {
        let mut nodes: Vec<usize> = (0..NODES).collect();
        self.random.shuffle(&mut nodes);
        let mut faults: Vec<Fault> = Vec::new();
        while faults.len() < most {
            if self.left.is_empty() {
                if !faults.is_empty() {
                    break;
                }
                self.left = KINDS.into();
                self.random.shuffle(&mut self.left);
            }
            let is_of_store = self.left.last() == Some(&Kind::KillStore);
            let node = if is_of_store { Some(0) } else { nodes.pop() };
            let (Some(node), Some(kind)) = (node, self.left.last().copied()) else {
                break;
            };
            self.left.pop();
            let fault = self.fault(kind, node);
            faults.push(fault);
        }
        faults
    }

    fn fault(&mut self, kind: Kind, node: usize) -> Fault {
        // Long enough to lose what it owns, or not, except for what a fault's nature decides.
        let lasts = match kind {
            Kind::Stop => 0..1000,
            Kind::KillStore => 0..4000,
            Kind::Pause | Kind::Hold | Kind::Cut => 1000..13_000,
            _ => 0..10_000,
        };
        let begins = Duration::from_millis(self.random.u64(..2000));
        let far = self.random.i64(500..90_000);
        Fault {
            kind,
            node,
            begins,
            ends: begins + Duration::from_millis(self.random.u64(lasts)),
            loses_disk: self.random.bool(),
            jump: if self.random.bool() { far } else { -far },
        }
    }
}

/// Lets all of them happen.
pub(super) fn inflict(nodes: &mut Nodes, faults: &[Fault]) {
    let started = Instant::now();
    let begin = faults.iter().map(|fault| (fault.begins, fault, true));
    let end = faults.iter().map(|fault| (fault.ends, fault, false));
    let mut steps: Vec<_> = begin.chain(end).collect();
    steps.sort_by_key(|(at, _, begins)| (*at, !begins));
    for (at, fault, begins) in steps {
        thread::sleep(at.saturating_sub(started.elapsed()));
        match begins {
            true => fault.begin(nodes),
            false => fault.end(nodes),
        }
    }
    // A node can start only if the store is there, so those come last.
    for number in 0..NODES {
        if nodes.all[number].server.is_none() {
            nodes.launch(number);
        }
    }
}

impl Fault {
    fn begin(&self, nodes: &mut Nodes) {
        match self.kind {
            Kind::Kill => nodes.kill(self.node, self.loses_disk),
            Kind::Stop => {
                nodes.stop(self.node);
            }
            Kind::Pause => nodes.server(self.node).signal("STOP"),
            Kind::Hold => nodes.all[self.node].proxy.hold(),
            Kind::Cut => nodes.all[self.node].proxy.cut(),
            Kind::Clock => nodes.all[self.node].clock.jump(self.jump),
            Kind::KillStore => nodes.service.kill(),
        }
    }

    fn end(&self, nodes: &mut Nodes) {
        match self.kind {
            Kind::Kill | Kind::Stop => {}
            Kind::Pause => nodes.server(self.node).signal("CONT"),
            Kind::Hold | Kind::Cut => nodes.all[self.node].proxy.open(),
            Kind::Clock => nodes.all[self.node].clock.jump(0),
            Kind::KillStore => nodes.service.start_again(),
        }
    }
}
