//! What processes that share a home know of each other: they are the nodes of a cluster.

use std::fmt::Debug;

use bytes::Bytes;
use trefoil_core::Result;

/// The nodes that share a home, as one of them sees them. Any call may wait for a network.
pub trait Cluster: Send + Sync + Debug {
    /// Tells the other nodes where they reach this one. After an error they learn it later.
    fn announce(&self, address: &str) -> Result<()>;

    /// Returns bytes that are kept for all nodes under a name, of letters, digits and `-`. They are
    /// made by whoever asks first, and stay what they are. If they were damaged, that is
    /// [`Error::Damaged`](trefoil_core::Error::Damaged); they are never made a second time.
    fn shared_bytes(&self, name: &str, make: &mut dyn FnMut() -> Result<Vec<u8>>) -> Result<Bytes>;
}
