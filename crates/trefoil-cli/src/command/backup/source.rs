//! What a backup is made of: a running server, or the data of a stopped one.

use std::sync::Arc;

use serde::Deserialize;
use trefoil::backup::frames::read_step;
use trefoil::backup::{BackupBase, TakeStep, backup_namespace};
use trefoil::home::Home;
use trefoil::{Error, NamespaceId};

use crate::client::{HttpClient, ServerError};

/// Where namespaces are read from.
pub(super) enum BackupSource {
    Server(HttpClient),
    /// A home, and what it is called.
    Home(Arc<dyn Home>, String),
}

#[derive(Debug, Deserialize)]
struct ListedName {
    namespace: String,
}

impl BackupSource {
    /// Returns all namespaces that can be read: for the token of a namespace it is that one.
    pub(super) fn names(&self) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Home(home, _) => {
                let entries = home.entries()?.into_iter();
                Ok(entries.map(|(name, _)| name).collect())
            }
            Self::Server(client) => match client.current()? {
                Some(current) if !current.is_admin => Ok(vec![current.namespace]),
                _ => {
                    let listed: Vec<ListedName> = client.call(&("ns.list",))?;
                    Ok(listed.into_iter().map(|listed| listed.namespace).collect())
                }
            },
        }
    }

    /// Reads a namespace. An error of `take` is among those that are returned.
    pub(super) fn read(
        &self,
        name: &str,
        base: &BackupBase,
        take: &mut TakeStep<'_>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Home(home, _) => {
                let id = NamespaceId::new(name)?;
                Ok(backup_namespace(home.as_ref(), &id, base, take)?)
            }
            Self::Server(client) => {
                let after = base.after.to_string();
                let snapshot = base.snapshot.map(|commit| commit.to_string());
                let edits = (base.edits > 0).then(|| base.edits.to_string());
                let mut query = vec![("namespace", name), ("after", &after)];
                query.extend(base.origin.as_deref().map(|origin| ("origin", origin)));
                query.extend(snapshot.as_deref().map(|commit| ("snapshot", commit)));
                query.extend(edits.as_deref().map(|edits| ("edits", edits)));
                let mut body = client.download("/backup", &query)?.into_reader();
                while let Some(step) = read_step(&mut body)? {
                    take(step)?;
                }
                Ok(())
            }
        }
    }

    /// Returns whether an error says that there is no such namespace.
    pub(super) fn is_missing(error: &anyhow::Error) -> bool {
        error.chain().any(|cause| {
            let of_server = cause.downcast_ref::<ServerError>();
            of_server.is_some_and(|error| error.code == "NAMESPACE_NOT_FOUND")
                || matches!(cause.downcast_ref(), Some(Error::NamespaceNotFound(_)))
        })
    }
}

impl std::fmt::Display for BackupSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Server(client) => client.url(),
            Self::Home(_, name) => name,
        })
    }
}
