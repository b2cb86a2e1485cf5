//! What can go wrong, told by what the caller can do about it.

use std::path::PathBuf;

use crate::{Cause, Denial, EventId};

/// A result whose error is [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed.
///
/// The variants are told apart by what the caller can do; the texts are for people and are not an
/// interface.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request itself is wrong: it breaks a rule or a limit that the text names. Do not retry.
    #[error("{0}")]
    Invalid(String),

    /// The data of an event is larger than it may be. Do not retry.
    #[error("event data length is {bytes}, the limit is {limit}")]
    DataTooLarge {
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },

    /// A stream is not at the version the commit expected. Read it again and decide anew.
    #[error("Expected version {expected}, stream is at version {actual}")]
    VersionConflict {
        /// The index of the failed condition in the commit.
        condition: usize,
        /// The stream the condition speaks of.
        stream: String,
        /// The version that was asked for; -1 means "no such stream".
        expected: i64,
        /// The version the stream has.
        actual: i64,
    },

    /// An event that the commit's condition rules out is there. Read again and decide anew.
    #[error("condition {condition} failed: the event at global position {position} matches")]
    ConditionFailed {
        /// The index of the failed condition in the commit.
        condition: usize,
        /// The global position of an event that matches.
        position: u64,
    },

    /// The commit's tracked position is not higher than the one recorded for its source.
    #[error(
        "non-increasing tracking position for source '{source_name}': {position} <= {recorded}"
    )]
    TrackingConflict {
        /// The source.
        source_name: String,
        /// The position that was handed in.
        position: u64,
        /// The position that is recorded.
        recorded: u64,
    },

    /// A key that the transaction watches was changed by somebody else. Read again and decide anew.
    #[error("a watched key was changed")]
    WatchedKeyChanged,

    /// A condition on the state does not hold. Read again and decide anew.
    #[error("condition {guard} on the state does not hold")]
    GuardFailed {
        /// The index of the condition among those on the state.
        guard: usize,
    },

    /// A command of a strict transaction failed, so that nothing of it took effect.
    #[error("command {index} failed: {text}")]
    CommandFailed {
        /// The index of the command in the transaction.
        index: usize,
        /// What it answered.
        text: String,
    },

    /// An event of this namespace already has this id, and the commit is not a repetition of the
    /// one that wrote it.
    #[error("an event with id {id} already exists at global position {position}")]
    DuplicateId {
        /// The id that is taken.
        id: EventId,
        /// The global position of the event that has it.
        position: u64,
    },

    /// Two events of one commit are given the same id. Do not retry.
    #[error("two events of this commit have the id {0}: give each one its own")]
    RepeatedId(EventId),

    /// An imported event claims a global position that is taken.
    #[error("global position already exists: {0}")]
    PositionExists(u64),

    /// An imported event cannot be taken; the text says why.
    #[error("{0}")]
    ImportRefused(String),

    /// An event stops an import: nothing of what was handed in with it was written.
    #[error("{error}")]
    ImportStopped {
        /// The index of the event.
        index: usize,
        /// Why it cannot be taken.
        error: Box<Error>,
    },

    /// There is no such namespace.
    #[error("Namespace '{0}' not found")]
    NamespaceNotFound(String),

    /// There is already a namespace of this name.
    #[error("Namespace '{0}' already exists")]
    NamespaceExists(String),

    /// The namespace has no token of this name.
    #[error("there is no token '{0}'")]
    TokenNotFound(String),

    /// The namespace already has a token of this name.
    #[error("there is already a token '{0}'")]
    TokenExists(String),

    /// The token does not permit this. Do not retry.
    #[error("the token '{token}' {denial}")]
    Forbidden {
        /// The name of the token.
        token: String,
        /// What it does not permit.
        denial: Denial,
    },

    /// The namespace has used up one of its quotas. Retry later, or have the quota raised.
    #[error("the namespace has used up its quota {quota}, which is {limit}")]
    QuotaExceeded {
        /// The name of the quota.
        quota: &'static str,
        /// What it is.
        limit: u64,
    },

    /// More work is waiting than the named limit allows. Retry later.
    #[error("overloaded: {0}")]
    Overloaded(String),

    /// The disk is full: nothing of this commit was written. Writes work again when space returns.
    #[error("no space left on the device: {0}")]
    DiskFull(String),

    /// Something failed while this was being written: nobody knows whether it was. Nothing may send it
    /// again by itself. Read first, or send it with the same ids, which are stored once.
    #[error("it is unknown whether this was written: {text}")]
    Unknown {
        /// What failed.
        text: String,
        /// Whether the disk was full: then the namespace opens itself again.
        is_disk_full: bool,
        /// What the operating system said.
        source: Option<Cause>,
    },

    /// An earlier I/O error made it unknown what is on disk, so writes are refused until the
    /// namespace is opened again. Reads keep working where they can.
    #[error("namespace refuses writes after an I/O error, reopen it to recover: {0}")]
    Poisoned(String),

    /// The server met a fault of its own while it worked on this request. No other request is
    /// affected.
    #[error("internal error: {0}")]
    Internal(String),

    /// Another process has this directory open.
    #[error("{path} is in use by another process")]
    Locked {
        /// The directory or lock file.
        path: PathBuf,
    },

    /// Stored bytes are not what was written.
    #[error("{0}")]
    Damaged(Box<Damage>),

    /// The operating system, or a library that stores data, reported an error.
    #[error("{context}: {source}")]
    Io {
        /// What was being done, with the path.
        context: String,
        /// What was reported.
        source: Cause,
    },

    /// The database was closed, deleted or started a new generation before this was begun: nothing of
    /// it was done.
    #[error("closed: {0}")]
    Closed(String),

    /// Another node has the namespace: nothing of this was done. Send it to that node, or again, when
    /// it may be known who that is.
    #[error("namespace '{namespace}' is on another node{}", place_of(owner.as_deref()))]
    NotOwner {
        /// The namespace.
        namespace: String,
        /// The address of the node that has it, if that is known.
        owner: Option<String>,
    },
}

