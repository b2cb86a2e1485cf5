//! What is known of the machine: figures mean nothing without it.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// The processor, the number of its cores this process may use, memory and system.
#[derive(Debug)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory_gib: f64,
    system: String,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let kibibytes = field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: kibibytes.unwrap_or_default() / (1024.0 * 1024.0),
            system: format!("{} {}", std::env::consts::OS, release.trim()),
        }
    }

    pub(crate) fn text(&self) -> String {
        let Self {
            processor,
            cores,
            memory_gib,
            system,
        } = self;
        format!("{processor}, {cores} cores, {memory_gib:.0} GiB, {system}")
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "processor": self.processor,
            "cores": self.cores,
            "memoryGiB": self.memory_gib,
            "system": self.system,
        })
    }
}

/// Writes down what is not yet on disk and drops all pages of files, which only root may do.
pub(crate) fn drop_pages() -> Result<()> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3").context("/proc/sys/vm/drop_caches")
}

/// The value of the first line `name : value` of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
