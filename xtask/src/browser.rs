//! The browser in which the console and the page of the example are tested.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::packages;

/// What it is called where it is installed.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

const PACKAGE: &str = "chromium";

/// The package of Debian that has one, if this machine has none.
pub(crate) fn missing() -> Vec<&'static str> {
    match find() {
        Some(_) => Vec::new(),
        None => vec![PACKAGE],
    }
}

/// The browser of this machine; Debian's is installed if there is none.
pub(crate) fn find_or_install() -> anyhow::Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    packages::install("a browser", &[PACKAGE])?;
    find().context("the package chromium was installed and has no browser")
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut places = NAMES.iter().flat_map(|name| {
        directories
            .iter()
            .map(move |directory| directory.join(name))
    });
    places.find(|place| place.is_file())
}
