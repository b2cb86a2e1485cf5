//! `cargo xtask soak NAME`: a soak test in its full length, in a release build. Each has a short form that
//! `cargo xtask test` runs.

use std::path::Path;

use anyhow::bail;

use crate::test::{cargo, python, step};

/// A soak test, the test behind it, and what says how long it runs.
struct Soak {
    name: &'static str,
    /// Where the test is.
    target: &'static [&'static str],
    test: &'static str,
    variable: &'static str,
    length: u64,
}

/// The tests of the built binary.
const BINARY: &[&str] = &[
    "--package=trefoil-cli",
    "--features=object-storage",
    "--test=it",
];

const SOAKS: &[Soak] = &[
    Soak {
        name: "mixed",
        target: BINARY,
        test: "soak::mixed",
        variable: "TREFOIL_SOAK_SECONDS",
        length: 1800,
    },
    Soak {
        name: "cluster",
        target: BINARY,
        test: "soak::cluster::faults",
        variable: "TREFOIL_SOAK_ROUNDS",
        length: 50,
    },
    Soak {
        name: "backup",
        target: BINARY,
        test: "backup::rounds::what_is_restored_is_of_one_commit",
        variable: "TREFOIL_SOAK_ROUNDS",
        length: 20,
    },
    Soak {
        name: "archive",
        target: BINARY,
        test: "backup::archive::nothing_that_was_archived_is_lost_with_the_data_directory",
        variable: "TREFOIL_SOAK_ROUNDS",
        length: 20,
    },
    Soak {
        name: "retention",
        target: &["--package=trefoil", "--test=it"],
        test: "retention_space::space_comes_back",
        variable: "TREFOIL_SOAK_EVENTS",
        length: 5_000_000,
    },
    Soak {
        name: "simulation",
        target: &["--package=trefoil-kv", "--lib"],
        test: "home::simulation_tests::nothing_acknowledged_is_lost_and_nothing_stale_is_read",
        variable: "TREFOIL_TEST_SECONDS",
        length: 600,
    },
];

/// Runs one of them. Its variable, if it is set, is how long.
pub(crate) fn run(root: &Path, name: &str) -> anyhow::Result<()> {
    let Some(soak) = SOAKS.iter().find(|soak| soak.name == name) else {
        let names: Vec<&str> = SOAKS.iter().map(|soak| soak.name).collect();
        bail!("there is no soak `{name}`; there are: {}", names.join(", "));
    };
    let length = std::env::var(soak.variable).unwrap_or_else(|_| soak.length.to_string());
    let mut command = cargo();
    command
        .args(["test", "--release"])
        .args(soak.target)
        .args(["--", "--exact", "--nocapture", soak.test])
        .env("PATH", python(root)?)
        .env("XTASK_PYTHON", "installed")
        .env(soak.variable, &length)
        .current_dir(root);
    step(
        &format!("soak {name}, {}={length}", soak.variable),
        &mut command,
    )
}
