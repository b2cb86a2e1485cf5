//! Errors as gRPC tells them: a code, a text, and both again as an `ErrorResponse` in the details,
//! where UmaDB's clients look for them.

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use prost::Message as _;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use trefoil::Error;
use trefoil_grpc::{ErrorResponse, ErrorType};

use crate::error::Failure;
use crate::peers::WRONG_NODE;
use crate::visits::NOT_GRANTED;

/// A result whose error ends a call.
pub(super) type Result<T, E = Box<Status>> = std::result::Result<T, E>;

/// A status with its details. The text begins as UmaDB's texts of this kind do.
pub(super) fn status(
    code: Code,
    error_type: ErrorType,
    message: impl std::fmt::Display,
) -> Box<Status> {
    let kind = match error_type {
        ErrorType::Io => "io error",
        ErrorType::Serialization => "serialization error",
        ErrorType::Integrity => "integrity error: condition failed",
        ErrorType::Corruption => "corruption detected",
        ErrorType::Internal => "internal error",
        ErrorType::Authentication => "authentication error",
        ErrorType::InvalidArgument => "invalid argument",
    };
    let details = ErrorResponse {
        message: format!("{kind}: {message}"),
        error_type: error_type.into(),
    };
    let encoded = details.encode_to_vec();
    Box::new(Status::with_details(code, details.message, encoded.into()))
}

/// A request that breaks a rule.
pub(super) fn invalid(message: impl std::fmt::Display) -> Box<Status> {
    status(Code::InvalidArgument, ErrorType::InvalidArgument, message)
}

/// A request that is not the message it should be.
pub(super) fn malformed(message_name: &str) -> Box<Status> {
    let text = format!("the request is not a valid {message_name}");
    status(Code::InvalidArgument, ErrorType::Serialization, text)
}

/// Nothing was done, because the namespace is on another node. Says which one, if that is known.
fn wrong_node(owner: Option<&str>, message: impl std::fmt::Display) -> Box<Status> {
    let mut status = status(Code::Unavailable, ErrorType::Io, message);
    let owner = HeaderValue::from_str(owner.unwrap_or_default());
    let owner = owner.unwrap_or(HeaderValue::from_static(""));
    let headers = HeaderMap::from_iter([(WRONG_NODE, owner)]);
    *status.metadata_mut() = MetadataMap::from_headers(headers);
    status
}

/// Nothing was done here, and the namespace may be on another node.
pub(super) fn elsewhere(message: &str) -> Box<Status> {
    wrong_node(None, message)
}

/// Returns whether nothing was done because the namespace is on another node.
pub(super) fn is_elsewhere(status: &Status) -> bool {
    status.metadata().contains_key(WRONG_NODE.as_str())
}

/// Returns which node that is, if it is known.
pub(super) fn owner_in(status: &Status) -> Option<&str> {
    let owner = status.metadata().get(WRONG_NODE.as_str())?;
    owner.to_str().ok().filter(|owner| !owner.is_empty())
}

/// The token of a call that is under way does not count any more.
pub(super) fn not_granted() -> Box<Status> {
    status(
        Code::Unauthenticated,
        ErrorType::Authentication,
        NOT_GRANTED,
    )
}

/// An error of the database.
pub(super) fn of_error(error: &Error) -> Box<Status> {
    let (code, error_type) = match error {
        Error::Invalid(_) | Error::DataTooLarge { .. } | Error::ImportRefused(_) => {
            (Code::InvalidArgument, ErrorType::InvalidArgument)
        }
        Error::VersionConflict { .. }
        | Error::ConditionFailed { .. }
        | Error::TrackingConflict { .. }
        | Error::DuplicateId { .. }
        | Error::RepeatedId(_)
        | Error::PositionExists(_) => (Code::FailedPrecondition, ErrorType::Integrity),
        Error::NamespaceNotFound(_) => (Code::NotFound, ErrorType::Io),
        Error::Forbidden { .. } => (Code::PermissionDenied, ErrorType::Authentication),
        Error::Overloaded(_) | Error::Closed(_) | Error::NotOwner { .. } => {
            (Code::Unavailable, ErrorType::Io)
        }
        Error::DiskFull(_) | Error::QuotaExceeded { .. } => {
            (Code::ResourceExhausted, ErrorType::Io)
        }
        Error::Unknown { .. } => (Code::Unknown, ErrorType::Io),
        Error::Damaged(_) => (Code::DataLoss, ErrorType::Corruption),
        Error::Internal(_) => (Code::Internal, ErrorType::Internal),
        _ => (Code::Internal, ErrorType::Io),
    };
    match error {
        Error::NotOwner { owner, .. } => wrong_node(owner.as_deref(), error),
        // The text of the kind says it already.
        Error::Internal(text) => status(code, error_type, text),
        // An append has one condition: there is no need to say which one failed.
        Error::ConditionFailed { position, .. } => {
            let text = format!("the event at position {position} matches");
            status(code, error_type, text)
        }
        _ => status(code, error_type, error),
    }
}

