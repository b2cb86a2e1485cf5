//! A bound on the memory that request bodies take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Failure, Result};

/// Bytes that may be held in memory, and how many are.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    used: Arc<AtomicUsize>,
    bytes_max: usize,
}

/// A part of the budget; it goes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            used: Arc::default(),
            bytes_max,
        }
    }

    /// A reservation of nothing, which can grow.
    pub(crate) fn reserve_none(&self) -> Reservation {
        Reservation {
            budget: self.clone(),
            bytes: 0,
        }
    }
}

impl Reservation {
    /// Makes this reservation `bytes` large in all, or refuses without waiting.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.saturating_sub(self.bytes);
        let before = self.budget.used.fetch_add(more, Ordering::Relaxed);
        if before + more > self.budget.bytes_max {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
            let limit = self.budget.bytes_max;
            return Err(Failure::overloaded(format!(
                "overloaded: large request bodies together may take {limit} bytes of memory"
            )));
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_reserved_again() {
        let budget = Budget::new(100);
        let mut first = budget.reserve_none();
        let mut second = budget.reserve_none();
        assert!(first.grow_to(60).is_ok());
        assert!(second.grow_to(60).is_err());
        assert!(second.grow_to(40).is_ok());
        drop(first);
        assert!(second.grow_to(100).is_ok());
        assert!(second.grow_to(101).is_err());
    }
}
