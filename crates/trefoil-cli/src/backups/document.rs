//! The document of a backup.

use serde::{Deserialize, Serialize};

/// A backup of one or more namespaces.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BackupDocument {
    /// When it was begun, which is its name.
    pub(crate) id: String,
    /// The same, for people.
    pub(crate) created: String,
    /// Of what it was made: the address of a server, a directory, or a URL.
    pub(crate) source: String,
    pub(crate) namespaces: Vec<BackedUpNamespace>,
}

/// A namespace of a backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BackedUpNamespace {
    pub(crate) namespace: String,
    /// The commit as of which it is.
    pub(crate) commit: u64,
    /// The position of the last event.
    pub(crate) position: u64,
    /// How many bytes the content of its parts has.
    pub(crate) content_bytes: u64,
    /// The hash of the list of its parts.
    pub(crate) list: String,
}
