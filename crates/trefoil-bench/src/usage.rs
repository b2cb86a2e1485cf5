//! What a process has used so far: processor time, memory, and syncs of its disk.
//!
//! Syncs are counted by the kernel, as flushes of the disk that has the data: so they are counted
//! for every system alike, and those of other processes with them.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{major, minor};
use rustix::time::{ClockId, clock_gettime};

use crate::http;

/// The processor time all threads of this process have used so far.
pub(crate) fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// What a server has used: in all, or between two points in time. What cannot be known is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Option<Duration>,
    pub(crate) syncs: Option<u64>,
    /// Commits, and the groups in which they were written, by the server's own account.
    pub(crate) commits: Option<u64>,
    pub(crate) groups: Option<u64>,
}

impl Usage {
    /// Returns what was used after `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        let count = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            cpu: self.cpu.zip(before.cpu).map(|(now, then)| now - then),
            syncs: count(self.syncs, before.syncs),
            commits: count(self.commits, before.commits),
            groups: count(self.groups, before.groups),
        }
    }

    /// Returns both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let count = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Self {
            cpu: self.cpu.zip(other.cpu).map(|(one, other)| one + other),
            syncs: count(self.syncs, other.syncs),
            commits: count(self.commits, other.commits),
            groups: count(self.groups, other.groups),
        }
    }
}

/// Where the usage of a server can be seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    pub(crate) process: u32,
    /// The disk that has its data.
    pub(crate) disk: Option<Disk>,
    /// Where it answers `/metrics`, if it does.
    pub(crate) metrics: Option<SocketAddr>,
}

impl Meter {
    /// The processor time all threads of the process have used so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        cpu_of(self.process)
    }

    pub(crate) fn read(&self) -> Usage {
        let metrics = self.metrics.and_then(|address| {
            let text = http::get(address, "/metrics").ok()?;
            String::from_utf8(text).ok()
        });
        let metric = |name| metrics.as_deref().and_then(|text| metric(text, name));
        Usage {
            cpu: self.cpu(),
            syncs: self.disk.and_then(Disk::flushes),
            commits: metric("trefoil_group_commits_sum"),
            groups: metric("trefoil_group_commits_count"),
        }
    }
}

/// The processor time all threads of another process have used so far.
fn cpu_of(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may itself contain spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    Some(Duration::from_secs_f64(
        (user + system) as f64 / ticks as f64,
    ))
}

/// The memory of a process in MiB: what is resident, and the part of it that is in no file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) resident: f64,
    pub(crate) anonymous: f64,
}

impl Memory {
    pub(crate) fn of(process: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let mebibytes = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
            Some(kibibytes / 1024.0)
        };
        Some(Self {
            resident: mebibytes("VmRSS:")?,
            anonymous: mebibytes("RssAnon:")?,
        })
    }
}

/// The bytes that a process has asked files for so far, wherever they came from.
pub(crate) fn bytes_read(process: u32) -> Option<u64> {
    io_of(process, "rchar:")
}

/// The bytes that had to come from a disk for a process so far.
pub(crate) fn bytes_from_disk(process: u32) -> Option<u64> {
    io_of(process, "read_bytes:")
}

fn io_of(process: u32, name: &str) -> Option<u64> {
    let io = std::fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let mut lines = io.lines().filter_map(|line| line.strip_prefix(name));
    lines.next()?.trim().parse().ok()
}

/// A disk, by its numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disk {
    major: u32,
    minor: u32,
}

impl Disk {
    /// Returns the disk that has a directory.
    pub(crate) fn of(directory: &Path) -> Option<Self> {
        let device = std::fs::metadata(directory).ok()?.dev();
        Some(Self {
            major: major(device),
            minor: minor(device),
        })
    }

    /// How often its cache was flushed so far.
    fn flushes(self) -> Option<u64> {
        flushes(&std::fs::read_to_string("/proc/diskstats").ok()?, self)
    }
}

/// The sixteenth number after the name of a disk counts its flushes.
fn flushes(diskstats: &str, disk: Disk) -> Option<u64> {
    let mut lines = diskstats.lines().map(str::split_whitespace);
    lines.find_map(|mut line| {
        let is_it =
            line.next()?.parse() == Ok(disk.major) && line.next()?.parse() == Ok(disk.minor);
        is_it.then(|| line.nth(16)?.parse().ok())?
    })
}

/// The value of a metric without labels, which is a count.
pub(crate) fn metric(text: &str, name: &str) -> Option<u64> {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
    let value: f64 = values.find_map(|value| value.strip_prefix(' ')?.parse().ok())?;
    Some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_see_work() {
        let before = own_cpu();
        let mut sum = 0_u64;
        while own_cpu() - before < Duration::from_millis(50) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        if let Some(other) = cpu_of(std::process::id()) {
            assert!(other >= Duration::from_millis(30), "{other:?}");
        }
    }

    #[test]
    fn flushes_and_metrics_are_found_in_their_texts() {
        let disks = "7 0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
                     254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n";
        let (major, minor) = (254, 0);
        assert_eq!(flushes(disks, Disk { major, minor }), Some(16));
        assert_eq!(flushes(disks, Disk { major, minor: 1 }), None);
        let metrics = "# HELP x_total 3\nx_totals 4\nx_total 5\nx_sum 6.0\n";
        assert_eq!(metric(metrics, "x_total"), Some(5));
        assert_eq!(metric(metrics, "x_sum"), Some(6));
        assert_eq!(metric(metrics, "y"), None);
    }

    #[test]
    fn what_this_process_reads_is_counted() {
        let Some(before) = bytes_read(std::process::id()) else {
            return;
        };
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let after = bytes_read(std::process::id()).unwrap();
        assert!(after - before >= program.len() as u64);
        assert!(bytes_from_disk(std::process::id()).is_some());
    }

    #[test]
    fn the_memory_of_this_process_is_known() {
        if let Some(memory) = Memory::of(std::process::id()) {
            assert!(memory.resident >= memory.anonymous && memory.anonymous > 0.1);
        }
    }

    #[test]
    fn usage_is_counted_from_one_point_to_another() {
        let usage = |syncs, commits| Usage {
            syncs: Some(syncs),
            commits,
            ..Usage::default()
        };
        let between = usage(30, None).since(usage(10, Some(1)));
        assert_eq!((between.syncs, between.commits), (Some(20), None));
        assert_eq!(between.and(usage(5, None)).syncs, Some(25));
    }
}
