//! What the libraries below say, in the words of the contract.

use slatedb::{CloseReason, ErrorKind};
use trefoil_kv::contract::KvError;

/// Returns what an error of a read, or of opening, means.
pub(crate) fn of_read(error: &slatedb::Error) -> KvError {
    match error.kind() {
        ErrorKind::Closed(CloseReason::Fenced) => KvError::Fenced,
        ErrorKind::Closed(_) | ErrorKind::Unavailable => KvError::Unavailable(error.to_string()),
        // A writer whose clock is ahead has written since this one looked. It can look again.
        _ if error.to_string().contains("invalid clock tick") => {
            KvError::Unavailable(error.to_string())
        }
        _ => KvError::Damaged(error.to_string()),
    }
}

/// Returns whether opening failed because another one opened at the same time: both write the next version
/// of an object, and the second is too late.
pub(crate) fn is_too_late(error: &slatedb::Error) -> bool {
    error.to_string().contains("version already exists")
}

/// Returns what an error of a write that was on its way means: it may be there all the same.
pub(crate) fn of_write(error: &slatedb::Error) -> KvError {
    match error.kind() {
        ErrorKind::Closed(CloseReason::Fenced) => KvError::Fenced,
        _ => KvError::Unknown(error.to_string()),
    }
}

/// Returns what an error of a call that changes nothing means.
pub(crate) fn of_get(error: &object_store::Error) -> KvError {
    KvError::Unavailable(explained(error))
}

/// Returns what an error of a call that changes an object means.
pub(crate) fn of_put(error: &object_store::Error) -> KvError {
    use object_store::Error::{InvalidPath, NotImplemented, NotSupported};
    use object_store::Error::{PermissionDenied, Unauthenticated};
    match error {
        InvalidPath { .. }
        | NotImplemented { .. }
        | NotSupported { .. }
        | PermissionDenied { .. }
        | Unauthenticated { .. } => KvError::Unavailable(explained(error)),
        _ => KvError::Unknown(explained(error)),
    }
}

/// Returns an error with what caused it, of which the library shows only the first.
pub(crate) fn explained(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
