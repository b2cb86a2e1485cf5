//! Homes in object storage.

use std::sync::Arc;

use anyhow::Context as _;
use trefoil::Clock;
use trefoil::home::Home;
use trefoil_kv::{KvHome, KvHomeOptions};
pub(crate) use trefoil_slatedb::StoreUrl as StorageUrl;
use trefoil_slatedb::{ConnectError, SlateEngine, StoreOptions};

use super::StoragePlace;

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
