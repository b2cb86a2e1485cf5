//! What an engine says, as errors of the database.

use std::path::PathBuf;

use trefoil_core::{Cause, Damage, Error};

use crate::contract::KvError;

use super::keys::{letter_of, number_of};

/// Returns what says that a call failed that was to do `what`.
pub(super) fn failed(what: &'static str) -> impl Fn(KvError) -> Error {
    move |error| match error {
        KvError::Fenced => lost(),
        KvError::Unknown(text) => unknown(what, &text),
        KvError::TooLarge { limit } => {
            Error::Invalid(format!("{what}: the engine takes {limit} bytes at most"))
        }
        KvError::Unavailable(text) => Error::failed(what, Cause::new(text)),
        KvError::Damaged(text) => damage(PathBuf::from("store"), 0, format!("{what}: {text}")),
    }
}

/// Returns what says that nobody knows whether something was written.
pub(super) fn unknown(what: &str, text: &str) -> Error {
    Error::result_lost(format!("{what}: {text}"))
}

/// Returns what says that another writer has the store, or that it must be opened again.
pub(super) fn lost() -> Error {
    Error::Closed("another node has the namespace, or it must be opened again".to_owned())
}

/// Returns what says that the value of a key is wrong.
pub(super) fn damaged(key: &[u8], what: &str) -> Error {
    let letter = char::from(letter_of(key));
    let number = number_of(key);
    let position = match letter {
        'i' => number,
        _ => 0,
    };
    damage(PathBuf::from(format!("{letter} {number}")), position, what)
}

/// Returns what says that the log lacks something.
pub(super) fn damaged_log(position: u64, what: impl Into<String>) -> Error {
    damage(PathBuf::from("log"), position, what)
}

fn damage(file: PathBuf, position: u64, what: impl Into<String>) -> Error {
    Error::Damaged(Box::new(Damage {
        file,
        offset: 0,
        position,
        what: what.into(),
        help: "run `trefoil verify` to see all damage".to_owned(),
    }))
}
