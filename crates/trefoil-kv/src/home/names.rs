//! What the objects and stores of a home are called.
//!
//! ```text
//! registry/<namespace>             the entry of a namespace, or what is left of it when it is deleted
//! ns/<incarnation>/facts           which generation counts, when something is due
//! ns/<incarnation>/own/<epoch>     who may open it; the highest epoch counts
//! changes/<number>                 an entry of the registry was changed
//! due/<minute>/<incarnation>       something of a namespace is due then
//! erase/<incarnation>              a namespace that is being deleted
//! nodes/<node>                     a sign of life of a node
//! nodes/<node>.dead                what this node owned is free
//! cluster/<name>                   what all nodes share
//! audit/<number>                   a record of the audit log, counted down from the greatest number
//! ns/<incarnation>/<generation>/   objects of a generation
//! <incarnation>                    the store of a namespace, with all its generations
//! ```

use trefoil::home::Incarnation;
use trefoil_core::NamespaceId;

use super::node::NodeId;

pub(super) const REGISTRY: &str = "registry/";
pub(super) const CHANGES: &str = "changes/";
pub(super) const DUE: &str = "due/";
pub(super) const ERASE: &str = "erase/";
pub(super) const NODES: &str = "nodes/";
pub(super) const AUDIT: &str = "audit/";
pub(super) const DEAD: &str = ".dead";

const MINUTE_MILLIS: u64 = 60_000;

pub(super) fn entry(id: &NamespaceId) -> String {
    format!("{REGISTRY}{id}")
}

pub(super) fn change(number: u64) -> String {
    format!("{CHANGES}{number:016x}")
}

pub(super) fn facts(incarnation: Incarnation) -> String {
    format!("ns/{:032x}/facts", incarnation.0)
}

/// Returns what the names of all owners of a namespace begin with.
pub(super) fn owners(incarnation: Incarnation) -> String {
    format!("ns/{:032x}/own/", incarnation.0)
}

pub(super) fn owner(incarnation: Incarnation, epoch: u64) -> String {
    format!("{}{epoch:016x}", owners(incarnation))
}

/// Returns what the names of all objects of a namespace begin with.
pub(super) fn namespace(incarnation: Incarnation) -> String {
    format!("ns/{:032x}/", incarnation.0)
}

pub(super) fn due(millis: u64, incarnation: Incarnation) -> String {
    let minute = millis / MINUTE_MILLIS;
    format!("{DUE}{minute:016x}/{:032x}", incarnation.0)
}

pub(super) fn erase(incarnation: Incarnation) -> String {
    format!("{ERASE}{:032x}", incarnation.0)
}

pub(super) fn node(id: NodeId) -> String {
    format!("{NODES}{:032x}", id.0)
}

pub(super) fn dead(id: NodeId) -> String {
    format!("{NODES}{:032x}{DEAD}", id.0)
}

pub(super) fn shared(name: &str) -> String {
    format!("cluster/{name}")
}

pub(super) fn audit(number: u64) -> String {
    format!("{AUDIT}{:016x}", u64::MAX - number)
}

/// Returns the number of a record of the audit log.
pub(super) fn audit_number(name: &str) -> u64 {
    let counted = last_number(name).and_then(|number| u64::try_from(number).ok());
    counted.map_or(0, |counted| u64::MAX - counted)
}

pub(super) fn store(incarnation: Incarnation) -> String {
    format!("{:032x}", incarnation.0)
}

/// Returns the number in hexadecimal at the end of a name.
pub(super) fn last_number(name: &str) -> Option<u128> {
    u128::from_str_radix(name.rsplit('/').next()?, 16).ok()
}