/// A refusal by a part of the server that HTTP and gRPC share.
pub(super) fn of_failure(failure: Failure) -> Box<Status> {
    if let Some(elsewhere) = &failure.elsewhere {
        return wrong_node(elsewhere.owner.as_deref(), failure.message);
    }
    let (code, error_type) = match failure.status {
        _ if failure.code == "OUTCOME_UNKNOWN" => (Code::Unknown, ErrorType::Io),
        _ if failure.code == "FORBIDDEN" => (Code::PermissionDenied, ErrorType::Authentication),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            (Code::Unauthenticated, ErrorType::Authentication)
        }
        StatusCode::NOT_FOUND => (Code::NotFound, ErrorType::Io),
        StatusCode::PAYLOAD_TOO_LARGE => (Code::OutOfRange, ErrorType::InvalidArgument),
        StatusCode::REQUEST_TIMEOUT => (Code::DeadlineExceeded, ErrorType::Io),
        StatusCode::SERVICE_UNAVAILABLE => (Code::Unavailable, ErrorType::Io),
        StatusCode::INSUFFICIENT_STORAGE | StatusCode::TOO_MANY_REQUESTS => {
            (Code::ResourceExhausted, ErrorType::Io)
        }
        status if status.is_client_error() => (Code::InvalidArgument, ErrorType::InvalidArgument),
        _ => (Code::Internal, ErrorType::Internal),
    };
    status(code, error_type, failure.message)
}

/// The names of the codes, in the order of their numbers.
pub(crate) const CODE_NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Returns the name of the code of an error.
#[cfg(test)]
pub(crate) fn code_of(error: &Error) -> &'static str {
    name(of_error(error).code())
}

/// The name of a code, as metrics and the log show it.
pub(super) fn name(code: Code) -> &'static str {
    CODE_NAMES[code as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_code_and_says_it_in_the_details() {
        let cases = [
            (Error::invalid("x"), Code::InvalidArgument, 6),
            (
                Error::ConditionFailed {
                    condition: 0,
                    position: 1,
                },
                Code::FailedPrecondition,
                2,
            ),
            (Error::Overloaded("x".into()), Code::Unavailable, 0),
            (Error::Closed("x".into()), Code::Unavailable, 0),
            (
                Error::NotOwner {
                    namespace: "x".into(),
                    owner: None,
                },
                Code::Unavailable,
                0,
            ),
            (Error::result_lost("x"), Code::Unknown, 0),
            (Error::DiskFull("x".into()), Code::ResourceExhausted, 0),
            (Error::Poisoned("x".into()), Code::Internal, 0),
            (Error::Internal("x".into()), Code::Internal, 4),
        ];
        for (error, code, error_type) in cases {
            let status = of_error(&error);
            assert_eq!(status.code(), code, "{error}");
            let details = ErrorResponse::decode(status.details()).unwrap();
            assert_eq!(details.error_type, error_type, "{error}");
            assert_eq!(details.message, status.message());
        }
        for error in [
            Error::result_lost("x"),
            Error::NotOwner {
                namespace: "x".into(),
                owner: Some("y".into()),
            },
        ] {
            let direct = of_error(&error);
            let shared = of_failure(error.into());
            assert_eq!(shared.code(), direct.code());
            assert_eq!(shared.message(), direct.message());
        }
    }

    #[test]
    fn codes_have_their_names() {
        assert_eq!(name(Code::Ok), "OK");
        assert_eq!(name(Code::Aborted), "ABORTED");
        assert_eq!(name(Code::Unauthenticated), "UNAUTHENTICATED");
    }

    #[test]
    fn a_tracking_conflict_is_worded_as_umadb_words_it() {
        let error = Error::TrackingConflict {
            source_name: "s".into(),
            position: 5,
            recorded: 6,
        };
        let expected = "integrity error: condition failed: non-increasing tracking position for \
                        source 's': 5 <= 6";
        assert_eq!(of_error(&error).message(), expected);
    }
}
