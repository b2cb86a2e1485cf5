//! What a server takes of its machine, over time.

use std::time::Duration;

use crate::harness::Server;

/// How many samples a run takes.
pub(super) const SAMPLES: u32 = 120;

/// A plateau may rise by a twentieth between two quarters, and by this much besides.
const MEMORY_TOLERANCE_KIB: u64 = 8 * 1024;
const COUNT_TOLERANCE: u64 = 4;

/// All samples, in order.
#[derive(Default)]
pub(super) struct Gauges(Vec<Sample>);

#[derive(Clone, Copy)]
struct Sample {
    at: Duration,
    /// Memory of its own, without the program itself.
    memory_kib: u64,
    descriptors: u64,
    threads: u64,
}

impl Gauges {
    pub(super) fn sample(&mut self, server: &Server, at: Duration) {
        self.0.push(Sample {
            at,
            memory_kib: server.status("RssAnon"),
            descriptors: server.descriptors(),
            threads: server.status("Threads"),
        });
    }

    /// A line for every tenth of the run.
    pub(super) fn print(&self) {
        println!("seconds  memory MiB  descriptors  threads");
        for sample in self.0.iter().step_by(SAMPLES as usize / 10) {
            let memory = sample.memory_kib / 1024;
            let (at, descriptors, threads) = (sample.at, sample.descriptors, sample.threads);
            let seconds = at.as_secs();
            println!("{seconds:7}  {memory:10}  {descriptors:11}  {threads:7}");
        }
    }

    /// The last quarter takes no more than the one before it.
    pub(super) fn assert_plateau(&self) {
        assert!(self.0.len() >= 40, "only {} samples", self.0.len());
        let quarter = self.0.len() / 4;
        let assert_flat = |gauge: fn(&Sample) -> u64, tolerance: u64, name: &str| {
            let before = median(&self.0[2 * quarter..3 * quarter], gauge);
            let last = median(&self.0[3 * quarter..], gauge);
            let most = before + before / 20 + tolerance;
            assert!(last <= most, "{name} still rises: {before}, then {last}");
        };
        assert_flat(|sample| sample.memory_kib, MEMORY_TOLERANCE_KIB, "KiB");
        assert_flat(|sample| sample.descriptors, COUNT_TOLERANCE, "descriptors");
        assert_flat(|sample| sample.threads, COUNT_TOLERANCE, "threads");
    }
}

fn median(samples: &[Sample], gauge: fn(&Sample) -> u64) -> u64 {
    let mut values: Vec<u64> = samples.iter().map(gauge).collect();
    values.sort_unstable();
    values[values.len() / 2]
}
