//! Makes the archives of a release. Not a test: it is started by hand, see the parent module.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::contents;
use super::expected::{Expected, read_namespace};
use super::{arguments, fixtures, tar};
use crate::harness::{ADMIN, Server};

#[test]
#[ignore = "makes the archives of the release that TREFOIL_RELEASE names"]
fn make() {
    let program = PathBuf::from(std::env::var_os("TREFOIL_RELEASE").unwrap());
    let name = std::env::var("TREFOIL_RELEASE_NAME").unwrap();
    for end in ["closed", "killed"] {
        let directory = TempDir::new().unwrap();
        let (data, expected) = (
            directory.path().join("data"),
            directory.path().join("expected"),
        );
        std::fs::create_dir(&expected).unwrap();
        let place = data.to_str().unwrap();
        let place = vec!["--data-dir", place, "--token", ADMIN];
        let arguments = [place, arguments()].concat();
        let server = Server::try_launch(Command::new(&program), &arguments).unwrap();
        for (id, token) in contents::write(&server) {
            let contents = read_namespace(&server, &id, &token);
            Expected::write(&expected, &id, &token, &contents);
        }
        let log = data.join("default/1/log");
        let started = Instant::now();
        for kind in ["compressed", "snapshot"] {
            let is_there = || {
                let mut files = std::fs::read_dir(&log).unwrap();
                files.any(|file| file.unwrap().path().extension() == Some(kind.as_ref()))
            };
            while !is_there() {
                assert!(started.elapsed() < Duration::from_secs(15), "no {kind}");
                thread::sleep(Duration::from_millis(100));
            }
        }
        match end {
            "closed" => assert!(server.terminate().success()),
            _ => server.kill(),
        }
        let archive = fixtures().join(format!("{name}-{end}.tar.gz"));
        tar(
            &["--sparse", "-Igzip -9", "-cf"],
            &archive,
            directory.path(),
        );
        println!("{}", archive.display());
    }
}
