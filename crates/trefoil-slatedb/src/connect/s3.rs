//! The client of an S3 service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use super::ConnectError;
use crate::error::explained;

/// How long one request may take, and how long making a connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often, and how long, the client itself repeats a request. What is above it repeats, too.
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables that say where the service is; the first that is set counts.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];

/// Returns a client for a bucket, with credentials, region and endpoint from these variables and the
/// environment.
pub(super) fn client(
    bucket: &str,
    variables: &BTreeMap<String, String>,
) -> Result<Arc<dyn ObjectStore>, ConnectError> {
    // The client makes its connections with whatever provider the process has.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let given = |name: &&str| variables.get(*name).cloned();
    let set = |name: &&str| std::env::var(name).ok();
    let endpoint = ENDPOINTS.iter().find_map(given);
    let endpoint = endpoint.or_else(|| ENDPOINTS.iter().find_map(set));
    let is_plain = endpoint
        .as_deref()
        .is_some_and(|endpoint| endpoint.starts_with("http://"));
    let options = ClientOptions::new()
        .with_allow_http(is_plain)
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT);
    let retries = RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
        ..RetryConfig::default()
    };
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_client_options(options)
        .with_retry(retries);
    for (name, value) in variables {
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let client = builder.build().map_err(|error| {
        ConnectError(format!(
            "cannot use the bucket '{bucket}': {}",
            explained(&error)
        ))
    })?;
    Ok(Arc::new(client))
}
