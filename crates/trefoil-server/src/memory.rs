//! How much memory the process may use: that of the machine, or less if a control group says so.

use std::fs;
use std::path::{Path, PathBuf};

use crate::limits::{CLIENT_MEMORY_FRACTION, CLIENT_MEMORY_MIN};

/// Used where the system does not say how much there is.
const UNKNOWN_BYTES: u64 = 1 << 30;

/// The memory for clients unless it is configured.
pub(crate) fn client_memory_default() -> usize {
    let bytes = memory_limit() / CLIENT_MEMORY_FRACTION;
    usize::try_from(bytes)
        .unwrap_or(usize::MAX)
        .max(CLIENT_MEMORY_MIN)
}

/// Returns the memory that a process may use: what the machine has, or less if a control group
/// says so.
pub fn memory_limit() -> u64 {
    available(Path::new("/"))
}

/// Returns the memory that the process has now, if the system says it.
pub(crate) fn resident() -> Option<u64> {
    bytes_of("VmRSS:", &read(Path::new("/proc/self/status"))?)
}

/// The least of what the machine has and what the control groups of this process allow.
fn available(root: &Path) -> u64 {
    let physical = read(&root.join("proc/meminfo")).and_then(|text| bytes_of("MemTotal:", &text));
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(files_of_group);
    let limits = limits.filter_map(|file| limit(&read(&root.join(file))?));
    limits.chain(physical).min().unwrap_or(UNKNOWN_BYTES)
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Returns the bytes of a line such as `MemTotal: 1024 kB`.
fn bytes_of(name: &str, text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib: u64 = line?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Where the limits of a group stand, and those of all groups around it: `0::/a/b` in the second
/// version of control groups, `9:memory:/a/b` in the first. In a container, the group itself may
/// be what is mounted.
fn files_of_group(line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
    else {
        return Vec::new();
    };
    let (base, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let group = Path::new(group.trim_start_matches('/'));
    let groups = group.ancestors();
    groups
        .map(|group| Path::new(base).join(group).join(file))
        .collect()
}

/// A number of bytes; `max` is no limit.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with these files.
    fn with(files: &[(&str, &str)]) -> u64 {
        let root = std::env::temp_dir().join(format!(
            "trefoil-memory-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let bytes = available(&root);
        let _ = fs::remove_dir_all(&root);
        bytes
    }

    #[test]
    fn the_process_has_memory() {
        assert!(resident().unwrap() > 1 << 20);
    }

    #[test]
    fn the_least_of_machine_and_groups_counts() {
        let meminfo = ("proc/meminfo", "MemTotal:    2048 kB\nMemFree: 1 kB\n");
        assert_eq!(with(&[meminfo]), 2 << 20);
        let second = ("proc/self/cgroup", "0::/app/inner\n");
        let unlimited = ("sys/fs/cgroup/app/inner/memory.max", "max\n");
        assert_eq!(with(&[meminfo, second, unlimited]), 2 << 20);
        let around = ("sys/fs/cgroup/app/memory.max", "1048576\n");
        assert_eq!(with(&[meminfo, second, unlimited, around]), 1 << 20);
        let container = [
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "4096\n"),
        ];
        assert_eq!(with(&[meminfo, container[0], container[1]]), 4096);
        let first = ("proc/self/cgroup", "11:cpu:/x\n9:hugetlb,memory:/app\n");
        let limit = ("sys/fs/cgroup/memory/app/memory.limit_in_bytes", "8192\n");
        assert_eq!(with(&[meminfo, first, limit]), 8192);
        let none = (
            "sys/fs/cgroup/memory/app/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(with(&[meminfo, first, none]), 2 << 20);
        assert_eq!(with(&[]), UNKNOWN_BYTES);
    }
}
