//! Finds out at the start whether a store keeps the promises that everything here is built on.
//!
//! A store that accepts everything would let two nodes write over each other, and nothing would
//! notice before data is missing. So it is asked for what it must refuse.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, Attributes, GetOptions, ObjectStore, ObjectStoreExt as _, PutMode,
    PutOptions, UpdateVersion,
};

use super::{BucketService, ConnectError, StoreUrl};
use crate::error::explained;

/// What differs between stores that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Names are listed in the order of their bytes. (Some list a directory after the other.)
    pub(crate) is_ordered: bool,
    /// Objects can be replaced on a condition by anybody, not by this process alone.
    pub(crate) is_shared: bool,
    /// Versions of an object are told apart by their generation, which Google's service counts, and not
    /// by their ETag.
    pub(crate) has_generations: bool,
}

impl Abilities {
    /// Returns what tells a version of an object from others, of what the store said of it.
    pub(crate) fn version(
        &self,
        e_tag: Option<String>,
        generation: Option<String>,
    ) -> Option<String> {
        match self.has_generations {
            true => generation,
            false => e_tag,
        }
    }

    /// Returns the condition that an object still has a version.
    pub(crate) fn unchanged(&self, version: String) -> UpdateVersion {
        let (e_tag, version) = match self.has_generations {
            true => (None, Some(version)),
            false => (Some(version), None),
        };
        UpdateVersion { e_tag, version }
    }
}

/// Where the test writes, below the prefix.
const PROBES: &str = "probe";
/// Names that a store must list in this order: `-` and `.` come before `/`.
const IN_ORDER: [&str; 4] = ["x-a", "x.a", "x/a", "x0"];
/// Metadata that an object is given, to see whether it comes back.
const MARK: &str = "trefoilprobe";

/// Tests a store. Leaves nothing behind, as far as it can.
pub(super) async fn run(
    store: &Arc<dyn ObjectStore>,
    prefix: &Path,
    url: &StoreUrl,
) -> Result<Abilities, ConnectError> {
    let (is_shared, has_generations) = match url {
        StoreUrl::Bucket { service, .. } => (true, *service == BucketService::Google),
        StoreUrl::Memory | StoreUrl::File(_) => (false, false),
    };
    let unique = crate::objects::unique()
        .map_err(|error| ConnectError(format!("no random numbers: {error}")))?;
    let directory = prefix.clone().join(PROBES).join(unique);
    let probe = Probe {
        store,
        directory,
        url,
    };
    let tested = probe.test(is_shared).await;
    probe.clean().await;
    Ok(Abilities {
        is_ordered: tested?,
        is_shared,
        has_generations,
    })
}

struct Probe<'a> {
    store: &'a Arc<dyn ObjectStore>,
    directory: Path,
    url: &'a StoreUrl,
}

impl Probe<'_> {
    fn failed(&self, error: &object_store::Error) -> ConnectError {
        ConnectError(format!("cannot use {}: {}", self.url, explained(error)))
    }

    fn refused(&self, what: &str) -> ConnectError {
        ConnectError(format!(
            "{} cannot be used: {what}. Data would be lost without notice; use a service that honours \
             conditional writes",
            self.url
        ))
    }

    /// Returns whether names are listed in order.
    async fn test(&self, is_shared: bool) -> Result<bool, ConnectError> {
        self.creates_once().await?;
        self.replaces_what_is_unchanged().await?;
        if is_shared {
            self.keeps_metadata().await?;
        }
        self.lists_in_order().await
    }

    async fn creates_once(&self) -> Result<(), ConnectError> {
        let path = self.directory.clone().join("created");
        let create = || PutOptions::from(PutMode::Create);
        let first = self.store.put_opts(&path, "first".into(), create()).await;
        first.map_err(|error| self.failed(&error))?;
        match self.store.put_opts(&path, "second".into(), create()).await {
            Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(self.failed(&error)),
            Ok(_) => Err(self
                .refused("it created an object that was there already (it ignores If-None-Match)")),
        }
    }

    async fn replaces_what_is_unchanged(&self) -> Result<(), ConnectError> {
        let path = self.directory.clone().join("replaced");
        let first = self.store.put(&path, "first".into()).await;
        let first = UpdateVersion::from(first.map_err(|error| self.failed(&error))?);
        if first.e_tag.is_none() {
            return Err(self.refused("it returns no ETag"));
        }
        let update = || PutOptions::from(PutMode::Update(first.clone()));
        let second = self.store.put_opts(&path, "second".into(), update()).await;
        second.map_err(|error| self.failed(&error))?;
        match self.store.put_opts(&path, "third".into(), update()).await {
            Err(object_store::Error::Precondition { .. }) => Ok(()),
            Err(error) => Err(self.failed(&error)),
            Ok(_) => Err(self
                .refused("it replaced an object that had changed meanwhile (it ignores If-Match)")),
        }
    }

    /// A repeated request is known by its metadata.
    async fn keeps_metadata(&self) -> Result<(), ConnectError> {
        let path = self.directory.clone().join("marked");
        let mark = Attribute::Metadata(Cow::Borrowed(MARK));
        let attributes = Attributes::from_iter([(mark.clone(), AttributeValue::from("kept"))]);
        let options = PutOptions {
            attributes,
            ..PutOptions::from(PutMode::Create)
        };
        let put = self.store.put_opts(&path, "marked".into(), options).await;
        put.map_err(|error| self.failed(&error))?;
        let head = GetOptions::new().with_head(true);
        let found = self.store.get_opts(&path, head).await;
        let found = found.map_err(|error| self.failed(&error))?;
        match found.attributes.get(&mark).map(AsRef::as_ref) {
            Some("kept") => Ok(()),
            _ => Err(self.refused("it loses the metadata of objects")),
        }
    }

    async fn lists_in_order(&self) -> Result<bool, ConnectError> {
        let directory = self.directory.clone().join("listed");
        let full = |name: &str| Path::from(format!("{directory}/{name}"));
        for name in IN_ORDER {
            let put = self.store.put(&full(name), name.into()).await;
            put.map_err(|error| self.failed(&error))?;
        }
        let listed = self.store.list(Some(&directory));
        let listed = listed.map_ok(|object| object.location).try_collect().await;
        let mut listed: Vec<Path> = listed.map_err(|error| self.failed(&error))?;
        let expected = IN_ORDER.map(full);
        let is_ordered = listed == expected;
        listed.sort_by(|a, b| a.as_ref().cmp(b.as_ref()));
        if listed != expected {
            return Err(self.refused("it does not list objects that were just written"));
        }
        Ok(is_ordered)
    }

    async fn clean(&self) {
        let names = ["created", "replaced", "marked"].map(str::to_owned);
        let listed = IN_ORDER.map(|name| format!("listed/{name}"));
        for name in names.into_iter().chain(listed) {
            let path = Path::from(format!("{}/{name}", self.directory));
            match self.store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => tracing::debug!(%error, %path, "a probe stays behind"),
            }
        }
    }
}
