//! The continuous archive: what a namespace commits, read a little later and kept elsewhere.
//!
//! An archive has *pieces*: commits with their events and with what they changed of the state. Each begins
//! where another one ended, so from the first one on they are the whole log, and the state of any
//! commit can be made of them. Where the storage had dropped changes before they were read, it needs a
//! *base*: the snapshot of the state that the storage has instead. One is kept whenever there is a new
//! one, so that not all changes are needed to restore what is recent. When events are redacted, the pieces
//! that have them are written again.
//!
//! This module reads pieces and bases from an open namespace ([`ArchiveSource`]), and says which of them
//! make up the namespace as of a point ([`ArchivedLine`]). Where they are kept is not its business.

mod line;
mod piece;
mod redacting;
mod source;
#[cfg(test)]
mod tests;

pub use line::{ArchivedLine, FetchPiece};
pub use piece::{ArchiveMark, ArchivePiece, PieceName};
pub use source::ArchiveSource;
