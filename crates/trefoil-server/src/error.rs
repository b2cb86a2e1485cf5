//! How a request fails: status, code, text and details, as EventoDB words them.

use hyper::StatusCode;
use hyper::header::HeaderValue;
use trefoil::Error;

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

    /// Says what was being done, if the store failed to do it.
    #[must_use]
    pub(crate) fn while_doing(mut self, what: &str) -> Self {
        if self.status.is_server_error() {
            self.message = format!("{what}: {}", self.message);
        }
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
            Error::Overloaded(_) => new(StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED"),
            Error::Closed(_) => new(StatusCode::SERVICE_UNAVAILABLE, "CLOSED"),
            Error::DiskFull(_) => new(StatusCode::INSUFFICIENT_STORAGE, "DISK_FULL"),
            Error::Internal(_) => new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR"),
            Error::Unknown { .. } => new(StatusCode::INTERNAL_SERVER_ERROR, "OUTCOME_UNKNOWN"),
            Error::Damaged(_) => new(StatusCode::INTERNAL_SERVER_ERROR, "DAMAGED"),
            _ => new(StatusCode::INTERNAL_SERVER_ERROR, "BACKEND_ERROR"),
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn every_kind_of_error_has_its_status() {
        let cases = [
            (Error::Overloaded("x".into()), 503, "OVERLOADED"),
            (Error::DiskFull("x".into()), 507, "DISK_FULL"),
            (Error::Poisoned("x".into()), 500, "BACKEND_ERROR"),
            (Error::Closed("x".into()), 503, "CLOSED"),
            (Error::Internal("x".into()), 500, "INTERNAL_ERROR"),
            (
                Error::Unknown {
                    text: "x".into(),
                    is_disk_full: true,
                    source: None,
                },
                500,
                "OUTCOME_UNKNOWN",
            ),
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
