//! `cargo xtask cluster [OPTION...]`: three nodes and an S3 service on this machine, until Ctrl-C.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

/// Says what will be installed, and becomes the script that does it and starts everything.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    println!("==> a cluster on this machine");
    println!(
        "    installed into target/cluster, if it is not there: SeaweedFS, from the Python index"
    );
    println!("    on this machine: nothing");
    let script = root.join("examples/cluster/run.py");
    let error = Command::new("python3").arg(script).args(arguments).exec();
    Err(error).context("cannot run python3")
}
