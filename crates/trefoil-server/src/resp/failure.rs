//! Errors as RESP tells them: a code that clients act upon, then a text.

use trefoil::{Error, Reply};

use super::words::error;
use crate::error::Failure;

/// An error of the database.
pub(crate) fn of_error(failure: &Error) -> Reply {
    match failure {
        // What Redis answers to an `EXEC` that was not carried out.
        Error::WatchedKeyChanged | Error::GuardFailed { .. } => Reply::NilArray,
        Error::CommandFailed { .. } => error(format!(
            "EXECABORT Transaction rolled back because {failure}"
        )),
        Error::VersionConflict {
            stream,
            expected,
            actual,
            ..
        } => error(format!(
            "CONFLICT Expected version {expected}, stream '{stream}' is at version {actual}"
        )),
        Error::ConditionFailed { .. }
        | Error::DuplicateId { .. }
        | Error::RepeatedId(_)
        | Error::TrackingConflict { .. } => error(format!("CONFLICT {failure}")),
        Error::Overloaded(_) => error(format!("BUSY {failure}")),
        Error::QuotaExceeded { .. } => error(format!("QUOTA {failure}")),
        Error::Forbidden { .. } => error(format!("NOPERM {failure}")),
        Error::Poisoned(_) => error(format!("READONLY {failure}")),
        Error::Unknown { .. } => error(format!("UNKNOWN {failure}")),
        Error::NotOwner { .. } => error(format!("WRONGNODE {failure}")),
        _ => error(format!("ERR {failure}")),
    }
}

/// A refusal by a part of the server that all protocols share.
pub(super) fn of_failure(failure: &Failure) -> Reply {
    match failure.code {
        "OVERLOADED" => error(format!("BUSY {}", failure.message)),
        "QUOTA_EXCEEDED" => error(format!("QUOTA {}", failure.message)),
        "OUTCOME_UNKNOWN" => error(format!("UNKNOWN {}", failure.message)),
        "WRONG_NODE" => error(format!("WRONGNODE {}", failure.message)),
        _ => error(format!("ERR {}", failure.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_code() {
        let cases = [
            (Error::WatchedKeyChanged, Reply::NilArray),
            (Error::GuardFailed { guard: 1 }, Reply::NilArray),
            (
                Error::CommandFailed {
                    index: 2,
                    text: "ERR no".into(),
                },
                error("EXECABORT Transaction rolled back because command 2 failed: ERR no"),
            ),
            (
                Error::VersionConflict {
                    condition: 0,
                    stream: "a-1".into(),
                    expected: 5,
                    actual: -1,
                },
                error("CONFLICT Expected version 5, stream 'a-1' is at version -1"),
            ),
            (
                Error::ConditionFailed {
                    condition: 1,
                    position: 7,
                },
                error("CONFLICT condition 1 failed: the event at global position 7 matches"),
            ),
            (Error::Overloaded("x".into()), error("BUSY overloaded: x")),
            (Error::invalid("x"), error("ERR x")),
        ];
        for (failure, expected) in cases {
            assert_eq!(of_error(&failure), expected);
        }
        let poisoned = of_error(&Error::Poisoned("x".into()));
        assert!(matches!(poisoned, Reply::Error(text) if text.starts_with("READONLY ")));
        let elsewhere = Error::NotOwner {
            namespace: "x".into(),
            owner: None,
        };
        for (failure, code) in [
            (Error::result_lost("x"), "UNKNOWN"),
            (elsewhere, "WRONGNODE"),
        ] {
            let reply = of_error(&failure);
            assert_eq!(of_failure(&failure.into()), reply);
            let Reply::Error(text) = reply else {
                panic!("{reply:?}");
            };
            assert_eq!(text.split(' ').next(), Some(code));
        }
    }
}
