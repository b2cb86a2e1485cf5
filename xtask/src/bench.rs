//! `cargo xtask bench SUBJECT [OPTION...]`: a benchmark of the release build. The benchmarks are a
//! program of their own; the server that they measure is built by itself, as it is shipped.

use std::path::Path;
use std::process::Command;

use crate::test::{cargo, path_with, run_quietly};

/// The subjects that are measured beside other systems, whose clients must be built in.
const WITH_PEERS: [&str; 4] = ["all", "dcb", "growth", "resp"];

/// Builds everything, installs what it is compared with, and runs the benchmark where the user is.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let mut server = cargo();
    server.args(["build", "--release", "--quiet", "--package", "trefoil-cli"]);
    let is_on_a_store =
        |argument: &&str| *argument == "cluster" || argument.starts_with("--storages");
    if arguments.iter().any(is_on_a_store) {
        server.args(["--features", "object-storage"]);
    }
    run_quietly("cargo build", server.current_dir(root))?;
    let mut bench = cargo();
    bench.args([
        "build",
        "--release",
        "--quiet",
        "--package",
        "trefoil-bench",
    ]);
    if arguments
        .first()
        .is_some_and(|subject| WITH_PEERS.contains(subject))
    {
        let mut install = Command::new(root.join("scripts/install-bench-peers.sh"));
        run_quietly("scripts/install-bench-peers.sh", &mut install)?;
        bench.args(["--features", "peers"]);
        // The protobuf compiler is there.
        bench.env("PATH", path_with(root.join("target/peers/bin"))?);
    } else {
        // SQLite is one of the baselines, which an ordinary build leaves out.
        bench.args(["--features", "baselines"]);
    }
    run_quietly("cargo build", bench.current_dir(root))?;
    let mut bench = Command::new(root.join("target/release/trefoil-bench"));
    run_quietly("trefoil-bench", bench.args(arguments))
}
