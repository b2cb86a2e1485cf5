//! How a request fails: status, code, text and details, as EventoDB words them.

use hyper::StatusCode;
use hyper::header::HeaderValue;
use trefoil::{Denial, Error};

use crate::json::{put_number, put_string};

/// A result whose error becomes the answer to a request.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a request was refused or failed, as its sender is told.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// The members of a JSON object, without its braces; empty if there are none.
    details: Vec<u8>,
    /// The methods that are allowed where another one is not.
    pub(crate) allow: Option<HeaderValue>,
    /// Where the namespace is, if it is on another node: then nothing was done.
    pub(crate) elsewhere: Option<Box<Elsewhere>>,
}

/// A namespace that is on another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    pub(crate) namespace: String,
    /// Where its node is, if that is known.
    pub(crate) owner: Option<String>,
}

/// After how many seconds a refused request may be sent again.
pub(crate) const RETRY_AFTER_SECONDS: &str = "1";

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            code,
            message,
            details: Vec::new(),
            allow: None,
            elsewhere: None,
        }
    }

    /// A method that the endpoint does not have.
    pub(crate) fn method_not_allowed(allowed: &[&str]) -> Self {
        let message = format!("Only {} method allowed", allowed.join(" or "));
        let mut failure = Self::new(StatusCode::METHOD_NOT_ALLOWED, "INVALID_REQUEST", message);
        failure.allow = HeaderValue::from_str(&allowed.join(", ")).ok();
        failure
    }

    /// A request that breaks a rule or a limit.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", message)
    }

    /// A token that does not allow what was asked for.
    pub(crate) fn unauthorized(message: &str, namespace: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "AUTH_UNAUTHORIZED", message)
            .with_text("namespace", namespace)
    }

    /// More work than a named limit allows.
    pub(crate) fn overloaded(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED", message)
    }

    /// A part of the server that did not do its work.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
    }

    /// Adds a text to the details.
    #[must_use]
    pub(crate) fn with_text(mut self, name: &str, value: &str) -> Self {
        self.put_name(name);
        put_string(&mut self.details, value);
        self
    }

    /// Adds a number to the details.
    #[must_use]
    pub(crate) fn with_number(mut self, name: &str, value: impl itoa::Integer) -> Self {
        self.put_name(name);
        put_number(&mut self.details, value);
        self
    }

    /// Adds to the details what a token does not permit.
    fn with_denial(self, denial: &Denial) -> Self {
        match denial {
            Denial::Scope(scope) => self.with_text("scope", scope.name()),
            Denial::Unnamed => self,
            Denial::Stream(name) => self.with_text("stream", name),
            Denial::Key(name) => self.with_text("key", name),
        }
    }

    /// Says what was being done, if the store failed to do it.
    #[must_use]
    pub(crate) fn while_doing(mut self, what: &str) -> Self {
        if self.status.is_server_error() {
            self.message = format!("{what}: {}", self.message);
        }
        self
    }

    /// Says why the right node could not be asked.
    #[must_use]
    pub(crate) fn because(mut self, why: &str) -> Self {
        self.message = format!("{}; it was looked for, in vain: {why}", self.message);
        self
    }

    fn put_name(&mut self, name: &str) {
        if !self.details.is_empty() {
            self.details.push(b',');
        }
        put_string(&mut self.details, name);
        self.details.push(b':');
    }

    /// The body of the answer.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.message.len() + self.details.len());
        out.extend_from_slice(b"{\"error\":{\"code\":");
        put_string(&mut out, self.code);
        out.extend_from_slice(b",\"message\":");
        put_string(&mut out, &self.message);
        if !self.details.is_empty() {
            out.extend_from_slice(b",\"details\":{");
            out.extend_from_slice(&self.details);
            out.push(b'}');
        }
        out.extend_from_slice(b"}}");
        out
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let new = |status, code| Self::new(status, code, message);
        match error {
            Error::Invalid(_) => new(StatusCode::BAD_REQUEST, "INVALID_REQUEST"),
            Error::DataTooLarge { .. } => new(StatusCode::PAYLOAD_TOO_LARGE, "INVALID_REQUEST"),
            Error::VersionConflict {
                expected, actual, ..
            } => new(StatusCode::CONFLICT, "STREAM_VERSION_CONFLICT")
                .with_number("actual", actual)
                .with_number("expected", expected),
            Error::ConditionFailed {
                condition,
                position,
            } => new(StatusCode::CONFLICT, "CONDITION_FAILED")
                .with_number("condition", condition as u64)
                .with_number("globalPosition", position),
            Error::TrackingConflict {
                source_name,
                position,
                recorded,
            } => new(StatusCode::CONFLICT, "TRACKING_CONFLICT")
                .with_text("source", &source_name)
                .with_number("position", position)
                .with_number("recorded", recorded),
            Error::WatchedKeyChanged => new(StatusCode::CONFLICT, "WATCHED_KEY_CHANGED"),
            Error::GuardFailed { guard } => {
                new(StatusCode::CONFLICT, "GUARD_FAILED").with_number("condition", guard as u64)
            }
            Error::CommandFailed { index, .. } => {
                new(StatusCode::CONFLICT, "COMMAND_FAILED").with_number("command", index as u64)
            }
            Error::DuplicateId { id, .. } => {
                new(StatusCode::CONFLICT, "DUPLICATE_ID").with_text("id", &id.to_string())
            }
            Error::RepeatedId(id) => {
                new(StatusCode::CONFLICT, "DUPLICATE_ID").with_text("id", &id.to_string())
            }
            Error::PositionExists(_) => new(StatusCode::CONFLICT, "POSITION_EXISTS"),
            Error::ImportRefused(_) => new(StatusCode::BAD_REQUEST, "IMPORT_FAILED"),
            Error::ImportStopped { error, .. } => Self::from(*error),
            Error::NamespaceNotFound(_) => new(StatusCode::NOT_FOUND, "NAMESPACE_NOT_FOUND"),
            Error::NamespaceExists(_) => new(StatusCode::CONFLICT, "NAMESPACE_EXISTS"),
            Error::TokenNotFound(_) => new(StatusCode::NOT_FOUND, "TOKEN_NOT_FOUND"),
            Error::TokenExists(_) => new(StatusCode::CONFLICT, "TOKEN_EXISTS"),
            Error::Forbidden { token, denial } => {
                let failure = new(StatusCode::FORBIDDEN, "FORBIDDEN");
                failure.with_text("token", &token).with_denial(&denial)
            }
            Error::QuotaExceeded { quota, limit } => {
                new(StatusCode::TOO_MANY_REQUESTS, "QUOTA_EXCEEDED")
                    .with_text("quota", quota)
                    .with_number("limit", limit)
            }
            Error::Overloaded(_) => new(StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED"),
            Error::Closed(_) => new(StatusCode::SERVICE_UNAVAILABLE, "CLOSED"),
            Error::DiskFull(_) => new(StatusCode::INSUFFICIENT_STORAGE, "DISK_FULL"),
            Error::Internal(_) => new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR"),
            Error::NotOwner { namespace, owner } => {
                let failure = new(StatusCode::MISDIRECTED_REQUEST, "WRONG_NODE");
                let mut failure = failure.with_text("namespace", &namespace);
                if let Some(owner) = &owner {
                    failure = failure.with_text("owner", owner);
                }
                failure.elsewhere = Some(Box::new(Elsewhere { namespace, owner }));
                failure
            }
            Error::Unknown { .. } => new(StatusCode::INTERNAL_SERVER_ERROR, "OUTCOME_UNKNOWN"),
            Error::Damaged(_) => new(StatusCode::INTERNAL_SERVER_ERROR, "DAMAGED"),
            _ => new(StatusCode::INTERNAL_SERVER_ERROR, "BACKEND_ERROR"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    #[test]
    fn a_failure_is_worded_as_eventodb_words_it() {
        let conflict = Error::VersionConflict {
            condition: 0,
            stream: "account-1".into(),
            expected: 5,
            actual: 1,
        };
        let expected = r#"{"error":{"code":"STREAM_VERSION_CONFLICT","message":"Expected version 5, stream is at version 1","details":{"actual":1,"expected":5}}}"#;
        assert_eq!(Failure::from(conflict).to_json(), expected.as_bytes());
        let plain = Failure::invalid("a \"quoted\" text").to_json();
        let expected = r#"{"error":{"code":"INVALID_REQUEST","message":"a \"quoted\" text"}}"#;
        assert_eq!(plain, expected.as_bytes());
    }

    #[test]
    fn a_request_to_the_wrong_node_is_told_which_one_is_right() {
        let elsewhere = |owner: Option<&str>| {
            let error = Error::NotOwner {
                namespace: "shop".into(),
                owner: owner.map(str::to_owned),
            };
            String::from_utf8(Failure::from(error).to_json()).unwrap()
        };
        let known = r#"{"error":{"code":"WRONG_NODE","message":"namespace 'shop' is on another node: 10.0.0.2:8080","details":{"namespace":"shop","owner":"10.0.0.2:8080"}}}"#;
        assert_eq!(elsewhere(Some("10.0.0.2:8080")), known);
        let unknown = r#"{"error":{"code":"WRONG_NODE","message":"namespace 'shop' is on another node","details":{"namespace":"shop"}}}"#;
        assert_eq!(elsewhere(None), unknown);
    }

    /// What `docs/http.md` says of an error.
    struct Documented {
        http: String,
        grpc: String,
        resp: String,
        send_again: String,
    }

    /// The rows of the table of errors, by code. Some rows have several codes.
    fn documented() -> BTreeMap<String, Documented> {
        let page = include_str!("../../../docs/http.md");
        let table = page.split("| Code | HTTP | gRPC | RESP |").nth(1).unwrap();
        let rows = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        let mut all = BTreeMap::new();
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for code in cells[1].split(", ") {
                let documented = Documented {
                    http: cells[2].to_owned(),
                    grpc: cells[3].to_owned(),
                    resp: cells[4].to_owned(),
                    send_again: cells[6].to_owned(),
                };
                all.insert(code.trim_matches('`').to_owned(), documented);
            }
        }
        all
    }

    /// Every code that stands beside a status in the sources of this crate.
    fn codes_in(folder: &Path, found: &mut BTreeSet<String>) {
        let is_code = |text: &str| {
            text.len() > 3
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        };
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                codes_in(&path, found);
            } else if path.extension() == Some("rs".as_ref()) {
                let text = std::fs::read_to_string(&path).unwrap();
                let text: String = text.split_whitespace().collect();
                let text = text.split("#[cfg(test)]modtests").next().unwrap();
                // Either `StatusCode::X, "CODE"` or `"CODE", StatusCode::X`.
                for (before, after) in text
                    .match_indices("StatusCode::")
                    .map(|(at, _)| text.split_at(at))
                {
                    let after = after.split('"').nth(1).filter(|_| {
                        let comma = after.find(",\"");
                        comma.is_some_and(|comma| is_code(&after["StatusCode::".len()..comma]))
                    });
                    let before = before
                        .strip_suffix("\",")
                        .and_then(|text| text.rsplit('"').next());
                    let codes = [after, before]
                        .into_iter()
                        .flatten()
                        .filter(|code| is_code(code));
                    found.extend(codes.map(str::to_owned));
                }
            }
        }
    }

    /// Errors that no answer over HTTP begins with: they are told by RESP alone, or while a file is
    /// imported.
    const NOT_OVER_HTTP: [&str; 3] = ["IMPORT_FAILED", "POSITION_EXISTS", "WATCHED_KEY_CHANGED"];

    #[test]
    fn every_code_is_documented_and_described() {
        let mut codes = BTreeSet::new();
        codes_in(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut codes,
        );
        // Its status is that of what stopped the import.
        codes.insert("CLEAR_FAILED".to_owned());
        codes.retain(|code| !NOT_OVER_HTTP.contains(&code.as_str()));
        assert!(codes.len() > 30, "{codes:?}");
        let rows: BTreeSet<String> = documented().into_keys().collect();
        assert_eq!(codes, rows);
        let document: Value = serde_json::from_str(include_str!("openapi/document.json")).unwrap();
        let described = document["components"]["schemas"]["ErrorCode"]["enum"].as_array();
        let described = described.unwrap().iter();
        let described: BTreeSet<String> = described
            .map(|code| code.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(described, rows);
    }

    /// One error of each kind that clients are told of.
    fn errors() -> Vec<Error> {
        let id = trefoil::EventId::nil();
        let text = || "x".to_owned();
        let elsewhere = Error::NotOwner {
            namespace: text(),
            owner: None,
        };
        vec![
            Error::invalid("x"),
            Error::DataTooLarge { bytes: 2, limit: 1 },
            Error::VersionConflict {
                condition: 0,
                stream: text(),
                expected: 1,
                actual: 2,
            },
            Error::ConditionFailed {
                condition: 0,
                position: 1,
            },
            Error::TrackingConflict {
                source_name: text(),
                position: 1,
                recorded: 1,
            },
            Error::GuardFailed { guard: 0 },
            Error::CommandFailed {
                index: 0,
                text: text(),
            },
            Error::DuplicateId { id, position: 1 },
            Error::RepeatedId(id),
            Error::NamespaceNotFound(text()),
            Error::NamespaceExists(text()),
            Error::TokenNotFound(text()),
            Error::TokenExists(text()),
            Error::QuotaExceeded {
                quota: "x",
                limit: 1,
            },
            Error::Forbidden {
                token: text(),
                denial: Denial::Unnamed,
            },
            Error::Overloaded(text()),
            Error::Closed(text()),
            Error::DiskFull(text()),
            Error::Internal(text()),
            Error::Poisoned(text()),
            Error::result_lost("x"),
            elsewhere,
        ]
    }

    #[test]
    fn every_error_is_told_as_documented_by_every_protocol() {
        let rows = documented();
        for error in errors() {
            let is_unknown = matches!(error, Error::Unknown { .. });
            let may_send = error.is_retryable();
            let grpc = crate::grpc::code_of(&error);
            let resp = match crate::resp::reply_of(&error) {
                trefoil::Reply::Error(text) => text.split(' ').next().unwrap().to_owned(),
                _ => "nil".to_owned(),
            };
            let Failure { code, status, .. } = Failure::from(error);
            let Some(row) = rows.get(code) else {
                panic!("{code} is not documented");
            };
            assert!(row.http.contains(status.as_str()), "{code}: {status}");
            assert!(
                row.grpc.is_empty() || row.grpc.contains(grpc),
                "{code}: {grpc}"
            );
            assert!(
                row.resp.is_empty() || row.resp.contains(&resp),
                "{code}: {resp}"
            );
            // What has done nothing may be sent again; of what may have happened nothing may say so.
            let says_so = row.send_again.starts_with("yes") || row.send_again.starts_with("when");
            assert_eq!(says_so, may_send, "{code}: {}", row.send_again);
            assert_eq!(grpc == "UNKNOWN" && resp == "UNKNOWN", is_unknown, "{code}");
        }
    }

    #[test]
    fn every_kind_of_error_has_its_status() {
        let cases = [
            (Error::Overloaded("x".into()), 503, "OVERLOADED"),
            (Error::DiskFull("x".into()), 507, "DISK_FULL"),
            (Error::Poisoned("x".into()), 500, "BACKEND_ERROR"),
            (Error::Closed("x".into()), 503, "CLOSED"),
            (Error::Internal("x".into()), 500, "INTERNAL_ERROR"),
            (Error::result_lost("x"), 500, "OUTCOME_UNKNOWN"),
            (
                Error::NamespaceNotFound("x".into()),
                404,
                "NAMESPACE_NOT_FOUND",
            ),
            (Error::NamespaceExists("x".into()), 409, "NAMESPACE_EXISTS"),
        ];
        for (error, status, code) in cases {
            let failure = Failure::from(error);
            assert_eq!((failure.status.as_u16(), failure.code), (status, code));
        }
    }
}
