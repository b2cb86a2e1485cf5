//! `/`: the console, a web page whose files are part of the binary.
//!
//! The files are open. What the page shows comes from the API and needs a token. A server whose token
//! is no secret tells it to the page in `/console.json`.

use std::sync::LazyLock;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use trefoil::Token;

use crate::error::{Failure, Result};
use crate::response::HttpAnswer;
use crate::served_file::ServedFile;
use crate::service::Shared;
use crate::{Config, VERSION};

const ROOT: &str = "/";
const FACTS: &str = "/console.json";
const FOLDER: &str = "/console/";

/// Lists files of the folder `console` with their contents.
macro_rules! files {
    ($($name:literal,)*) => {
        [$(($name, include_bytes!(concat!("../console/", $name)).as_slice()),)*]
    };
}

const PAGE: &[u8] = include_bytes!("../console/index.html");
/// The client that others use as well.
const CLIENT: (&str, &[u8]) = (
    "trefoil.js",
    include_bytes!("../../../clients/typescript/trefoil.js"),
);
/// Every other file.
const FILES: &[(&str, &[u8])] = &files![
    "api.js",
    "app.js",
    "commands.js",
    "exact.js",
    "format.js",
    "icon.svg",
    "keys.js",
    "metrics.js",
    "pages.js",
    "pages/category.js",
    "pages/commit.js",
    "pages/consumers.js",
    "pages/event.js",
    "pages/names.js",
    "pages/namespaces.js",
    "pages/nodes.js",
    "pages/overview.js",
    "pages/query.js",
    "pages/seats.js",
    "pages/settings.js",
    "pages/state.js",
    "pages/stream.js",
    "pages/streams.js",
    "pages/tail.js",
    "pages/write.js",
    "parts/basics.js",
    "parts/chart.js",
    "parts/command.js",
    "parts/commit.js",
    "parts/events.js",
    "parts/json.js",
    "parts/names.js",
    "parts/query.js",
    "parts/value.js",
    "route.js",
    "session.js",
    "shell.js",
    "store.js",
    "style.css",
    "theme.js",
    "vendor/hooks.js",
    "vendor/htm.js",
    "vendor/preact.js",
    "vendor/uplot.css",
    "vendor/uplot.js",
    "view.js",
];

/// What the browser is told besides: it runs no script but these, shows the page in no frame, and
/// tells nobody where it was.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             object-src 'none'; require-trusted-types-for 'script'",
        ),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// The files by name; made when the first browser asks.
static CONSOLE: LazyLock<Vec<(&str, ServedFile)>> = LazyLock::new(|| {
    let all = FILES.iter().copied().chain([CLIENT, ("", PAGE)]);
    let served = |(name, body)| {
        (
            name,
            ServedFile::new(content_type(name), Bytes::from_static(body)),
        )
    };
    all.map(served).collect()
});

fn content_type(name: &str) -> HeaderValue {
    HeaderValue::from_static(match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/html; charset=utf-8",
    })
}

/// Returns whether a path belongs to the console.
pub(crate) fn has(path: &str) -> bool {
    path == ROOT || path == FACTS || path.starts_with(FOLDER)
}

/// The file, or what the page needs to know about the server.
pub(crate) fn answer(shared: &Shared, parts: &Parts) -> Result<HttpAnswer> {
    let path = parts.uri.path();
    let mut answer = if path == FACTS {
        let facts = facts(&shared.config);
        let file = ServedFile::new(HeaderValue::from_static("application/json"), facts.into());
        file.answer(&parts.headers)
    } else {
        let name = path.strip_prefix(FOLDER).filter(|name| !name.is_empty());
        let name = name.or((path == ROOT).then_some(""));
        let file = CONSOLE.iter().find(|(known, _)| Some(*known) == name);
        let missing = || Failure::new(StatusCode::NOT_FOUND, "NOT_FOUND", "Endpoint not found");
        file.ok_or_else(missing)?.1.answer(&parts.headers)
    };
    answer.headers_mut().extend(HEADERS);
    Ok(answer)
}

/// `{"version", "token", "respPort"}`. The token is that of a server where it keeps nobody out.
fn facts(config: &Config) -> String {
    let is_open = config.web.is_local || config.test_mode;
    let token = Token::development();
    let token = match is_open {
        true => format!("\"{}\"", token.reveal()),
        false => "null".to_owned(),
    };
    let address = config.resp.as_ref().and_then(|resp| resp.listen.first());
    let port = address.map_or("null".to_owned(), |address| address.port().to_string());
    format!("{{\"version\":\"{VERSION}\",\"token\":{token},\"respPort\":{port}}}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The most that a browser may have to load, compressed.
    const BYTES_MAX: usize = 300_000;

    fn files_below(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                files_below(&entry.path(), &format!("{name}/"), found);
            } else if [".js", ".css", ".svg"]
                .iter()
                .any(|end| name.ends_with(end))
            {
                found.push(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_console_is_served_and_all_together_are_small() {
        let mut there = Vec::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
        files_below(&folder, "", &mut there);
        there.sort();
        let mut listed: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        assert_eq!(listed, there);
        let bytes: usize = CONSOLE
            .iter()
            .map(|(_, file)| file.compressed_bytes())
            .sum();
        assert!(bytes < BYTES_MAX, "{bytes}");
    }
}
