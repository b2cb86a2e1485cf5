//! A client of the outside world: Python's standard library against the API of EventoDB.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{ADMIN, Server};

#[test]
fn a_python_client_that_knows_only_eventodb_works() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/client.py");
    let url = format!("http://127.0.0.1:{}", server.port);
    let output = match Command::new("python3")
        .arg(script)
        .args([&url, ADMIN])
        .output()
    {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: no python3 on this machine ({error})");
            return;
        }
    };
    let (said, failed) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && said.starts_with("ok "),
        "{said}\n{failed}"
    );
}
