//! The web console: how its files are served, their types, and every page in a real browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::boxoffice::browser;
use crate::harness::{ADMIN, Server};
use crate::python;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file that `cargo xtask test` installs below `target`.
fn installed(file: &str) -> Option<PathBuf> {
    let path = root().join("target").join(file);
    let is_needed = std::env::var_os("XTASK_REDIS").is_some();
    assert!(path.exists() || !is_needed, "there is no {path:?}");
    if !path.exists() {
        eprintln!("skipped: no {path:?}; cargo xtask test installs it");
    }
    path.canonicalize().ok()
}

/// What the page is told about the server.
fn facts(server: &Server) -> Value {
    server.anonymous().get("/console.json").ok()
}

#[test]
fn files_are_open_and_guarded_by_headers() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let mut client = server.anonymous();
    for (path, content_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/console/app.js", "text/javascript; charset=utf-8"),
        ("/console/trefoil.js", "text/javascript; charset=utf-8"),
        ("/console/style.css", "text/css; charset=utf-8"),
        ("/console/icon.svg", "image/svg+xml"),
    ] {
        let answer = client.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some(content_type));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self';"), "{policy}");
    }
    assert_eq!(client.post("/", b"").status, 405);
    for path in [
        "/console",
        "/console/",
        "/console/index.html",
        "/console/../Cargo.toml",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

#[test]
fn only_a_server_for_development_tells_its_token() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let expected =
        json!({"version": env!("CARGO_PKG_VERSION"), "token": null, "respPort": server.resp_port});
    assert_eq!(facts(&server), expected);
    let development = Server::in_development();
    assert_eq!(facts(&development)["token"], json!(ADMIN));
    assert_eq!(
        facts(&development)["respPort"],
        json!(development.resp_port)
    );
    let headers = [("Host", "evil.example")];
    let rebound = development
        .anonymous()
        .try_request("GET", "/console.json", &headers, b"");
    assert_eq!(rebound.unwrap().status, 421);
}

#[test]
fn the_types_of_the_console_are_right() {
    let Some(compiler) = installed("typescript/node_modules/.bin/tsc") else {
        return;
    };
    let mut check = Command::new(compiler);
    check.args(["-p", "."]);
    check.current_dir(root().join("crates/trefoil-server/console"));
    let output = check.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

#[test]
fn every_page_works_in_a_browser() {
    let Some(axe) = installed("axe/node_modules/axe-core/axe.min.js") else {
        return;
    };
    if browser().is_some() && python::has("playwright, httpx") {
        let mut script = python::script("console.py");
        if cfg!(feature = "object-storage") {
            script.env("OBJECT_STORAGE", "yes");
        }
        python::run(script.arg(env!("CARGO_BIN_EXE_trefoil")).arg(axe));
    }
}
