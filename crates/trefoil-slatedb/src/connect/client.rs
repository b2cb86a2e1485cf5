//! What the clients of all services have in common.

use std::collections::BTreeMap;
use std::time::Duration;

use object_store::{ClientOptions, RetryConfig};

/// How long one request may take, and how long making a connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often, and how long, the client itself repeats a request. What is above it repeats, too.
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the options of a client. Only an endpoint that is given as `http:` is used without TLS.
pub(super) fn options(endpoint: Option<&str>) -> ClientOptions {
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    ClientOptions::new()
        .with_allow_http(is_plain)
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
}

/// Returns how requests are repeated.
pub(super) fn retries() -> RetryConfig {
    RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
        ..RetryConfig::default()
    }
}

/// Returns the first of these variables that is set: one that was given, or one of the environment.
pub(super) fn first_set(names: &[&str], variables: &BTreeMap<String, String>) -> Option<String> {
    let given = names.iter().find_map(|name| variables.get(*name).cloned());
    given.or_else(|| names.iter().find_map(|name| std::env::var(name).ok()))
}
