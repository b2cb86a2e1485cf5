//! CPU time: of this process, and of another one by its process id.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The CPU time all threads of this process have used so far.
pub(crate) fn own() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// The CPU time all threads of another process have used so far; `None` where `/proc` does not say.
pub(crate) fn of_process(id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may itself contain spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    Some(Duration::from_secs_f64(
        (user + system) as f64 / ticks as f64,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_see_work() {
        let before = own();
        let mut sum = 0_u64;
        while own() - before < Duration::from_millis(50) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        if let Some(other) = of_process(std::process::id()) {
            assert!(other >= Duration::from_millis(30), "{other:?}");
        }
    }
}
