//! The client of an S3 service.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{ObjectStore, Result};

use super::client::{first_set, options, retries};

/// Variables that say where the service is; the first that is set counts.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];

/// Returns a client for a bucket, with credentials, region and endpoint from these variables and the
/// environment.
pub(super) fn client(
    bucket: &str,
    variables: &BTreeMap<String, String>,
) -> Result<Arc<dyn ObjectStore>> {
    let endpoint = first_set(&ENDPOINTS, variables);
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_client_options(options(endpoint.as_deref()))
        .with_retry(retries());
    for (name, value) in variables {
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    Ok(Arc::new(builder.build()?))
}
