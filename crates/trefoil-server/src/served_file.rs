//! Files that are part of the binary, as they are sent: a client that has the newest version is told
//! so, and one that takes gzip gets what was compressed before.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::response::{self, HttpAnswer, HttpBody};

/// What is said of every file: that it is what it says, and that it is to be asked for again.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    (header::VARY, HeaderValue::from_static("accept-encoding")),
];

/// A file as it is sent.
#[derive(Debug)]
pub(crate) struct ServedFile {
    content_type: HeaderValue,
    version: HeaderValue,
    plain: Bytes,
    compressed: Bytes,
}

impl ServedFile {
    pub(crate) fn new(content_type: HeaderValue, plain: Bytes) -> Self {
        let version = Uuid::new_v5(&Uuid::NAMESPACE_OID, &plain);
        let version = format!("W/\"{}\"", version.simple());
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing into a buffer in memory does not fail.
        let _ = encoder.write_all(&plain);
        Self {
            content_type,
            version: HeaderValue::try_from(version).unwrap_or(HeaderValue::from_static("W/\"\"")),
            plain,
            compressed: encoder.finish().unwrap_or_default().into(),
        }
    }

    /// Returns how many bytes a client that takes gzip has to load.
    #[cfg(test)]
    pub(crate) fn compressed_bytes(&self) -> usize {
        self.compressed.len()
    }

    /// The answer to a request with these headers.
    pub(crate) fn answer(&self, headers: &HeaderMap) -> HttpAnswer {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_has_a_file_is_told_so() {
        let file = ServedFile::new(
            HeaderValue::from_static("text/plain"),
            Bytes::from_static(b"text"),
        );
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
