//! What databases count about themselves, and what they count with.

mod groups;
mod histogram;
mod striped;
mod total;
mod trace;

pub(crate) use groups::{GroupFigures, GroupStats};
pub(crate) use total::{CountedPart, ReadFigures, SharedStats};

pub use groups::StatsSnapshot;
pub use histogram::{Histogram, HistogramSnapshot};
pub use striped::Striped;
pub use total::{BackgroundWork, TotalStats, WorkStats};
pub use trace::{RequestStage, Trace};
