//! How much memory the replies of commands take while they are made, and how much they may.

use std::cell::Cell;
use std::fmt::Debug;

use trefoil_core::{Error, Result};

use crate::reply::Reply;

/// Who says how much memory replies may take.
pub trait Allowance: Debug + Send + Sync {
    /// Allows replies to take this many bytes in all, or says why not.
    fn allow(&self, bytes: usize) -> Result<()>;
}

/// In which steps more is asked for.
const STEP_BYTES: usize = 64 * 1024;

/// Counts what the replies of some commands take.
#[derive(Debug)]
pub struct Meter<'a> {
    held: Cell<usize>,
    allowed: Cell<usize>,
    /// Who is asked for more; without one there is no more.
    allowance: Option<&'a dyn Allowance>,
    is_exceeded: Cell<bool>,
}

impl<'a> Meter<'a> {
    /// Allows this many bytes.
    pub fn within(bytes_max: usize) -> Self {
        Self {
            held: Cell::new(0),
            allowed: Cell::new(bytes_max),
            allowance: None,
            is_exceeded: Cell::new(false),
        }
    }

    /// Allows what `allowance` does; everything if there is none.
    pub fn asking(allowance: Option<&'a dyn Allowance>) -> Self {
        let allowed = if allowance.is_some() { 0 } else { usize::MAX };
        Self {
            allowance,
            ..Self::within(allowed)
        }
    }

    /// Returns whether more was needed than is allowed.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    /// Counts bytes that are about to be held, or refuses.
    pub(crate) fn hold(&self, bytes: usize) -> Result<()> {
        let held = self.held.get().saturating_add(bytes);
        if held > self.allowed.get() {
            let wanted = held.checked_next_multiple_of(STEP_BYTES).unwrap_or(held);
            let allowed = match self.allowance {
                Some(allowance) => allowance.allow(wanted),
                None => Err(Error::Overloaded(format!(
                    "replies may take {} bytes of memory",
                    self.allowed.get()
                ))),
            };
            if let Err(error) = allowed {
                self.is_exceeded.set(true);
                return Err(error);
            }
            self.allowed.set(wanted);
        }
        self.held.set(held);
        Ok(())
    }

    /// Runs a command and counts its reply, whatever else it held meanwhile.
    pub(crate) fn count<E: From<Error>>(
        &self,
        run: impl FnOnce() -> Result<Reply, E>,
    ) -> Result<Reply, E> {
        let before = self.held.get();
        let reply = run();
        self.held.set(before);
        let reply = reply?;
        self.hold(reply.size())?;
        Ok(reply)
    }
}

/// What has a size in memory.
pub(crate) trait Weighed {
    /// Returns about how many bytes it takes.
    fn weight(&self) -> usize;
}

impl Weighed for Reply {
    fn weight(&self) -> usize {
        self.size()
    }
}

impl Weighed for bytes::Bytes {
    fn weight(&self) -> usize {
        size_of::<Reply>() + self.len()
    }
}

impl Weighed for f64 {
    fn weight(&self) -> usize {
        size_of::<Reply>()
    }
}

impl<A: Weighed, B: Weighed> Weighed for (A, B) {
    fn weight(&self) -> usize {
        self.0.weight() + self.1.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct UpTo(usize);

    impl Allowance for UpTo {
        fn allow(&self, bytes: usize) -> Result<()> {
            match bytes <= self.0 {
                true => Ok(()),
                false => Err(Error::Overloaded("no more".to_owned())),
            }
        }
    }

    #[test]
    fn replies_add_up_and_what_was_held_for_one_does_not() {
        let allowance = UpTo(4 * STEP_BYTES);
        let meter = Meter::asking(Some(&allowance));
        let run = |held: usize, reply: usize| {
            meter.count::<Error>(|| {
                meter.hold(held)?;
                Ok(Reply::bulk(vec![0; reply]))
            })
        };
        for _ in 0..3 {
            assert!(run(STEP_BYTES, 10).is_ok());
        }
        assert!(run(0, 3 * STEP_BYTES).is_ok());
        assert!(!meter.is_exceeded());
        assert!(run(0, STEP_BYTES).is_err());
        assert!(meter.is_exceeded());
        assert!(Meter::asking(None).hold(usize::MAX).is_ok());
        assert!(Meter::within(10).hold(11).is_err());
    }
}
