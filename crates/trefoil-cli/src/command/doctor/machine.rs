//! Checks of this machine: its disk, and what it lets a process have.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use trefoil::Clock;
use trefoil_server::memory_limit;

use super::server::{disk as judge_room, syncs as judge_syncs};
use super::{Check, Verdict};
use crate::output::{short, size};

/// How many syncs are measured, and how much is written before each.
const SYNCS: usize = 20;
const SYNC_BYTES: usize = 4096;

/// Open files: a connection each, and some for each open namespace.
const FILES_WARN: u64 = 16_384;
const FILES_FAIL: u64 = 1024;

/// The cache alone takes half of this.
const MEMORY_WARN: f64 = (1u64 << 30) as f64;

/// Measures the disk of a directory.
pub(super) fn disk(directory: &Path) -> Vec<Check> {
    let shown = directory.display();
    let wrong = |check, error: &dyn std::fmt::Display| {
        let found = format!("{shown}: {error}");
        let advice = "name the data directory of the server, and run this as its user";
        Check::new(check, Verdict::Fail, found, advice)
    };
    let room = match rustix::fs::statvfs(directory) {
        Ok(disk) => judge_room("disk here", disk.f_bavail as f64 * disk.f_frsize as f64),
        Err(error) => return vec![wrong("disk here", &error)],
    };
    let sync = match measure(directory) {
        Ok(slowest) => judge_syncs("syncs here", slowest, "19 of 20 take at most"),
        Err(error) => wrong("syncs here", &error),
    };
    vec![room, sync]
}

/// The time that all but one of the syncs stay below, in seconds. The file has gone afterwards.
fn measure(directory: &Path) -> std::io::Result<f64> {
    let path = directory.join(format!(".doctor-{}", std::process::id()));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    let measured = measure_file(file);
    std::fs::remove_file(&path)?;
    measured
}

fn measure_file(mut file: File) -> std::io::Result<f64> {
    let clock = Clock::default();
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&[0; SYNC_BYTES])?;
        let began = clock.steady();
        file.sync_data()?;
        times.push(clock.since(began).as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[SYNCS - 2])
}

/// What a process that is started here may have.
pub(super) fn limits() -> Vec<Check> {
    vec![files(), memory()]
}

fn files() -> Check {
    let limit = getrlimit(Resource::Nofile).current;
    let Some(limit) = limit else {
        return Check::ok("open files here", "no limit");
    };
    let verdict = match limit {
        ..FILES_FAIL => Verdict::Fail,
        FILES_FAIL..FILES_WARN => Verdict::Warn,
        _ => Verdict::Ok,
    };
    let advice = match verdict {
        Verdict::Ok => "",
        _ => "start the server with more: `ulimit -n 65536`, or LimitNOFILE=65536 for systemd",
    };
    let found = format!("at most {} per process", short(limit as f64));
    Check::new("open files here", verdict, found, advice)
}

fn memory() -> Check {
    let bytes = memory_limit() as f64;
    let found = format!("a process may use {}", size(bytes));
    match bytes < MEMORY_WARN {
        false => Check::ok("memory here", found),
        true => {
            let advice = "give it more, or start the server with a smaller --cache-size";
            Check::new("memory here", Verdict::Warn, found, advice)
        }
    }
}
