//! The state as lines that make it again somewhere else: commands, tracked positions and timers.
//!
//! [`export`] writes them, of one commit. [`import`] takes them, and no command but those that `export`
//! uses.

mod export;
mod import;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use trefoil_core::Tracking;
use trefoil_state::SetTimer;

pub use export::StateExport;

/// A part of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateLine {
    /// A command that makes a part of what is under a key: its words.
    Command(Vec<Bytes>),
    /// A position that was recorded for a source.
    Tracking(Tracking),
    /// A timer of an application.
    Timer(SetTimer),
}
