//! What the project does to itself.
//!
//! ```text
//! cargo xtask test         everything that must hold before a change lands
//! cargo xtask tidy         only the rules that no compiler checks
//! cargo xtask deny         only what may be depended on
//! cargo xtask soak NAME    a soak test in its full length
//! cargo xtask bench ...    a benchmark of the release build
//! cargo xtask cluster      three nodes and an S3 service on this machine
//! ```

#![allow(clippy::disallowed_methods, reason = "not a part of the product")]

mod bench;
mod browser;
mod cluster;
mod deny;
mod links;
mod names;
mod packages;
mod redis;
mod soak;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

const USAGE: &str = "usage: cargo xtask test | tidy | deny | soak NAME | \
                     bench SUBJECT [OPTION...] | cluster [OPTION...]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test::run(&root),
        ["tidy"] => tidy::run(&root),
        ["deny"] => deny::run(&root),
        ["soak", name] => soak::run(&root, name),
        ["bench", ref rest @ ..] => bench::run(&root, rest),
        ["cluster", ref rest @ ..] => cluster::run(&root, rest),
        _ => bail!("{USAGE}"),
    }
}

/// The top of the repository.
fn root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here
        .parent()
        .context("xtask has no parent directory")?
        .to_owned())
}
