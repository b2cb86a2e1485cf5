//! The continuous archive: a server ships what namespaces commit to a repository, seconds later.
//!
//! - [`shelf`] is what is kept of a namespace, and under which names.
//! - [`shipping`] ships one piece of one namespace after the other, [`entries`] the entries of the
//!   registry; [`archiver`] has the threads, and knows which namespaces have something to ship.
//! - [`redacting`] writes pieces again that hold what was redacted.
//! - [`reading`] makes a backup of what was shipped, as of any point, to be restored.

mod archiver;
mod entries;
mod reading;
mod redacting;
mod shelf;
mod shipping;

pub(crate) use archiver::Archiver;
pub(crate) use reading::{ArchiveReader, ArchivedReach, ArchivedRedactions};
