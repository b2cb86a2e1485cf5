//! The client of Google Cloud Storage.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ObjectStore, Result};

use super::client::{options, retries};

/// Returns a client for a bucket, with credentials from these variables and the environment.
pub(super) fn client(
    bucket: &str,
    variables: &BTreeMap<String, String>,
) -> Result<Arc<dyn ObjectStore>> {
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_client_options(options(None))
        .with_retry(retries());
    for (name, value) in variables {
        if let Ok(key) = name.to_ascii_lowercase().parse::<GoogleConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(builder.build()?))
}
