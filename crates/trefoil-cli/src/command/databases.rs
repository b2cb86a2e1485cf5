//! Databases that no server has open: one directory, or all namespaces of a data directory or of an
//! object storage.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trefoil::NamespaceId;
use trefoil::home::{Claim, Home, LocalHome};

use crate::exit::{self, NotFound};
use crate::places::HomePlace;

/// Where to look.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DatabaseArguments {
    /// A namespace (data/default), a data directory, or the URL of an object storage
    #[arg(value_name = "PLACE")]
    place: String,
    /// Only this namespace, of those that are there
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    cache: CacheArgument,
}

/// Where what comes from an object storage is kept.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CacheArgument {
    /// Directory for what is fetched from an object storage
    #[arg(
        long,
        value_name = "DIR",
        env = "TREFOIL_CACHE_DIR",
        default_value = "./cache"
    )]
    pub(crate) cache_dir: PathBuf,
}

/// A database that can be claimed.
pub(crate) struct ClosedDatabase {
    /// What it is called.
    pub(crate) name: String,
    claim: ClaimedBy,
}

enum ClaimedBy {
    Directory(PathBuf),
    Home(Arc<dyn Home>, NamespaceId),
}

/// What is at a place.
pub(crate) struct FoundDatabases {
    pub(crate) databases: Vec<ClosedDatabase>,
    /// The home, with a name, unless the place is a single namespace.
    pub(crate) home: Option<(String, Arc<dyn Home>)>,
}

impl DatabaseArguments {
    /// Returns the databases there, by name. A server must not have them open.
    pub(crate) fn find(&self) -> anyhow::Result<FoundDatabases> {
        let place = HomePlace::parse(&self.place, &self.cache.cache_dir)?;
        let mut found = match &place {
            HomePlace::Directory(directory) => in_directory(directory, &place)?,
            HomePlace::Storage(_) => in_storage(&place)?,
        };
        if let Some(name) = &self.namespace {
            found.databases.retain(|database| database.is_called(name));
            if found.databases.is_empty() {
                return Err(NotFound(format!("{place} has no namespace '{name}'")).into());
            }
        }
        Ok(found)
    }
}

fn in_directory(directory: &Path, place: &HomePlace) -> anyhow::Result<FoundDatabases> {
    let found = LocalHome::find_namespaces(directory)?;
    let found = found.ok_or_else(|| NotFound(format!("{place} holds no database")))?;
    let database = |path: PathBuf| ClosedDatabase {
        name: path.display().to_string(),
        claim: ClaimedBy::Directory(path),
    };
    let home = LocalHome::open_existing(directory)?;
    Ok(FoundDatabases {
        databases: found.into_iter().map(database).collect(),
        home: home.map(|home| {
            let name = home.registry().display().to_string();
            (name, Arc::new(home) as Arc<dyn Home>)
        }),
    })
}

fn in_storage(place: &HomePlace) -> anyhow::Result<FoundDatabases> {
    let home = place.open_existing()?;
    let mut databases = Vec::new();
    for (name, _) in home.entries()? {
        let id = NamespaceId::new(&name)?;
        if home.has_storage(&id)? {
            databases.push(ClosedDatabase {
                name,
                claim: ClaimedBy::Home(Arc::clone(&home), id),
            });
        }
    }
    Ok(FoundDatabases {
        databases,
        home: Some((place.to_string(), home)),
    })
}

impl ClosedDatabase {
    /// Claims it.
    pub(crate) fn claim(&self) -> trefoil::Result<Arc<dyn Claim>> {
        match &self.claim {
            ClaimedBy::Directory(path) => LocalHome::claim_existing(path),
            ClaimedBy::Home(home, id) => {
                let entry = home.entry(id)?;
                let gone = || trefoil::Error::NamespaceNotFound(id.to_string());
                let incarnation = entry.ok_or_else(gone)?.stamp.incarnation;
                home.claim(id, incarnation, true)
            }
        }
    }

    fn is_called(&self, name: &str) -> bool {
        match &self.claim {
            ClaimedBy::Directory(path) => path.file_name().is_some_and(|last| last == name),
            ClaimedBy::Home(_, id) => id.as_str() == name,
        }
    }
}

/// Runs `work` on each database. One that fails does not keep the others from their turn.
pub(crate) fn for_each(
    databases: &[ClosedDatabase],
    is_json: bool,
    mut work: impl FnMut(&ClosedDatabase) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for database in databases {
        match work(database) {
            Err(error) if error.is::<std::io::Error>() => return Err(error),
            Err(error) => failed.push((database, error)),
            Ok(()) => {}
        }
    }
    // The last one is reported like the error of any command.
    let Some((database, last)) = failed.pop() else {
        return Ok(());
    };
    for (database, error) in failed {
        exit::tell(&error.context(database.name.clone()), is_json);
    }
    Err(last.context(database.name.clone()))
}
