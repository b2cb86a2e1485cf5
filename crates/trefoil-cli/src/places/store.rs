//! Homes in object storage.

use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use trefoil::Clock;
use trefoil::home::Home;
use trefoil_kv::contract::{KvEngine as _, KvError};
use trefoil_kv::{KvHome, KvHomeOptions};
pub(crate) use trefoil_slatedb::StoreUrl as StorageUrl;
use trefoil_slatedb::{ConnectError, SlateEngine, StoreOptions};

use super::StoragePlace;
use crate::backups::BackupStore;

/// Where files of indexes are, below the cache directory.
const INDEXES: &str = "indexes";

/// Reads a URL, or says what is wrong with it.
pub(crate) fn parse_url(text: &str) -> Result<StorageUrl, String> {
    text.parse()
        .map_err(|error: ConnectError| error.to_string())
}

pub(super) fn open(place: &StoragePlace, clock: &Clock) -> anyhow::Result<Arc<dyn Home>> {
    let options = StoreOptions {
        cache_directory: Some(place.cache.clone()),
        cache_memory: usize::try_from(place.cache_bytes).unwrap_or(usize::MAX),
        write_spacing: place.spacing,
        ..StoreOptions::default()
    };
    let engine = SlateEngine::connect(&place.url, options)?;
    let options = KvHomeOptions {
        clock: clock.clone(),
        ..KvHomeOptions::new(place.cache.join(INDEXES))
    };
    let home = KvHome::open(Arc::new(engine), options);
    Ok(Arc::new(home.context("cannot open the storage")?))
}

/// How many names are asked for at a time.
const NAMES_PER_PAGE: usize = 1000;

/// Pieces of a repository of backups that are objects.
#[derive(Debug)]
struct ObjectBackups(SlateEngine);

pub(super) fn objects(place: &StoragePlace) -> anyhow::Result<Box<dyn BackupStore>> {
    let engine = SlateEngine::connect(&place.url, StoreOptions::default())?;
    Ok(Box::new(ObjectBackups(engine)))
}

impl BackupStore for ObjectBackups {
    fn get(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let found = self.0.objects().get(name);
        let found = found.map_err(|error| failed("read", name, error))?;
        Ok(found.map(|(bytes, _)| bytes.to_vec()))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let bytes = Bytes::copy_from_slice(bytes);
        let created = self.0.objects().create(name, bytes);
        created.map_err(|error| failed("write", name, error))?;
        Ok(())
    }

    fn delete(&self, name: &str) -> anyhow::Result<()> {
        let deleted = self.0.objects().delete(name);
        deleted.map_err(|error| failed("remove", name, error))
    }

    fn remove_partial(&self, _: &str) -> anyhow::Result<()> {
        // An object is there as a whole or not at all.
        Ok(())
    }

    fn list(&self, prefix: &str) -> anyhow::Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        loop {
            let after = names.last().cloned().unwrap_or_default();
            let page = self.0.objects().list(prefix, &after, NAMES_PER_PAGE);
            let page = page.map_err(|error| failed("list", prefix, error))?;
            let is_last = page.len() < NAMES_PER_PAGE;
            names.extend(page);
            if is_last {
                return Ok(names);
            }
        }
    }
}

fn failed(what: &str, name: &str, error: KvError) -> anyhow::Error {
    let text = match error {
        KvError::Fenced => "somebody else has it".to_owned(),
        KvError::TooLarge { limit } => format!("it is larger than {limit} bytes"),
        KvError::Unavailable(text) | KvError::Unknown(text) | KvError::Damaged(text) => text,
    };
    anyhow::anyhow!("cannot {what} {name}: {text}")
}
