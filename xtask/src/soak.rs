//! `cargo xtask soak NAME`: a soak test in its full length, on the release binary. Each has a short
//! form that `cargo xtask test` runs.

use std::path::Path;

use anyhow::bail;

use crate::test::{cargo, step};

/// The soak tests, the tests behind them, and for how many seconds each runs.
const SOAKS: [(&str, &str, u64); 1] = [("mixed", "soak::mixed", 1800)];

/// Runs one of them. `TREFOIL_SOAK_SECONDS`, if it is set, is how long.
pub(crate) fn run(root: &Path, name: &str) -> anyhow::Result<()> {
    let Some((_, test, seconds)) = SOAKS.iter().find(|soak| soak.0 == name) else {
        let names: Vec<&str> = SOAKS.iter().map(|soak| soak.0).collect();
        bail!("there is no soak `{name}`; there are: {}", names.join(", "));
    };
    let seconds = std::env::var("TREFOIL_SOAK_SECONDS").unwrap_or_else(|_| seconds.to_string());
    let mut command = cargo();
    command
        .args(["test", "--release", "--package", "trefoil-cli"])
        .args(["--test", "it", "--", "--exact", "--nocapture", test])
        .env("TREFOIL_SOAK_SECONDS", &seconds)
        .current_dir(root);
    step(&format!("soak {name}, {seconds} seconds"), &mut command)
}
