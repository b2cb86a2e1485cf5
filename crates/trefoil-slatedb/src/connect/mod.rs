//! From a URL to a store that can be used: the client, the counting of requests, the self-test.

mod azure;
mod client;
mod counted;
mod file;
mod google;
mod s3;
mod self_test;
mod url;

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;

pub(crate) use counted::{CountedStore, RequestCounters};
pub(crate) use self_test::Abilities;
pub use url::{BucketService, StoreUrl};

/// Why a store cannot be used, in words for whoever gave its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError(pub(crate) String);

impl std::fmt::Display for ConnectError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ConnectError {}

/// A store that passed the self-test.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) counters: Arc<RequestCounters>,
    /// Everything is below this path.
    pub(crate) prefix: Path,
    pub(crate) abilities: Abilities,
}

/// Connects to a store and tests it. Must be called on the runtime.
pub(crate) async fn connect(
    url: &StoreUrl,
    variables: &BTreeMap<String, String>,
) -> Result<Connection, ConnectError> {
    let (store, prefix): (Arc<dyn ObjectStore>, Path) = match url {
        StoreUrl::Memory => (Arc::new(InMemory::new()), Path::default()),
        StoreUrl::File(directory) => (Arc::new(file::FileStore::open(directory)?), Path::default()),
        StoreUrl::Bucket {
            service,
            bucket,
            prefix,
        } => {
            // The client makes its connections with whatever provider the process has.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let client = match service {
                BucketService::S3 => s3::client(bucket, variables),
                BucketService::Google => google::client(bucket, variables),
                BucketService::Azure => azure::client(bucket, variables),
            };
            let cannot = |error: object_store::Error| {
                let why = crate::error::explained(&error);
                ConnectError(format!("cannot use the bucket '{bucket}': {why}"))
            };
            (client.map_err(cannot)?, prefix.clone())
        }
    };
    let counters = Arc::new(RequestCounters::default());
    let store: Arc<dyn ObjectStore> = Arc::new(CountedStore::new(store, Arc::clone(&counters)));
    let abilities = self_test::run(&store, &prefix, url).await?;
    Ok(Connection {
        store,
        counters,
        prefix,
        abilities,
    })
}
