//! Programs that the system's package manager has.

use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::test::step;

/// Whether a program can be run here.
pub(crate) fn is_there(program: &str) -> bool {
    // Some know only the short form.
    ["--version", "-V"].iter().any(|flag| {
        let mut command = Command::new(program);
        command
            .arg(flag)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// Installs a program that is missing, as root or with sudo; the packages are Debian's.
pub(crate) fn install(program: &str, packages: &[&str]) -> anyhow::Result<()> {
    let user = Command::new("id").arg("-u").output();
    let is_root = user.context("cannot run `id`")?.stdout == b"0\n";
    if !is_there("apt-get") || !is_root && !is_there("sudo") {
        let all = packages.join(" ");
        bail!("{program} is missing: install {all} (the names are Debian's), then start again");
    }
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
        if !is_root {
            command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        }
        command.args(arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        step(&format!("apt-get {}", arguments.join(" ")), &mut command)
    };
    // Without the newest lists, what is on the lists may still be there.
    if let Err(error) = apt_get(&["update", "--quiet"]) {
        println!("{error:#}");
    }
    let install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    apt_get(&[&install, packages].concat())
}
