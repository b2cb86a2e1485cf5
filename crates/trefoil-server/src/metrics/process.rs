//! What the operating system knows of the process.

use std::fs;
use std::path::Path;

use trefoil::Timestamp;

use super::exposition::{Exposition, MetricKind};
use crate::{VERSION, memory};

pub(super) fn put(out: &mut Exposition, started: Timestamp) {
    let help = "The version of the server";
    let mut version = out.family(MetricKind::Gauge, "build", help);
    version.put(&[("version", VERSION)], 1);
    let help = "When the server began, in seconds since 1970";
    let seconds = started.millis() as f64 / 1e3;
    out.gauge("start_time_seconds", help, seconds);
    let help = "Memory of the process, without what is swapped out";
    let resident = memory::resident().unwrap_or(0);
    out.gauge("memory_bytes", help, resident);
    let help = "Processor time of the process";
    let [user, system, ..] = cpu_seconds().unwrap_or_default();
    out.counter("cpu_seconds", help, user + system);
    let help = "Files and sockets that the process has open";
    let n_files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    out.gauge("open_files", help, n_files);
    let help = "Files and sockets that the process may have open; 0 if there is no limit";
    out.gauge("open_files_max", help, open_files_max().unwrap_or(0));
}

/// Returns how long the process has used processors: itself, in the kernel, and the same of its
/// children, where Linux tells it.
pub(crate) fn cpu_seconds() -> Option<[f64; 4]> {
    /// How many ticks a second has where Linux tells of them, on every machine.
    const TICKS_PER_SECOND: f64 = 100.0;
    let status = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the process, in brackets, may have anything in it.
    let (_, after_name) = status.rsplit_once(')')?;
    let mut ticks = after_name.split_whitespace().skip(11);
    let mut seconds = || Some(ticks.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some([seconds()?, seconds()?, seconds()?, seconds()?])
}

/// Returns the limit of open files that a process meets first.
fn open_files_max() -> Option<u64> {
    let limits = fs::read_to_string(Path::new("/proc/self/limits")).ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    line?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_tells_what_is_asked_for() {
        assert!(cpu_seconds().is_some());
        assert!(open_files_max().is_some_and(|files| files > 0));
    }
}
