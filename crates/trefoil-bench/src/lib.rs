//! Benchmarks of Trefoil beside the raw limits of the disk and beside other stores, in one run.
//!
//! [`engine`] measures the library in this process; [`http`], [`dcb`], [`resp`] and
//! [`seats`] measure the server from outside.
//! Figures are comparable within one run on one machine, not across machines: every table therefore
//! carries its own raw limit and its own baselines.

mod body;
mod closed_loop;
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
pub mod resp;
mod running;
pub mod seats;
#[cfg(feature = "baselines")]
mod sqlite_baseline;
mod system;
mod trefoil_engine;
mod workload;
