//! What tests of state and of the documentation are run with: a real Redis, its tools, published
//! clients of it, curl, a terminal for what draws on one, and what judges units of systemd.

use std::path::Path;
use std::process::Command;

use crate::packages;
use crate::test::step;

/// Programs, and the packages of Debian that have them.
const PROGRAMS: [(&str, &[&str]); 6] = [
    ("curl", &["curl"]),
    ("tmux", &["tmux"]),
    ("redis-server", &["redis-server", "redis-tools"]),
    ("redis-cli", &["redis-tools"]),
    ("npm", &["nodejs", "npm"]),
    ("systemd-analyze", &["systemd"]),
];

/// Versions of redis-py: where each is put, and what says which one it is.
const PYTHON: [(&str, &str); 2] = [
    ("target/redis-py-6", "tests/python/redis-6.txt"),
    ("target/redis-py-8", "tests/python/redis-8.txt"),
];

/// Packages for Node: where each is put, and which one it is.
const NODE: [(&str, &str); 4] = [
    ("target/ioredis", "ioredis@6.0.0"),
    ("target/node-redis", "redis@6.3.1"),
    ("target/typescript", "typescript@7.0.2"),
    ("target/axe", "axe-core@4.14.0"),
];

/// The clients that are put into `target`.
pub(crate) fn clients() -> Vec<&'static str> {
    let clients = PYTHON.iter().chain(&NODE);
    clients.map(|(_, client)| *client).collect()
}

/// The packages of Debian that this machine lacks.
pub(crate) fn missing() -> Vec<&'static str> {
    let missing = PROGRAMS.iter();
    let missing = missing.filter(|(program, _)| !packages::is_there(program));
    missing
        .flat_map(|(_, packages)| *packages)
        .copied()
        .collect()
}

/// Installs all of it; `python` has pip.
pub(crate) fn install(root: &Path, python: &Path) -> anyhow::Result<()> {
    for (program, packages) in PROGRAMS {
        if !packages::is_there(program) {
            packages::install(program, packages)?;
        }
    }
    for (directory, requirements) in PYTHON {
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--upgrade", "--target"])
            .arg(root.join(directory))
            .arg("--requirement")
            .arg(root.join(requirements));
        step(&format!("pip install {requirements}"), &mut pip)?;
    }
    for (directory, package) in NODE {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(root.join(directory))
            .arg(package);
        step(&format!("npm install {package}"), &mut npm)?;
    }
    Ok(())
}
