//! The project's own clients: their tests, which kill and restart the binary, and their types.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::python;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a command in the folder of a client; it knows the binary under test.
#[track_caller]
fn succeed(command: &mut Command, client: &str) {
    let binary = env!("CARGO_BIN_EXE_trefoil");
    command.current_dir(root().join("clients").join(client));
    // The tests leave nothing in the folder.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.env("TREFOIL_BINARY", binary).output().unwrap();
    let (said, failed) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}\n{failed}");
}

#[test]
fn the_client_for_python_works() {
    if python::has("httpx") {
        let mut tests = Command::new("python3");
        tests.args(["-B", "-m", "unittest", "discover", "tests"]);
        succeed(tests.env("PYTHONPATH", "src"), "python");
    }
}

#[test]
fn the_types_of_the_client_for_python_are_right() {
    if python::has("mypy") {
        let cache = TempDir::new().unwrap();
        let mut check = Command::new("python3");
        check.args(["-m", "mypy", "--strict", "src/trefoil_client"]);
        succeed(check.env("MYPY_CACHE_DIR", cache.path()), "python");
    }
}

#[test]
fn the_client_for_typescript_works() {
    let mut tests = Command::new("node");
    match Command::new("node").arg("--version").output() {
        Ok(_) => succeed(tests.arg("--test"), "typescript"),
        Err(error) => eprintln!("skipped: no node on this machine ({error})"),
    }
}

/// `trefoil.d.ts` is what the compiler makes of `trefoil.js`.
#[test]
fn the_types_of_the_client_for_typescript_are_right() {
    let compiler = root().join("target/typescript/node_modules/.bin/tsc");
    let is_needed = std::env::var_os("XTASK_REDIS").is_some();
    assert!(compiler.exists() || !is_needed, "there is no {compiler:?}");
    if !compiler.exists() {
        eprintln!("skipped: no {compiler:?}; cargo xtask test installs it");
        return;
    }
    let out = TempDir::new().unwrap();
    let mut check = Command::new(compiler.canonicalize().unwrap());
    check.args(["-p", "."]).arg("--outDir").arg(out.path());
    succeed(&mut check, "typescript");
    let made = std::fs::read_to_string(out.path().join("trefoil.d.ts")).unwrap();
    let kept = root().join("clients/typescript/trefoil.d.ts");
    assert_eq!(made, std::fs::read_to_string(kept).unwrap());
}
