//! Bars on standard error for what takes long; nothing where it is no terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar if the length is known, else a spinner; nothing where standard error is no terminal.
pub(crate) fn progress(bytes: Option<u64>) -> anyhow::Result<ProgressBar> {
    bar(
        bytes,
        match bytes {
            Some(_) => "{wide_bar} {bytes}/{total_bytes}  {msg}  {eta}",
            None => "{spinner} {bytes}  {msg}  {elapsed}",
        },
    )
}

/// A bar for things that are counted; how many there are is told later.
pub(crate) fn count_progress() -> anyhow::Result<ProgressBar> {
    bar(Some(0), "{wide_bar} {pos}/{len} {msg}  {eta}")
}

/// A sign of life for work whose progress nobody knows.
pub(crate) fn spinner() -> anyhow::Result<ProgressBar> {
    bar(None, "{spinner} {msg}  {elapsed}")
}

fn bar(length: Option<u64>, template: &str) -> anyhow::Result<ProgressBar> {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(length, target);
    bar.set_style(ProgressStyle::with_template(template)?);
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}
