//! The client of Azure Blob Storage.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::{ObjectStore, Result};

use super::client::{first_set, options, retries};

/// The variable that says where the service is, if not at Azure.
const ENDPOINTS: [&str; 1] = ["AZURE_STORAGE_ENDPOINT"];

/// Returns a client for a container, with account, credentials and endpoint from these variables and
/// the environment.
pub(super) fn client(
    container: &str,
    variables: &BTreeMap<String, String>,
) -> Result<Arc<dyn ObjectStore>> {
    let endpoint = first_set(&ENDPOINTS, variables);
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(container)
        .with_client_options(options(endpoint.as_deref()))
        .with_retry(retries());
    for (name, value) in variables {
        if let Ok(key) = name.to_ascii_lowercase().parse::<AzureConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(builder.build()?))
}
