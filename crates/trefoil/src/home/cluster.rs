//! What processes that share a home know of each other: they are the nodes of a cluster.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use trefoil_core::{NamespaceId, Result, Timestamp};

use crate::HistogramSnapshot;

/// How a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It gave a sign of life not long ago.
    Alive,
    /// It is being stopped, and hands its namespaces to the others.
    Leaving,
    /// It may be dead.
    Silent,
}

/// A node of a cluster, as another one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterMember {
    /// Tells nodes apart. A node that was taken for dead goes on as another one.
    pub id: String,
    /// Where others reach it, if they do.
    pub address: Option<String>,
    /// The release that it runs.
    pub version: String,
    /// When its process began, by its own clock.
    pub started: Timestamp,
    /// How it is.
    pub state: MemberState,
    /// How many namespaces it has.
    pub n_owned: u64,
    /// Whether it is the node that was asked.
    pub is_this: bool,
}

/// What a node has counted since its start.
#[derive(Debug, Clone, Default)]
pub struct ClusterStats {
    /// For how long it may answer without looking whether it was declared dead.
    pub lease_left: Duration,
    /// By how many milliseconds its clock is ahead of that of the store, at least; less than 0 if it is
    /// behind.
    pub clock_ahead_millis: i64,
    /// Whether that is so much that it owns nothing more.
    pub is_clock_off: bool,
    /// Namespaces that it handed to others because it was stopped.
    pub moved_for_stop: u64,
    /// Namespaces that it handed to others because it had more than its share.
    pub moved_for_share: u64,
    /// Namespaces that it took over from nodes that were dead.
    pub taken_over: u64,
    /// How long that took each time, from when the death was known until the namespace was open, in
    /// nanoseconds.
    pub recoveries: HistogramSnapshot,
    /// What was asked of the store.
    pub requests: RequestCounts,
}

/// What a store was asked for since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests that write: whole objects, parts of them, copies.
    pub puts: u64,
    /// Requests that read an object, a part of one, or what is known about it.
    pub gets: u64,
    /// Requests that list names.
    pub lists: u64,
    /// Requests that delete.
    pub deletes: u64,
    /// The bytes of objects that were sent.
    pub bytes_written: u64,
    /// The bytes of objects that were asked for.
    pub bytes_read: u64,
    /// Requests that failed, other than by a condition or because there is no such object.
    pub failures: u64,
}

/// The nodes that share a home, as one of them sees them. Any call may wait for a network, except where
/// it says otherwise.
pub trait Cluster: Send + Sync + Debug {
    /// Tells the other nodes where they reach this one. After an error they learn it later.
    fn announce(&self, address: &str) -> Result<()>;

    /// Returns bytes that are kept for all nodes under a name, of letters, digits and `-`. They are
    /// made by whoever asks first, and stay what they are. If they were damaged, that is
    /// [`Error::Damaged`](trefoil_core::Error::Damaged); they are never made a second time.
    fn shared_bytes(&self, name: &str, make: &mut dyn FnMut() -> Result<Vec<u8>>) -> Result<Bytes>;

    /// Returns the nodes that are not known to be dead, this one first. Does not wait.
    fn members(&self) -> Vec<ClusterMember>;

    /// Returns the id of the node that has a namespace; `None` if nobody has it.
    fn owner(&self, id: &NamespaceId) -> Result<Option<String>>;

    /// Returns what was counted. Does not wait.
    fn stats(&self) -> ClusterStats;

    /// Tells the other nodes that this one is being stopped. From then on it claims nothing that another
    /// one can have. Returns whether there is another one to hand namespaces to.
    fn leave(&self) -> Result<bool>;

    /// Returns how many namespaces this node should hand to others now, because it has more than its
    /// share: a few at a time. Does not wait.
    fn surplus(&self) -> usize;

    /// Returns the namespaces that others have handed to this node since the last call, because they had
    /// more than their share. Does not wait.
    fn gifts(&self) -> Vec<NamespaceId>;
}
