//! Benchmarks of Trefoil beside the raw limits of the disk and beside other stores, in one run.
//!
//! [`engine`] measures the library in this process; [`http`] and [`dcb`] measure the server from
//! outside.
//! Figures are comparable within one run on one machine, not across machines: every table therefore
//! carries its own raw limit and its own baselines.

mod body;
mod cpu;
pub mod dcb;
pub mod engine;
mod fjall_baseline;
pub mod http;
mod latency;
mod machine;
mod random;
mod raw;
mod report;
mod running;
#[cfg(feature = "baselines")]
mod sqlite_baseline;
mod system;
mod trefoil_engine;
mod workload;
