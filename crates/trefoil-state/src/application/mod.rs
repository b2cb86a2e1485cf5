//! Applications: commands beside those of Redis, and what falls due.
//!
//! ```text
//! timers     timers: set and cleared by commands, run when they are due
//! keys       what the commands of applications read and change
//! ```
//!
//! A command of an application reads and changes keys as the commands of Redis do, may append
//! events, and may set timers. All of it is part of the commit that the command is part of. A timer
//! that is due is run by a commit of the background, in the same way.

mod keys;
mod timers;

pub use keys::HashReader;
pub use timers::SetTimer;

use bytes::Bytes;

use crate::command::CommandSpec;
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::layout::FIELDS_EXPIRE;

/// Commands beside those of Redis, and the timers that they set.
#[derive(Debug)]
pub struct Application {
    name: &'static str,
    summary: &'static str,
    commands: &'static [CommandSpec],
    timers: &'static [&'static Timer],
}

impl Application {
    /// Returns an application. Its name is in lower case, and the names of its commands begin with
    /// it and a dot, as in `seats.reserve`. The summary is what `COMMAND DOCS` tells of those that are
    /// not [described](CommandSpec::described).
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        commands: &'static [CommandSpec],
        timers: &'static [&'static Timer],
    ) -> Self {
        Self {
            name,
            summary,
            commands,
            timers,
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns a line on its commands.
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// Returns the commands.
    pub fn commands(&self) -> &'static [CommandSpec] {
        self.commands
    }

    /// Returns the timers.
    pub fn timers(&self) -> &'static [&'static Timer] {
        self.timers
    }
}

/// What is done when a timer is due.
type Ring = fn(&mut Keyspace<'_>, &Bytes, u64) -> Result<()>;

/// A kind of timer: what is done under a key when its time has come.
#[derive(Debug)]
pub struct Timer {
    kind: u8,
    ring: Ring,
}

impl Timer {
    /// The lowest kind. Below it are the expiries of keys and of fields.
    pub(crate) const KIND_MIN: u8 = FIELDS_EXPIRE + 1;

    /// Returns a kind of timer, and what it does: it gets the key and the time that the timer was
    /// set for.
    ///
    /// The kind is a number that is stored with each timer, so it must stay the same. No two timers
    /// of a database have the same one. Those below 16 are for applications that come with Trefoil.
    ///
    /// What it does should be little, as writers wait for it. If there is more to do, it sets a
    /// timer for the rest. It must not refuse: a failure takes everything back, is logged, and the
    /// timer is run again a second later.
    pub const fn new(kind: u8, ring: Ring) -> Self {
        Self { kind, ring }
    }

    /// Returns the number that stands for it in what is stored.
    pub fn kind(&self) -> u8 {
        self.kind
    }
}
