//! The log of the server: to standard error, as lines for people or as JSON.

use std::io::IsTerminal as _;

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Lines for people.
    Console,
    /// One JSON object per line.
    Json,
}

/// Starts logging. What is not Trefoil's own says only what went wrong.
pub(crate) fn start(level: Level, format: Format) -> anyhow::Result<()> {
    let others = level.min(Level::WARN);
    let targets = Targets::new()
        .with_default(others)
        .with_target("trefoil", level);
    let layer = fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        Format::Console => layer.with_ansi(colours()).boxed(),
        Format::Json => layer.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(targets))
        .try_init()?;
    Ok(())
}

/// Colours are for terminals whose user has not refused them (<https://no-color.org>).
fn colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::io::stderr().is_terminal()
}
