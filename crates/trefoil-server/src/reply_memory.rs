//! Memory for replies while they are made: taken before anything is written, and as they grow.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil::{Allowance, Error};

use crate::budget::{Reservation, Share};

/// The memory for clients that replies take. The code that makes them asks for more through a clone.
#[derive(Debug)]
pub(crate) struct ReplyMemory(Arc<Asked>);

/// `None` once nobody wants the replies.
#[derive(Debug)]
struct Asked(Mutex<Option<Reservation>>);

impl ReplyMemory {
    /// Returns a reservation of nothing yet.
    pub(crate) fn new(share: &Share) -> Self {
        Self(Arc::new(Asked(Mutex::new(Some(share.for_reply())))))
    }

    /// Returns what the code that makes the replies asks.
    pub(crate) fn allowance(&self) -> Arc<dyn Allowance> {
        Arc::clone(&self.0) as Arc<dyn Allowance>
    }

    /// What became of the replies, with the memory that it takes. It was not refused when it could
    /// have been, so it is not refused now.
    pub(crate) fn hold(&self, bytes: Vec<u8>) -> Bytes {
        match self.take() {
            Some(mut reservation) => {
                reservation.shrink_to(bytes.len());
                reservation.grow_anyway(bytes.len());
                reservation.hold(bytes)
            }
            None => bytes.into(),
        }
    }

    fn take(&self) -> Option<Reservation> {
        self.0.0.lock().take()
    }
}

impl Drop for ReplyMemory {
    fn drop(&mut self) {
        self.take();
    }
}

impl Allowance for Asked {
    fn allow(&self, bytes: usize) -> Result<(), Error> {
        let gone = || Error::Closed("nobody waits for the reply any more".to_owned());
        let mut reservation = self.0.lock();
        let reservation = reservation.as_mut().ok_or_else(gone)?;
        reservation.demand(bytes)
    }
}
