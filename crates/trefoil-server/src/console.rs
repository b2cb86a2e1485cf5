//! `/`: the console, a web page whose files are part of the binary.
//!
//! The files are open. What the page shows comes from the API and needs a token. A server whose token
//! is no secret tells it to the page in `/console.json`.

use std::io::Write as _;
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use trefoil::Token;
use uuid::Uuid;

use crate::error::{Failure, Result};
use crate::response::{self, HttpAnswer, HttpBody};
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
    "pages/event.js",
    "pages/names.js",
    "pages/namespaces.js",
    "pages/overview.js",
    "pages/query.js",
    "pages/seats.js",
    "pages/state.js",
    "pages/stream.js",
    "pages/streams.js",
    "pages/tail.js",
    "pages/write.js",
    "parts/basics.js",
    "parts/chart.js",
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

/// What the browser is told about every file: it runs no script but these, shows the page in no
/// frame, tells nobody where it was, and asks whether it has the newest version.
const HEADERS: [(HeaderName, HeaderValue); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             object-src 'none'; require-trusted-types-for 'script'",
        ),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
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
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    (header::VARY, HeaderValue::from_static("accept-encoding")),
];

/// A file as it is sent.
#[derive(Debug)]
struct ConsoleFile {
    name: &'static str,
    content_type: HeaderValue,
    version: HeaderValue,
    plain: Bytes,
    compressed: Bytes,
}

/// Made when the first browser asks.
static CONSOLE: LazyLock<Vec<ConsoleFile>> = LazyLock::new(|| {
    let all = FILES.iter().copied().chain([CLIENT, ("", PAGE)]);
    all.map(|(name, body)| ConsoleFile::new(name, body))
        .collect()
});

impl ConsoleFile {
    fn new(name: &'static str, body: &'static [u8]) -> Self {
        let content_type = match name.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        let version = format!(
            "W/\"{}\"",
            Uuid::new_v5(&Uuid::NAMESPACE_OID, body).simple()
        );
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing into a buffer in memory does not fail.
        let _ = encoder.write_all(body);
        Self {
            name,
            content_type: HeaderValue::from_static(content_type),
            version: HeaderValue::try_from(version).unwrap_or(HeaderValue::from_static("W/\"\"")),
            plain: Bytes::from_static(body),
            compressed: encoder.finish().unwrap_or_default().into(),
        }
    }

    fn answer(&self, headers: &HeaderMap) -> HttpAnswer {
        let is_known = headers.get(header::IF_NONE_MATCH) == Some(&self.version);
        let is_compressed = response::accepts_gzip(headers);
        let (status, body) = match (is_known, is_compressed) {
            (true, _) => (StatusCode::NOT_MODIFIED, Bytes::new()),
            (false, true) => (StatusCode::OK, self.compressed.clone()),
            (false, false) => (StatusCode::OK, self.plain.clone()),
        };
        let content_type = self.content_type.clone();
        let mut answer = response::answer(status, content_type, HttpBody::Whole(body));
        let headers = answer.headers_mut();
        headers.extend(HEADERS);
        headers.insert(header::ETAG, self.version.clone());
        if is_compressed && !is_known {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        answer
    }
}

/// Returns whether a path belongs to the console.
pub(crate) fn has(path: &str) -> bool {
    path == ROOT || path == FACTS || path.starts_with(FOLDER)
}

/// The file, or what the page needs to know about the server.
pub(crate) fn answer(shared: &Shared, parts: &Parts) -> Result<HttpAnswer> {
    let path = parts.uri.path();
    if path == FACTS {
        let mut answer = response::json(facts(&shared.config));
        answer.headers_mut().extend(HEADERS);
        return Ok(answer);
    }
    let name = path.strip_prefix(FOLDER).filter(|name| !name.is_empty());
    let name = name.or((path == ROOT).then_some(""));
    let file = CONSOLE.iter().find(|file| Some(file.name) == name);
    match file {
        Some(file) => Ok(file.answer(&parts.headers)),
        None => Err(Failure::new(
            StatusCode::NOT_FOUND,
            "NOT_FOUND",
            "Endpoint not found",
        )),
    }
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
        let bytes: usize = CONSOLE.iter().map(|file| file.compressed.len()).sum();
        assert!(bytes < BYTES_MAX, "{bytes}");
    }

    #[test]
    fn a_browser_that_has_a_file_is_told_so() {
        let file = &CONSOLE[0];
        let mut headers = HeaderMap::new();
        assert_eq!(file.answer(&headers).status(), StatusCode::OK);
        headers.insert(header::IF_NONE_MATCH, file.version.clone());
        let again = file.answer(&headers);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(again.headers()[header::ETAG], file.version);
        headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("W/\"old\""));
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("gzip, br"),
        );
        let newer = file.answer(&headers);
        assert_eq!(newer.status(), StatusCode::OK);
        assert_eq!(newer.headers()[header::CONTENT_ENCODING], "gzip");
    }
}