fn place_of(owner: Option<&str>) -> String {
    owner.map_or_else(String::new, |owner| format!(": {owner}"))
}

/// Where stored bytes are not what was written, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "damaged: {what} in {file} at offset {offset}, global position {position}; {help}",
    file = file.display()
)]
pub struct Damage {
    /// The file, or the map inside the maps directory.
    pub file: PathBuf,
    /// The byte offset in the file.
    pub offset: u64,
    /// The global position at or after which events are affected.
    pub position: u64,
    /// What is wrong.
    pub what: String,
    /// The command that helps.
    pub help: String,
}

impl Error {
    /// Returns an I/O error with what was being done.
    pub fn io(context: impl Into<String>, error: &std::io::Error) -> Self {
        let context = context.into();
        if is_disk_full(error) {
            return Self::DiskFull(context);
        }
        Self::failed(context, error)
    }

    /// Returns an error that was reported while something was being done.
    pub fn failed(context: impl Into<String>, source: impl Into<Cause>) -> Self {
        Self::Io {
            context: context.into(),
            source: source.into(),
        }
    }

    /// Returns the error of a write of which nobody knows whether it happened.
    pub fn unknown(context: &str, error: &std::io::Error) -> Self {
        Self::Unknown {
            text: format!("{context}: {error}"),
            is_disk_full: is_disk_full(error),
            source: Some(error.into()),
        }
    }

    /// Returns the error of a write whose result got lost.
    pub fn result_lost(text: impl Into<String>) -> Self {
        Self::Unknown {
            text: text.into(),
            is_disk_full: false,
            source: None,
        }
    }

    /// Returns the error of a request that breaks a rule.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }

    /// Returns the error of a value that is larger than a named limit allows.
    pub fn over_limit(what: &str, value: usize, limit: usize) -> Self {
        Self::Invalid(format!("{what} is {value}, the limit is {limit}"))
    }

    /// Returns whether the same request may succeed later without being changed, and has certainly
    /// done nothing yet.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Overloaded(_)
                | Self::QuotaExceeded { .. }
                | Self::DiskFull(_)
                | Self::Closed(_)
                | Self::NotOwner { .. }
        )
    }
}

/// Returns whether the operating system says that there is no room.
pub fn is_disk_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_quota_is_a_full_disk() {
        for kind in [
            std::io::ErrorKind::StorageFull,
            std::io::ErrorKind::QuotaExceeded,
        ] {
            let error = Error::io("writing", &kind.into());
            assert!(matches!(error, Error::DiskFull(_)), "{error}");
        }
    }

    #[test]
    fn only_what_has_done_nothing_may_be_sent_again() {
        let elsewhere = |owner: Option<&str>| Error::NotOwner {
            namespace: "shop".into(),
            owner: owner.map(str::to_owned),
        };
        let (known, unknown) = (elsewhere(Some("10.0.0.2:8080")), elsewhere(None));
        assert_eq!(
            known.to_string(),
            "namespace 'shop' is on another node: 10.0.0.2:8080"
        );
        assert_eq!(unknown.to_string(), "namespace 'shop' is on another node");
        assert!(known.is_retryable() && unknown.is_retryable());
        assert!(Error::Closed("x".into()).is_retryable());
        assert!(!Error::result_lost("x").is_retryable());
    }

    #[test]
    fn what_the_operating_system_said_is_the_source_of_every_clone() {
        let denied = std::io::Error::from_raw_os_error(13);
        for error in [
            Error::io("opening log", &denied),
            Error::unknown("writing log", &denied),
        ] {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            assert_eq!(source, Some(denied.to_string()));
            let clone = error.clone();
            let source = std::error::Error::source(&clone).unwrap();
            let source: &std::io::Error = source.downcast_ref().unwrap();
            assert_eq!(source.raw_os_error(), Some(13));
            assert!(error.to_string().ends_with(&denied.to_string()), "{error}");
        }
    }
}
