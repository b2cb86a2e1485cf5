//! `cargo xtask bench SUBJECT [OPTION...]`: a benchmark of the release build. The benchmarks are a
//! program of their own; the server that they measure is built by itself, as it is shipped.

use std::path::Path;
use std::process::Command;

use crate::test::{cargo, run_quietly};

/// What is built. SQLite is one of the baselines, which an ordinary build leaves out.
const BUILDS: [&[&str]; 2] = [
    &["--package", "trefoil-cli"],
    &["--package", "trefoil-bench", "--features", "baselines"],
];

/// Builds everything and runs the benchmark where the user is.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    for build in BUILDS {
        let mut command = cargo();
        command.args(["build", "--release", "--quiet"]).args(build);
        run_quietly("cargo build", command.current_dir(root))?;
    }
    let mut bench = Command::new(root.join("target/release/trefoil-bench"));
    run_quietly("trefoil-bench", bench.args(arguments))
}
