//! `cargo xtask test`: the whole gate, on a machine with Rust and Python; what else it needs is
//! installed, and said before. It stops at the first step that fails and says which one it was.
//!
//! Clippy looks at the code while it is compiled for the tests: it takes the compiler's place for
//! the crates of the workspace, as `cargo clippy` puts it there, and everything else is compiled
//! once, by the compiler itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::{browser, deny, redis, tidy};

/// Python packages that tests need.
const REQUIREMENTS: &str = "tests/python/requirements.txt";

const STEPS: &[&[&str]] = &[
    &["fmt", "--all", "--check"],
    // Without `--all-targets`, which leaves out the tests in the documentation.
    &[
        "test",
        "--workspace",
        "--features=trefoil-cli/object-storage",
    ],
    &DOCUMENTATION,
];

/// The documentation of everything that others build on, with all features; a warning is an error.
const DOCUMENTATION: [&str; 7] = [
    "doc",
    "--workspace",
    "--exclude=trefoil-bench",
    "--exclude=xtask",
    "--lib",
    "--no-deps",
    "--all-features",
];

/// What `cargo clippy -- -D warnings` tells the compiler that it puts into the place of `rustc`.
const CLIPPY: [(&str, &str); 2] = [
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    (
        "CLIPPY_ARGS",
        "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
    ),
];

/// Runs everything.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    println!("==> tidy");
    tidy::run(root)?;
    println!("==> deny");
    deny::run(root)?;
    announce();
    let path = python(root)?;
    redis::install(root, &python_of(root))?;
    let browser = browser::find_or_install()?;
    for arguments in STEPS {
        let mut command = cargo();
        command.args(*arguments).current_dir(root).envs(CLIPPY);
        command.env("PATH", &path).env("CHROMIUM", &browser);
        // Tests that are skipped on other machines must not be skipped here.
        command
            .env("XTASK_PYTHON", "installed")
            .env("XTASK_REDIS", "installed");
        if arguments.contains(&"doc") {
            command.env("RUSTDOCFLAGS", "-Dwarnings");
        }
        step(&format!("cargo {}", arguments.join(" ")), &mut command)?;
    }
    println!("==> all of it passed");
    Ok(())
}

/// Says what is about to be installed, and where.
fn announce() {
    println!("==> what is installed first, if it is not there");
    println!(
        "    into target: {REQUIREMENTS}, {}",
        redis::clients().join(", ")
    );
    let missing = [redis::missing(), browser::missing()].concat();
    match missing.is_empty() {
        true => println!("    on this machine: nothing"),
        false => println!("    on this machine, with apt-get: {}", missing.join(", ")),
    }
}

/// The `cargo` that started this.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command and says so; an error if it fails.
pub(crate) fn step(name: &str, command: &mut Command) -> anyhow::Result<()> {
    println!("==> {name}");
    run_quietly(name, command)
}

/// The same for a command whose output is the user's.
pub(crate) fn run_quietly(name: &str, command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run `{name}`"))?;
    if !status.success() {
        bail!("`{name}` failed ({status}); nothing after it was run");
    }
    Ok(())
}

fn python_of(root: &Path) -> PathBuf {
    root.join("target/python/bin/python3")
}

/// Installs the pinned Python packages into a directory of the build and returns the search path
/// in which `python3` is the one that has them.
pub(crate) fn python(root: &Path) -> anyhow::Result<OsString> {
    let environment = root.join("target/python");
    let binaries = environment.join("bin");
    step(
        "python3 -m venv",
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    )?;
    let mut install = Command::new(binaries.join("python3"));
    install
        .args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(root.join(REQUIREMENTS));
    step("pip install", &mut install)?;
    path_with(binaries)
}

/// Returns the search path with a directory that comes first.
pub(crate) fn path_with(directory: PathBuf) -> anyhow::Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory).chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(all.collect::<Vec<PathBuf>>())?)
}
